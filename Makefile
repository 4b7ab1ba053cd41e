# Two commands for everybody: `make demo` and `make test`. Both do all the set-up themselves and are
# quick when there is nothing to set up. The work is in tools/; this file is the list of its names.

.DEFAULT_GOAL := help
VENV ?= .venv
export VENV PYTHON GPUSHARE_TORCH TORCH_INDEX GPUSHARE_SKIP_SYSTEM
export PATH := $(abspath $(VENV))/bin:$(PATH)

gpushare := $(VENV)/bin/gpushare
python := $(VENV)/bin/python

.PHONY: help demo test build wheel test-cpp test-python test-e2e test-dashboard gallery test-ray test-cuda torch-versions python-versions test-sanitizers test-asan test-tsan fuzz spin \
        man lint format tidy bench docs first-half-hour clean distclean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1|/p' Makefile | awk -F'|' '{printf "  make %-16s %s\n", $$1, $$2}'
	@printf '\nEach does the set-up it needs: system packages (shown first), %s, torch, the build.\n' $(VENV)
	@printf 'Variables: VENV=path (a virtual environment of your own), PYTHON=python3.12 (creates it),\n'
	@printf '  GPUSHARE_TORCH="torch==2.12.1", TORCH_INDEX=url (which torch), GPUSHARE_SKIP_SYSTEM=1,\n'
	@printf '  ARGS="..." (more arguments for the demo, the tests or the benchmarks)\n'

demo: build ## set everything up, then three training jobs share one small device, in a few minutes
	@$(gpushare) demo $(ARGS)

test: setup-test ## set everything up, then all tests
	@tools/test.sh all $(ARGS)

build: ## all set-up and no tests: the package, installed in .venv
	@tools/setup_system.sh build && tools/setup_venv.sh && tools/build.sh

wheel: build ## dist/*.whl for the torch and the Python in .venv, for machines without a compiler
	@tools/wheel.sh

.PHONY: setup-cpp setup-test setup-lint setup-docs setup-all
setup-cpp:
	@tools/setup_system.sh test
setup-test:
	@tools/setup_system.sh test && tools/setup_venv.sh test && tools/build.sh
setup-all:
	@tools/setup_system.sh test && tools/setup_venv.sh test lint docs && tools/build.sh
setup-docs:
	@tools/setup_system.sh build && tools/setup_venv.sh docs
setup-lint:
	@tools/setup_system.sh test && tools/setup_venv.sh lint && tools/build.sh

test-cpp: setup-cpp ## the C++ tests, with expensive checks (LAYER="vm alloc" for some)
	@tools/test_cpp.sh debug $(LAYER)

test-python: setup-test ## the Python tests in this process, and the lint tests
	@tools/test.sh python $(ARGS)

test-e2e: setup-test ## the tests with real processes
	@tools/test.sh e2e $(ARGS)

test-dashboard: setup-test ## the dashboard's page, and traces in Perfetto, in a real Chromium (DASHBOARD_PICTURES=folder keeps pictures)
	@tools/test_dashboard.sh $(ARGS)

gallery: setup-test ## ordinary programs, each alone, beside another, spilled and stopped, against stock torch
	@$(python) -m pip install --quiet lightning transformers accelerate skorch optuna nbclient ipykernel || \
	  printf 'SKIPPED: programs of frameworks that are not here\n'
	@$(python) -m pip install --quiet "ray[train,tune]" || printf 'SKIPPED: Ray is not here\n'
	@tools/test.sh gallery $(ARGS)

test-ray: setup-test ## Ray Train, Tune and two raylets under gpushare, in some minutes (the gallery has more of it)
	@if $(python) -m pip install --quiet "ray[train,tune]"; then tools/test.sh ray $(ARGS); \
	  else printf 'SKIPPED: the tests with Ray: it cannot be installed here\n'; fi

test-cuda: setup-test ## the tests with PyTorch's CUDA build on a fake device (5.5 GB once, if you have no such torch)
	@tools/test_cuda.sh $(ARGS)

torch-versions: setup-test ## the same with torch 2.9 to 2.14, into docs/torch_versions.md (ARGS="--quick --drop 2.11.0")
	@PYTHON=$(python) scripts/torch_versions $(ARGS)

python-versions: ## the Python tests and those of the wheel with other Pythons (PYTHONS="python3.10 python3.13")
	@tools/python_versions.sh $(PYTHONS)

test-sanitizers: test-asan test-tsan ## the C++ tests under ASan+UBSan, and under TSan where there are threads
test-asan: setup-cpp
	@tools/test_cpp.sh asan
test-tsan: setup-cpp
	@tools/test_cpp.sh tsan base wire ipc client daemon vm alloc

fuzz: setup-cpp ## each fuzzer for FUZZ_SECONDS (30)
	@tools/fuzz.sh

spin: setup-cpp ## the models of the lease word, the gate and the rows of gangs, checked
	@tools/spin.sh

man: ## docs/man/gpushare.1 from the commands, after a change of one
	@PYTHONPATH=python $(python) tools/make_man_page.py

lint: setup-lint ## formats, types, layers, terms: everything that reads the source
	@tools/lint.sh

format: setup-lint ## reformat C++ and Python
	@tools/lint.sh --fix

tidy: setup-lint ## clang-tidy over csrc (slow)
	@tools/tidy.sh $(ARGS)

bench: setup-test ## all benchmarks, and one table (ARGS="overhead --json FILE" for some)
	@$(python) -m benchmarks.run $(ARGS)

docs: setup-docs ## the documentation site, in build/docs/html
	@$(python) -m sphinx --fail-on-warning --keep-going --quiet docs build/docs/html
	@echo 'the site: build/docs/html/index.html'

first-half-hour: setup-test ## the pages for newcomers, followed to the letter in real shells, kernels and services
	@tools/test.sh first-half-hour $(ARGS)

clean: ## remove what the build made
	rm -rf build dist python/*.egg-info python/gpushare/_C*.so python/gpushare/bin
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## and the virtual environment
	rm -rf .venv
