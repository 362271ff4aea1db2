# `make run` is the main job, `make test` the tests. Both build the virtual environment when it is missing or old.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-ray test-cluster test-wide test-browser test-api lint types bench clean constraints install

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

install: $(READY) ## the virtual environment with all that is needed

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(READY) ## embedded cluster on 127.0.0.1:1995, sample backfill, three searches; Ctrl-C stops it
	@exec $(BIN)/evercore up --demo

test: $(READY) ## all tests of the main job: fast ones, Ray, a whole server
	$(BIN)/python -m pytest tests -n 2 --dist loadgroup -m 'not wide and not browser and not api'

test-fast: $(READY) ## the tests that need neither Ray nor a server
	$(BIN)/python -m pytest tests -m 'not ray and not cluster and not wide and not browser and not api'

test-ray: $(READY) ## the Ray Data jobs on a local Ray session
	$(BIN)/python -m pytest tests -m ray

test-cluster: $(READY) ## `evercore up` as a person starts it
	$(BIN)/python -m pytest tests -m cluster

test-wide: $(READY) ## a deployed cluster head, two Ray nodes, 100,000 messages in one conversation
	$(BIN)/python -m pytest tests -m wide

test-browser: $(READY) ## the console in chromium (apt-get install -y chromium)
	$(BIN)/python -m pytest tests -m browser

test-api: $(READY) ## a minute of generated requests against a server of its own: no server error
	$(BIN)/python -m pytest tests -m api

lint: $(READY) ## ruff
	$(BIN)/ruff check .

types: $(READY) ## mypy --strict
	$(BIN)/mypy

bench: $(READY) ## the measured figures; see benchmarks/README.md
	$(BIN)/python -m benchmarks.backfill

constraints: ## write constraints.txt anew from the newest versions that pyproject.toml allows
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	{ echo "# The versions that the tests run with; made by 'make constraints'."; \
	  build/constraints/bin/python -m pip freeze --exclude-editable; } > constraints.txt

clean: ## remove the virtual environment and all caches; your data under .evercore stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
