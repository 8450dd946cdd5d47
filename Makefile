# Two commands do all set-up: `make demo` and `make test`. Both are quick the second time.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# pytest keeps what it compiled of the tests: otherwise that is half of the time before the first one runs.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check lint mutate prove unbreakable tutorials bench package docs clean
help:
	@echo "make demo   set up, train a small GPT-2 on the Python documentation, show a sample and a report"
	@echo "make test   set up, lint, type check and run the whole fast test suite"
	@echo "make check  lint, type check and run the tests of what you changed (at most 90 seconds; BASE=COMMIT to compare with)"
	@echo "make mutate change the library, one thing at a time, and see which tests notice (N=300, FOLDER=nn, SEED=0)"
	@echo "make prove  train every recipe to its figure, three seeds each (hours; TEXT=FILE, IMAGES=, PAIRS=, OPINIONS=, CELLS=, CITATIONS=FOLDER for those that need public data)"
	@echo "make unbreakable  break it on purpose: faults, kills, damage, fuzz, every verb and task (hours); writes docs/reliability.md"
	@echo "make tutorials  run every block of docs/tutorials (about half an hour)"
	@echo "make package  build the wheel and the sdist, install each alone, and try them"
	@echo "make docs   build the documentation into docs/site"
	@echo "make bench  measure speed beside the peers, as ratios (about half an hour)"

.venv/run: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing descend and its dependencies into .venv (once) ..."
	@$(PIP) --editable .
	@touch $@

.venv/dev: .venv/run
	@echo "Installing the test tools into .venv (once) ..."
	@$(PIP) --editable ".[dev]"
	@touch $@

demo: .venv/run
	@$(BIN)/descend train gpt2-pydoc --out runs/demo --replace
	@$(BIN)/descend generate runs/demo "The for statement" --tokens 120 --temperature 0.7 --seed 1

package:
	@$(PYTHON) -m proofs.package

docs: .venv/dev
	@$(PIP) --editable ".[docs]"
	@$(BIN)/python -m documentation

lint: .venv/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --num-workers 2

# Each process begins with its half of the tests, and who is done first takes over some of the other's.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

test: lint
	@$(PYTEST) $(if $(CI),--durations=30)

check: lint
	@$(PYTEST) $$($(BIN)/python -m tests.touched $(if $(BASE),--base $(BASE)))

mutate: .venv/dev
	@$(BIN)/python -m mutation -n $(or $(N),300) --seed $(or $(SEED),0) $(if $(FOLDER),--folder $(FOLDER))

prove: .venv/dev
	@$(BIN)/python -m proofs $(if $(TEXT),--text $(TEXT)) $(if $(IMAGES),--images $(IMAGES)) \
		$(if $(PAIRS),--pairs $(PAIRS)) $(if $(OPINIONS),--opinions $(OPINIONS)) $(if $(CELLS),--cells $(CELLS)) \
		$(if $(CITATIONS),--citations $(CITATIONS))
	@$(BIN)/python -m proofs.labs

UNBREAKABLE := faults kills damage verbs world fuzz_flags fuzz_files flat requests every_lab

unbreakable: .venv/dev
	@failed=; for name in $(UNBREAKABLE); do $(BIN)/python -m proofs.$$name || failed="$$failed $$name"; done; \
		test -z "$$failed" || { echo "does not hold:$$failed"; exit 1; }

tutorials: .venv/dev
	@$(BIN)/python -m tests.docs.tutorials

bench: .venv/dev
	@$(PIP) --editable ".[dev,onnx]"
	@$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build *.egg-info
