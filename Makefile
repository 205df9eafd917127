# `make run` and `make test` set up what they need; neither asks anything.

PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.PHONY: run test lint check-django pytest bench audit clean messages setup setup-dev

run: setup
	@exec $(BIN)/python -m helpdesk.demo

# --- set-up: the stamps make the next run skip it until a requirements file changes ---

setup: .venv/.requirements
setup-dev: .venv/.requirements-dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: set PYTHON to it, for example make run PYTHON=python3.13.")'
	$(PYTHON) -m venv .venv

.venv/.requirements: requirements.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -r requirements.txt
	@touch $@

.venv/.requirements-dev: requirements.txt requirements-dev.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile -r requirements-dev.txt
	@touch $@ .venv/.requirements

# --- checks ---

# What the commands need to start; the tests bring their own settings.
CHECK_ENV := ENV_FILE= DATABASE_URL= DEBUG=on ASSISTANT_BACKEND=rehearsal EMBEDDING_PROVIDER=local

test: lint check-django pytest

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-django: setup-dev
	$(CHECK_ENV) $(BIN)/python manage.py check
	$(CHECK_ENV) $(BIN)/python manage.py makemigrations --check --dry-run

pytest: setup-dev
	$(BIN)/pytest -n 2 --dist loadgroup

bench: setup-dev
	$(BIN)/python -m benchmarks

audit: setup-dev
	$(BIN)/pip-audit --strict -r requirements.txt

messages: setup
	$(CHECK_ENV) $(BIN)/python manage.py compilemessages

# The data in var/postgres stays.
clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis var/static
	find . -name __pycache__ -not -path './var/*' -prune -exec rm -rf {} +
