# Two commands do all the set-up themselves: `make serve` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: serve test system check fix bench docs screenshots widget release-check clean

serve: $(VENV)/ready ## a page with a chat, and what answers on it; PORT=8001 where 8000 is taken
	@$(BIN)/motamot serve $(if $(PORT),--port "$(PORT)")

test: system $(VENV)/tested check ## everything: lint, types, generated files, the built wheel, all tests
	$(BIN)/python scripts/widget.py test
	$(BIN)/python -m pytest

system: ## what tests need from the system (browser, nginx, Caddy): installed as root, else named
	@sh scripts/system.sh

check: $(VENV)/tested ## lint, format, strict types, generated files fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/docs.py --check
	$(BIN)/python scripts/widget.py check

fix: $(VENV)/tested ## put lint and format right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/tested ## make the generated pages again
	$(BIN)/python scripts/docs.py

widget: $(VENV)/tested ## make the widget that is served from its TypeScript
	$(BIN)/python scripts/widget.py build

screenshots: system $(VENV)/tested ## take the pictures in docs/images again
	MOTAMOT_SCREENSHOTS=1 $(BIN)/python -m pytest -q -k screenshots tests

bench: system $(VENV)/tested ## measure against peers; figures go to docs/performance.md
	PYTHON=$(PYTHON) sh scripts/bench-peers.sh
	$(BIN)/python -m bench

release-check: $(VENV)/tested ## before a release: the examination twenty times on a busy machine, about an hour
	$(BIN)/python -m tests.exam.again 20 --busy 2

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis widget/node_modules

$(VENV)/ready: pyproject.toml
	PYTHON=$(PYTHON) sh scripts/venv.sh $(VENV) .[local]
	@touch $@

$(VENV)/tested: pyproject.toml $(VENV)/ready
	PYTHON=$(PYTHON) sh scripts/venv.sh $(VENV) .[local] --group test --group check --group bench --group examples
	@touch $@
