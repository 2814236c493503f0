# make help lists the targets.

PROFILE ?= demo
DATA ?=
FORCE ?=
RENEW ?=
NAME ?=
NOTEBOOKS ?=
OPTIONS ?=
PYTHON ?= >=3.11,<3.14
PYTHONS ?= python3.12 python3.13
MINUTES ?= 9
OUT ?= build/gpu
ENCODER ?=
METHOD ?=
ARCHIVE ?=
IMAGE ?=
LEAVE_OUT ?=
ONLY ?=
K ?= 10

UV := $(shell command -v uv || echo .uv/bin/uv)
READY := .venv/.ready

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export HYPERBOLIC_DATA := $(DATA)
export RENEW
export DVC_NO_ANALYTICS := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export JUPYTER_PLATFORM_DIRS := 1
# Large tensors come from memory that is kept, not asked for anew and cleared at every step: training an encoder on the
# CPU takes a fifth less time (1.14 instead of 1.47 processor seconds a step), and the same bits come out. Threads share
# this memory: reading features of 799 images takes 25.9 instead of 43.2 processor seconds.
export MALLOC_ARENA_MAX := 1
export MALLOC_MMAP_THRESHOLD_ := 4294967296
export MALLOC_TRIM_THRESHOLD_ := 17179869184

.DEFAULT_GOAL := help
.PHONY: help env reproduce plan data check archive ask app export bench gpu test lint unit versions check-notebooks lab notebooks lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

env: $(READY)  ## create or update the environment in .venv

$(READY): requirements.lock pyproject.toml | $(UV)
	@test -x .venv/bin/python || $(UV) venv --quiet --python "$(PYTHON)" .venv
	$(UV) pip sync --quiet --compile-bytecode --python .venv/bin/python requirements.lock
	$(UV) pip install --quiet --python .venv/bin/python --no-deps --editable .
	@touch $@

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet uv

reproduce: $(READY)  ## rebuild the results of PROFILE (demo, sample, gpu, paper) from DATA (called NAME) and compare with the committed ones; of your own images say which method serves them (NOTEBOOKS=all adds the papers' notebooks) (RENEW=1 replaces them even if they agree, PROCESSES=4 shares end-to-end trainings among as many GPUs, FORMAT=svg also draws figures into build/svg)
	python -m lib.pinned lib.pipeline.reproduce run $(PROFILE) $(if $(DATA),--data "$(DATA)") $(if $(NAME),--name "$(NAME)") $(if $(NOTEBOOKS),--notebooks $(NOTEBOOKS)) $(if $(FORCE),--force)

plan: $(READY)  ## say what PROFILE would run: stages, missing datasets and weights, estimated hours
	$(if $(DATA),$(error make plan says what a profile needs, not what your folder needs: leave DATA out))@python -m lib.pipeline.reproduce plan $(PROFILE)

data: $(READY)  ## download a dataset: NAME=kather, breakhis or ham10000
	@python -m lib.datasets.fetch $(NAME)

check: $(READY)  ## say what a run on DATA would find, what it leaves out and why, which folder is the patient, and how long it takes
	@python -m lib.pipeline.archive check "$(DATA)" $(if $(NAME),--name "$(NAME)") $(if $(ENCODER),--encoder "$(ENCODER)")

archive: $(READY)  ## build an archive of DATA that can be asked, in ARCHIVE=archive/<name>; ENCODER=efficientnet_lite0 or a file of embeddings (.npz, .parquet), METHOD=plain, hyper_dino, ...
	@python -m lib.pinned lib.pipeline.archive build "$(DATA)" $(if $(NAME),--name "$(NAME)") $(if $(ENCODER),--encoder "$(ENCODER)") $(if $(METHOD),--method "$(METHOD)") $(if $(ARCHIVE),--archive "$(ARCHIVE)")

ask: $(READY)  ## the K=10 images of an archive that are most like IMAGE; LEAVE_OUT=<patient> and ONLY=<class,class> leave others out, ARCHIVE=<folder> says which of several
	@python -m lib.pinned lib.pipeline.archive ask "$(IMAGE)" --k $(K) $(if $(ARCHIVE),--archive "$(ARCHIVE)") $(if $(LEAVE_OUT),--leave-out "$(LEAVE_OUT)") $(if $(ONLY),--only "$(ONLY)")

bench: $(READY)  ## measure our speed against the peers' in one run, as ratios; on a GPU also against what it can do (DEVICE=cpu leaves it alone)
	python -m bench

gpu:  ## run what needs a GPU for MINUTES=9: tests, bench, then trainings with the papers' pixels and batches on the datasets in DATA, the most valuable first. Results go to OUT=build/gpu; the same OUT goes on from there. No network or .venv is needed; it names the packages that it lacks
	python3 -m lib.pipeline.gpu --minutes $(MINUTES) --out "$(OUT)" $(if $(DATA),--data "$(DATA)") $(if $(filter command,$(origin PROFILE)),--profile $(PROFILE))

test: lint unit check-notebooks  ## lint, unit tests, notebook checks (DATA=<folder> adds the tests on real images)

lint: $(READY)
	ruff check
	ruff format --check

unit: $(READY)
	python -m lib.pinned pytest -n 2 --dist worksteal

versions: | $(UV)  ## the unit tests under other Pythons: PYTHONS="python3.12 python3.13", those that are on this machine
	@for python in $(PYTHONS); do \
	  version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
	    || { echo "$$python is not on this machine"; continue; }; \
	  echo "Python $$version"; here=.venv-$$version; \
	  { test -x $$here/bin/python || $(UV) venv --quiet --python $$python $$here; } \
	    && $(UV) pip sync --quiet --compile-bytecode --python $$here/bin/python requirements.lock \
	    && $(UV) pip install --quiet --python $$here/bin/python --no-deps --editable . \
	    && PATH="$(CURDIR)/$$here/bin:$$PATH" python -m lib.pinned pytest -n 2 --dist worksteal || exit 1; \
	done

check-notebooks: $(READY)
	python -m lib.pipeline.reproduce features demo
	REPORTS_DIR=build/checked HEADLESS=1 LOKY_MAX_CPU_COUNT=1 python -m lib.pinned pytest --nbval-lax --nbval-current-env --nbval-cell-timeout=600 -n 2 --dist loadfile notebooks

lab: $(READY)  ## draw what the notebooks need and open JupyterLab on copies in build/lab (OPTIONS=--port=9000)
	python -m lib.pipeline.reproduce features demo
	python -m lib.pipeline.lab $(OPTIONS)

app: $(READY)  ## open the page of an archive on this computer: ARCHIVE=<folder>, PORT=8000 (HOST=0.0.0.0 shows it to everybody in the network)
	@python -m lib.pinned lib.pipeline.archive app $(if $(ARCHIVE),--archive "$(ARCHIVE)") $(if $(filter command,$(origin PORT)),--port $(PORT)) $(if $(filter command,$(origin HOST)),--host $(HOST))

export: $(READY)  ## write the page of an archive as files for colleagues, who need no server: ARCHIVE=<folder> OUT=<folder>
	@python -m lib.pinned lib.pipeline.archive export $(if $(ARCHIVE),--archive "$(ARCHIVE)") $(if $(filter command,$(origin OUT)),--out "$(OUT)")

notebooks: export RENEW := 1
notebooks: $(READY)  ## bring the executed demo notebooks and the README's generated parts up to date
	python -m lib.pipeline.notebooks renew
	dvc repro
	python -m lib.pipeline.notebooks collect
	dvc repro --quiet source
	python -m lib.pipeline.pages

lock: pyproject.toml | $(UV)  ## compile requirements.lock anew from pyproject.toml
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --group dev --extra index pyproject.toml -o requirements.lock

clean:  ## remove the environment and everything built; reports, data, weights and your copies in build/lab stay
	rm -rf .venv .venv-* .uv *.egg-info .pytest_cache .ruff_cache .hypothesis
	test ! -d build || find build -mindepth 1 -maxdepth 1 ! -name lab -exec rm -rf {} +
