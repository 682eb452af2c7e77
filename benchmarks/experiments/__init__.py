# benchmarks/experiments/__init__.py — one file per experiment; each holds TITLE, ORDER, jobs and tables
# SPDX-License-Identifier: MIT
