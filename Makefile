# Everything a user or a developer runs. Needs Python 3.10+, a C++20 compiler and make; the rest is installed
# into .venv by the first target that wants it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard native/*.cpp native/*.hpp) CMakeLists.txt pyproject.toml
MODULES := $(sort $(shell find src/crfit -name '*.py' -o -name '*.template'))

.PHONY: help build demo test lint bench docs clean FORCE

help:            ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.2" "cmake>=3.20" "ninja>=1.11"
	touch $@

# An editable install knows the modules that were there when it was made.
$(VENV)/.modules: $(VENV)/.tools FORCE
	@echo "$(MODULES)" | cmp -s - $@ || echo "$(MODULES)" > $@

$(VENV)/.built: $(VENV)/.tools $(VENV)/.modules $(NATIVE)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation -e ".[sklearn,scipy,plot,test,dev]"
	cp "$$($(BIN)/python -c 'import crfit._native as n; print(n.__file__)' | sed 's/_native\..*/_native.pyi/')" src/crfit/_native.pyi
	touch $@

build: $(VENV)/.built   ## environment and native core (editable install)

demo: build      ## train, tag and score on the built-in data; writes demo-out/
	$(BIN)/crfit demo --out demo-out

test: lint       ## the whole test suite
	$(BIN)/python -m pytest

lint: build      ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: build     ## speed against python-crfsuite (needs the corpora: make bench DATA=dir)
	$(BIN)/python -m pip install --quiet -e ".[bench]" --no-build-isolation
	$(BIN)/python -m bench.core --data "$(DATA)"
	$(BIN)/python -m bench.optimum --data "$(DATA)"

docs: build      ## pages that are made from the code
	$(BIN)/python -m crfit.trainers.reference_page > docs/trainers.md

clean:           ## remove the environment and build products
	rm -rf $(VENV) build demo-out
