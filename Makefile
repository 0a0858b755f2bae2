# make help            every command, for macOS and Linux; README.md has the same without make.

.DEFAULT_GOAL := help
.PHONY: help lab teach reset setup notebooks schedule handouts test test-pythons test-tritons bundle site bench constraints clean

# What a person may set on the command line; the tools read them from the environment.
export EDITION PORT LESSON PARTS PYTHON TORCH_INDEX

TOOL = python=$$(sh tools/find_python.sh) && exec "$$python" -m
READY = python=$$(sh tools/find_python.sh) && "$$python" -m tools.environment

help:
	@echo "make lab [EDITION=zh|en] [PORT=8888]   打开课程 / open the course"
	@echo "make teach [EDITION=zh|en]               打开教师版 / open the instructor's edition"
	@echo "make reset LESSON=01 [EDITION=zh|en]   一课的新副本，旧的不动 / a fresh copy of a lesson beside yours"
	@echo "make setup                             只准备环境 / the environment only"
	@echo "make test [PARTS=\"unit nbval\"]         检查一切 / check everything"
	@echo "make test-pythons                      在每个 Python 上测试 / unit tests and notebooks on every Python here"
	@echo "make test-tritons                      在每个 Triton 上测试核函数 / kernel tests on every supported Triton"
	@echo "make bundle                            离线包，写入 dist/ / one zip for places without a network"
	@echo "make site                              网站，写入 dist/site / lessons in the browser, and pages to read"
	@echo "make notebooks                         由源文件生成课程 / build the lessons from their sources"
	@echo "make schedule                          课表，写入 teaching/ / schedules for teaching"
	@echo "make handouts                          讲义和答案，写入 dist/handouts / two printed pages a lesson, and answers"
	@echo "make bench                             测速，写入 benchmarks/RESULTS.md / measure"
	@echo "make constraints                       重新固定版本 / pin the versions anew"
	@echo "make clean                             删除环境和缓存，不动 work/ / remove environment and caches, never work/"
	@echo "PYTHON=/path/to/python3  TORCH_INDEX=<mirror of https://download.pytorch.org/whl/cpu>"

lab:
	@$(TOOL) tools.lab

teach:
	@$(TOOL) tools.lab --instructor

reset:
	@$(TOOL) tools.reset

setup:
	@$(READY)

test:
	@$(TOOL) tools.checks

test-pythons:
	@$(TOOL) tools.pythons

test-tritons:
	@$(TOOL) tools.tritons

bundle:
	@$(TOOL) tools.bundle

# SITE="--self-hosted" serves Pyodide from the site itself instead of from its CDN (needs npm).
site:
	@$(READY) --dev && .venv/bin/python -m tools.site $(SITE)

notebooks:
	@$(READY) --dev && .venv/bin/python -m notebooks.build

schedule:
	@$(READY) --dev && .venv/bin/python -m tools.schedule

handouts:
	@$(READY) --dev && .venv/bin/python -m tools.handouts

bench:
	@$(READY) --dev && .venv/bin/python -m benchmarks

constraints:
	@$(READY) --dev && .venv/bin/python -m pip install --quiet uv && .venv/bin/python -m tools.constraints

# .cache/jupyter stays: it remembers which of the learner's notebooks are trusted.
clean:
	rm -rf .venv-3* .cache/environments .cache/bundle-wheels .cache/site .cache/tritons
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist *.egg-info artifacts
	find . -name __pycache__ -not -path './work/*' -prune -exec rm -rf {} +
