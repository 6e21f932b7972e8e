# Every command does all its own set-up; see deploy/local.py.
.DEFAULT_GOAL := help
# Where python3 is older than 3.11: make demo PYTHON=python3.11
PYTHON ?= python3
.PHONY: help demo up check test test-deployed lint lock notice schemas load corpus mutants

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 22

demo: ## walk two real agreements from template to sealed PDF, then stop
	@$(PYTHON) deploy/local.py demo

up: ## run the suite until Ctrl-C; PORT, VAR_DIR, SMTP_URL ... are obeyed
	@$(PYTHON) deploy/local.py up

check: ## lint, types, and the tests that start nothing: for the inner loop
	@$(PYTHON) deploy/local.py check

test: ## lint, types, all tests
	@$(PYTHON) deploy/local.py test

test-deployed: ## the images in containers, as they are deployed: faults, rolling updates
	@$(PYTHON) deploy/local.py test-deployed

lint: ## ruff, mypy, import rules
	@$(PYTHON) deploy/local.py lint

load: ## the benchmarks: ratios measured side by side
	@$(PYTHON) deploy/local.py install testing
	@.venv/bin/python -m tests.load

corpus: ## what becomes of each document in DIR, as a table
	@$(PYTHON) deploy/local.py install testing
	@.venv/bin/python -m tests.corpus $(DIR)

mutants: ## break the pure rules one by one: what no unit test notices
	@$(PYTHON) deploy/local.py install testing
	@.venv/bin/python -m tests.mutants

lock: ## make the locks anew from pyproject.toml (needs uv)
	@deploy/locks/make

notice: ## NOTICE, and the bills of materials (SBOM) in dist/, anew from the locks
	@$(PYTHON) deploy/local.py install testing
	@.venv/bin/python -m deploy.release.make_notice
	@.venv/bin/python -m deploy.release.make_sbom

schemas: ## record the contracts' JSON Schemas after a deliberate change
	@.venv/bin/python -m contracts.schemas_record
