PYTHON ?= python3
BIN := .venv/bin
# The second name is what newer pips read for the build environment; older ones ignore it.
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: help demo frontier test lint docs dist bench soak clean browser

help: ## Show these lines
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: .venv/installed-demo ## Every scheme on a month of real weather: a table, advice, and demo.html
	$(BIN)/sparsemean compare --report demo.html

frontier: .venv/installed-demo ## Error against bytes of every scheme on that weather, and of every kind of node on Fashion-MNIST where it is
	$(BIN)/sparsemean frontier --report frontier.html
	@$(BIN)/sparsemean frontier fashion-mnist --report frontier-nodes.html || { [ $$? -eq 2 ] && \
		echo "So frontier-nodes.html, error against bytes by what a node may know, is left out; all else is there."; }

test: .venv/installed-all browser ## Run every test, the docstring examples and the README
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist loadgroup  # processes by the hundred: none compiles twice

lint: .venv/installed-all ## Style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-docs ## The documentation as a site, a minute: build/site/index.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/site

dist: .venv/installed-build ## Wheel and source distribution, in dist
	rm -rf dist
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m build --outdir dist

bench: .venv/installed-all ## Speed and memory of every scheme, ten minutes: bench.json, bench.html; AGAINST=old.json compares
	$(BIN)/sparsemean bench --all --out bench.json --report bench.html $(if $(AGAINST),--against $(AGAINST))

soak: .venv/installed-all browser ## What takes hours: kills, failing disks, schedules, attendance, fuzzing, scale
	-$(INSTALL) atheris  # which has no wheels but for Linux
	@failed=; for script in soak/*.py; do \
		echo "== $$script"; $(BIN)/python $$script || failed="$$failed $$script"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

clean: ## Remove the virtual environment, caches and build results
	rm -rf .venv build dist demo.html frontier.html frontier-nodes.html bench.html .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The report is tested in a real browser, the sensor network with a real MQTT broker, failing disks with a compiled
# library. Root on Debian gets all three; elsewhere those tests say why they are skipped.
browser:
	@missing=; command -v chromium >/dev/null || missing="chromium chromium-driver"; \
	command -v mosquitto >/dev/null || missing="$$missing mosquitto"; \
	command -v cc >/dev/null || missing="$$missing gcc libc6-dev"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	fi

.venv/bin/pip:
	$(PYTHON) -m venv .venv

.venv/installed-demo: pyproject.toml constraints.txt | .venv/bin/pip
	$(INSTALL) --editable '.[server,cli,report]'
	touch $@

.venv/installed-docs: pyproject.toml constraints.txt | .venv/bin/pip
	$(INSTALL) --editable '.[docs]'
	touch $@

.venv/installed-build: pyproject.toml constraints.txt | .venv/bin/pip
	$(INSTALL) build
	touch $@

.venv/installed-all: pyproject.toml constraints.txt | .venv/bin/pip
	$(INSTALL) --editable '.[all,docs,test,lint]'
	touch $@ .venv/installed-demo .venv/installed-docs
