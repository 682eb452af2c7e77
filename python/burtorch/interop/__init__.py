# python/burtorch/interop/__init__.py — compiled functions inside other frameworks; each module needs its own
# SPDX-License-Identifier: MIT
"""Compiled functions inside other frameworks: burtorch.interop.torch."""
