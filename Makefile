# Isthmus. `make` alone explains the targets; NAME=other works on a second test bed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

export NAME ?= isthmus
VENV := .venv
BIN := $(VENV)/bin
STATE := $(or $(XDG_STATE_HOME),$(HOME)/.local/state)/isthmus/$(NAME)
# Debian's own Python, whatever a version manager put first on PATH.
PYTHON ?= /usr/bin/python3
PYTEST := $(BIN)/python -m pytest
# Beside others on shared nodes a test may meet their work: it is tried once more, and the summary shows its first failure.
TWICE := --reruns 1 --max-suite-reruns 5 --rerun-show-tracebacks
# Each process of tests takes whole files, in their order.
FILES := --dist loadfile --no-loadscope-reorder
# What took longest, so that a stage over its budget says why.
SLOWEST := --durations 20 --durations-min 5
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Not a word about other makers of sites.
export NO_MKDOCS_2_WARNING := 1
export ANSIBLE_FORCE_COLOR ?= $(if $(CI),0,1)

# BUNDLE=file: nothing comes from outside but what the bundle holds.
ifdef BUNDLE
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/isthmus
export ISTHMUS_BUNDLE := $(shell $(PYTHON) src/isthmus/artifacts/bundle.py unpack $(BUNDLE) $(CACHE)/bundles)
$(if $(ISTHMUS_BUNDLE),,$(error BUNDLE=$(BUNDLE) cannot be used; see above))
export PIP_NO_INDEX := 1
export PIP_FIND_LINKS := $(ISTHMUS_BUNDLE)/wheels
endif

.PHONY: help venv testbed teardown ssh lock format lint unit integration system system-shared system-disruptive attack attack-short fuzz molecule site-tests openstack-tests test shares test-full bench bench-papers bench-papers-plain bench-reference bench-openstack conformance conformance-mpi verify artifacts bundle docs generate

help: ## Show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.installed ## Install the pinned Python tools into .venv

# The lock file is the whole environment: every package with its hash, none resolved here.
$(VENV)/.installed: locks/deployer.txt pyproject.toml
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo 'Installing python3-venv'; apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3 python3-venv >/dev/null; }
	@echo 'Installing the Python tools (about half a minute)'
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r locks/deployer.txt \
	  | awk '/^Collecting/{printf "."; fflush()} END{print " done"}'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .
	@touch $@

testbed: venv ## Make the local test bed, install every layer, run the main job
	$(BIN)/ansible-playbook site.yml $(ARGS)

artifacts: venv ## Obtain the third-party programs (from scratch about a quarter of an hour)
	$(BIN)/ansible-playbook playbooks/artifacts.yml $(ARGS)

bundle: venv ## Pack all that a site needs from outside, for `make testbed BUNDLE=file` (needs a running test bed)
	$(BIN)/ansible-playbook playbooks/bundle.yml $(ARGS)

teardown: venv ## Remove the local test bed and all it made
	$(BIN)/ansible-playbook playbooks/teardown.yml

ssh: ## Open a shell on the login node as alice
	@ssh -F $(STATE)/ssh/config alice@login

verify: venv ## Run the system tests through playbooks/verify.yml
	$(BIN)/ansible-playbook playbooks/verify.yml

lint: venv ## Everything that reads the code without running it
	ruff check
	ruff format --check
	mypy
	lint-imports
	yamllint --strict .
	ansible-lint --offline -q
	git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck
	codespell

.PHONY: test-packages
test-packages: venv
	$(BIN)/ansible-playbook tests/support/packages.yml

unit: test-packages ## Tests without root, network or nodes
	$(PYTEST) tests/unit tests/repo tests/fuzz -n 2 $(SLOWEST)

fuzz: test-packages ## The fuzz tests of `make unit`, a hundred times as long
	ISTHMUS_FUZZ=long $(PYTEST) tests/fuzz -n 2

integration: test-packages ## Tests against one real dependency at a time
	$(PYTEST) tests/integration -n 3 --dist loadfile $(TWICE) $(SLOWEST)

system: system-shared system-disruptive ## Tests on the running test bed

system-shared: venv ## Those of them that several processes run at once, each as users of its own
	$(PYTEST) tests/system -m "not full and not disruptive" -n 4 $(FILES) $(TWICE) $(SLOWEST)

system-disruptive: venv ## Those that others may feel, one by one
	$(PYTEST) tests/system -m "not full and disruptive" $(TWICE) $(SLOWEST)

attack: venv ## Try every known attack on the running test bed
	$(PYTEST) tests/attack

attack-short: venv ## Those of them that take moments, as `make test` does
	$(PYTEST) -m "not full" tests/attack -n 2 $(FILES) $(SLOWEST)

molecule: venv ## The alternative site, on nodes of its own
	$(PYTEST) -s -m "not full" tests/site/test_molecule.py

openstack-tests: venv ## The provider on an OpenStack in a container, where its image is kept
	$(PYTEST) -m "not full" tests/site/test_openstack.py tests/site/test_openstack_refusals.py -n 2 --dist loadfile $(SLOWEST)

site-tests: venv ## Second run, day-2 playbooks, faults
	$(PYTEST) -s -m "not full" tests/site --ignore=tests/site/test_molecule.py --ignore-glob='tests/site/test_openstack*.py' $(SLOWEST)

# In the end one lane has the test bed and mostly waits for it; the other has what needs nothing of it.
test: venv ## All of the above but fuzz and the longer attacks; needs nothing done before
	@$(BIN)/python -m tests.run artifacts testbed+lint,unit,integration system-shared system-disruptive attack-short,site-tests+molecule,openstack-tests

generate: venv ## Write the files that repeat others: roles' defaults, choices of drivers, the plugin's list of them
	$(BIN)/python -m handbook.generate

docs: venv ## Build the documentation as a site in the folder site
	codespell
	$(BIN)/python -m mkdocs build --quiet
	@echo 'Open site/index.html'

shares: venv ## Write the table of docs/explanation/testing.md, of the last `make test`
	$(BIN)/python -m tests.shares

test-full: test ## Also the molecule scenarios that `make test` leaves out
	$(PYTEST) -m full tests/system
	$(PYTEST) -s -m full tests/site
	$(PYTEST) -m full tests/attack
	$(PYTEST) -s tests/full

bench-papers: venv ## Four compute nodes, the papers' tables measured on them, the report in results (ARGS=-e bench_size=smoke)
	$(BIN)/ansible-playbook -i inventories/bench site.yml -e main_job_run=false
	$(BIN)/ansible-playbook -i inventories/bench playbooks/benchmark.yml $(ARGS)

bench-papers-plain: venv ## The same with a column of a plain Kubernetes, made beside it for this (ARGS='-- -e bench_size=smoke')
	$(BIN)/ansible-playbook -i inventories/bench site.yml -e main_job_run=false
	$(BIN)/python -m tests.bench.reference_papers $(ARGS)

bench: venv ## Take the figures in docs/results (results/*.json)
	$(BIN)/python -m tests.bench.mpi_starts
	$(BIN)/python -m tests.bench.site_times
	$(BIN)/python -m tests.bench.site_scale
	$(BIN)/python -m tests.bench.container_starts
	$(BIN)/python -m tests.bench.step_containers
	$(BIN)/python -m tests.bench.image_layers
	$(BIN)/python -m tests.bench.containers
	$(BIN)/python -m tests.bench.network_logic
	$(BIN)/python -m tests.bench.network_store
	$(BIN)/python -m tests.bench.network_scale
	$(BIN)/python -m tests.bench.pod_networks
	$(BIN)/python -m tests.bench.pid_namespaces
	$(BIN)/python -m tests.bench.encryption
	$(BIN)/python -m tests.bench.routed
	$(BIN)/python -m tests.bench.login_pods
	$(BIN)/python -m tests.bench.login_pods --pods 1000
	$(BIN)/python -m tests.bench.hostile
	$(BIN)/python -m tests.bench.pod_hpl
	$(BIN)/python -m tests.bench.pods
	$(BIN)/python -m tests.bench.pods_resident
	$(BIN)/python -m tests.bench.kubelet_many
	$(BIN)/python -m tests.bench.pod_cpu
	$(BIN)/python -m tests.bench.pod_streams
	$(BIN)/python -m tests.bench.job_feed

bench-reference: venv ## Compare pods with a plain Kubernetes on this machine (results/reference.json; about an hour)
	$(BIN)/python -m tests.bench.reference $(ARGS)

bench-openstack: venv ## Time twenty servers in the OpenStack of the tests (results/openstack.json; ARGS='--rounds 3')
	$(BIN)/python -m tests.bench.openstack $(ARGS)

conformance: venv ## Run Kubernetes' own conformance cases on the running test bed (FOCUS=regex, ARGS=--help)
	$(BIN)/ansible-playbook playbooks/conformance.yml
	$(BIN)/python -m tests.conformance.main $(if $(FOCUS),--focus='$(FOCUS)') $(ARGS)

conformance-mpi: venv ## Run the MPI Operator's own cases on the running test bed (FOCUS=regex, ARGS=--help)
	$(BIN)/ansible-playbook playbooks/conformance_mpi.yml
	$(BIN)/python -m tests.conformance.operator $(if $(FOCUS),--focus='$(FOCUS)') $(ARGS)

lock: venv ## Resolve the lock files again
	for group in 'deployer pyproject.toml --group deployer --group test --group bench --group docs --group lock' 'runtime pyproject.toml --constraint locks/deployer.txt' 'build --group build' 'parallelcluster --group parallelcluster' 'intel-mpi --group intel-mpi' 'moto --group moto'; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	    --no-emit-find-links $${group#* } --output-file locks/$${group%% *}.txt; done

format: venv ## Rewrite the Python code as ruff wants it
	ruff check --fix
	ruff format
