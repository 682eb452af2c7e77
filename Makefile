# Makefile — the few commands a visitor needs; `make` lists them
# SPDX-License-Identifier: MIT
PYTHON ?= python3
JOBS ?= $(or $(BURTORCH_JOBS),$(shell $(PYTHON) -c "import os; print(os.cpu_count() or 1)"))
BIN := $(CURDIR)/.venv/bin
# Only the best that this machine can run is compiled; wheels have all.
has = $(shell grep -qw $(1) /proc/cpuinfo 2> /dev/null && echo $(2))
ISAS ?= $(lastword baseline $(call has,avx2,avx2) $(call has,avx512vl,avx512))
# Tools come from .venv, the compiler is the one that setup.py found or installed.
TOOLS = PATH="$(BIN):$$PATH" CXX="$$($(PYTHON) scripts/setup.py --compiler)"
HEADERS = $(shell find include -name '*.hpp' -o -name '*.h')
CPP_FILES = $(shell find include cpp_tests benchmarks examples bindings -name '*.cpp' -o -name '*.hpp' -o -name '*.h')

.PHONY: help demo test sanitize slow fuzz bench lint format amalgamate pictures table loc clean package venv

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18

demo: package ## gradients of the paper's graphs, checked and timed; then its GPT learns for a minute
	@$(TOOLS) cmake --preset release > build/demo.log || { cat build/demo.log; exit 1; }
	@$(TOOLS) cmake --build --preset release -j $(JOBS) --target burtorch_demo
	@build/release/examples/burtorch_demo
	@echo; echo "The same from Python (burtorch demo):"; echo
	@$(BIN)/python -m burtorch demo --picture build/tiny.svg

test: package ## run all tests; ARGS="-k install" selects some
	@$(PYTHON) scripts/setup.py --clang --peers
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder $(ARGS)

sanitize: venv ## the C++ tests under sanitizers: addresses, undefined behaviour, threads
	@$(PYTHON) scripts/setup.py --clang
	@$(BIN)/python -m pytest -m sanitize tests/test_cpp.py $(ARGS)

slow: venv ## the vector functions on all floats (half an hour); NATIVE=1 compiles for this machine, ARGS="exp tanh" selects some
	@$(TOOLS) cmake --preset release -DBURTORCH_TESTS=ON -DBURTORCH_NATIVE=$(if $(NATIVE),ON,OFF) > build/slow.log || { cat build/slow.log; exit 1; }
	@$(TOOLS) cmake --build --preset release -j $(JOBS) --target burtorch_slow
	@build/release/cpp_tests/slow/burtorch_slow $(ARGS)

fuzz: package ## feed the loaders with nonsense, a minute each (SECONDS=60); ARGS="graph" selects
	@$(PYTHON) scripts/setup.py --clang
	@$(PYTHON) scripts/fuzz.py --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0) $(ARGS)

bench: package ## every experiment of the paper, and more, against other libraries; QUICK=1 for minutes, ARGS="--only small --check"
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(ARGS)

lint: ## check formatting, spelling, types and common mistakes
	@$(PYTHON) scripts/setup.py --dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/codespell
	@$(BIN)/clang-format --dry-run -Werror $(CPP_FILES)
	@echo "compiling each header alone"
	@$(TOOLS) sh -c 'printf "%s\n" $(HEADERS) | xargs -P $(JOBS) -I{} $$CXX -std=c++20 -fsyntax-only -Iinclude -Wall -Wextra -Werror -x c++ -include {} -include {} /dev/null'
	@echo "looking for mistakes in all headers"
	@mkdir -p build && printf '#include <%s>\n' $(HEADERS:include/%=%) > build/headers.cpp
	@$(BIN)/clang-tidy --quiet build/headers.cpp cpp_tests/switches/switches.cpp cpp_tests/consumer/main.cpp -- -std=c++20 -Iinclude 2> /dev/null # which only counts

format: ## rewrite the sources as clang-format and ruff want them
	@$(PYTHON) scripts/setup.py --dev
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CPP_FILES)

amalgamate: ## make the one-file header build/burtorch.h
	@$(PYTHON) scripts/amalgamate.py

pictures: package ## draw the graphs of the README into docs/
	@$(BIN)/python scripts/pictures.py

table: ## bring what repeats the table of operations up to date: Python's types, docs/operations.md
	@$(PYTHON) scripts/make_table.py

loc: ## count the lines of each folder, and those of the engine, which have a budget
	@$(PYTHON) scripts/loc.py

package: venv ## compile the Python package and install it into .venv
	@echo "compiling the Python package (some minutes the first time)"
	@$(TOOLS) $(BIN)/python -m pip install -qq --disable-pip-version-check --no-build-isolation \
	  --config-settings=cmake.define.BURTORCH_PYTHON_ISAS="$(ISAS)" .

venv: ## install what is missing and make .venv
	@mkdir -p build
	@$(PYTHON) scripts/setup.py

clean: ## remove everything that was built (.venv stays)
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis
