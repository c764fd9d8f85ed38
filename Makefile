# make demo         show what this is for, on the digits of scikit-learn, in less than a minute
# make test         install what the tests need, check the code, run the tests that guard a change
# make test-all     the same with the tests that are slow by nature: processes, kills, tutorials
# make lint         only check the code: style, spelling, types, layers, security
# make docs         build the site in site/, run the examples, check the links
# make notebooks    make the notebooks among the examples from their scripts
# make audit        look for known vulnerabilities of the installed dependencies, if there is a network
# make test-oldest  run the tests with the oldest version of every dependency, as declared
# make coverage     run the tests and print how many lines and branches of each file they reach
# make dist         build the source archive and the wheel, and check what they say
# make release-check  make dist, then install the wheel into new environments and use it
# make format       rewrite the code in the project's style
#
# The tests' matrices are small: threads of BLAS would only wait for each other. Processes do not.

PYTHON ?= python3
VENV ?= .venv
OLDEST ?= .venv-oldest
BIN = $(VENV)/bin

PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal
DOCS = OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -c docs
NOTEBOOKS = examples/few_labels.py examples/wrong_labels.py

.PHONY: demo test test-all lint docs notebooks audit test-oldest coverage dist release-check format clean

demo: $(VENV)/.demo
	$(BIN)/python -m latentmetric.demo --out demo

test: lint
	$(PYTEST)

test-all: lint
	$(PYTEST) -m ""

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files -z | xargs -0 $(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src tools benchmarks

# Everything is built anew: a picture of an example must not be older than the package.
docs: $(VENV)/.docs
	rm -rf site docs/gallery docs/reference
	$(DOCS) . site
	$(BIN)/python tools/check_site.py site

notebooks: $(VENV)/.docs
	$(BIN)/sphinx_gallery_py2jupyter $(NOTEBOOKS)

audit: $(VENV)/.test
	-$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python tools/audit_dependencies.py

# Old libraries warn of what newer ones among their own dependencies will remove. The tests with
# the newest versions are where a warning is an error.
test-oldest: $(OLDEST)/.test
	OPENBLAS_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n auto --dist worksteal -m "" -W ignore::DeprecationWarning

coverage: $(VENV)/.test
	$(BIN)/coverage erase
	OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n auto --dist worksteal -m ""
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report

dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

release-check: dist
	$(BIN)/python tools/check_wheel.py

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[cli]"
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[lint,test]"
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@

$(VENV)/.dist: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet build twine
	touch $@

$(OLDEST)/.test: pyproject.toml tools/oldest_versions.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python tools/oldest_versions.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet -c $(OLDEST)/oldest.txt -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) demo dist docs/gallery docs/reference htmlcov site .coverage*
