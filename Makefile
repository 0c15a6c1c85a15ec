# make help lists what there is. Everything is made inside this folder; .venv holds the packages.
PROFILE ?= quick
DEVICE ?= cpu
GPUS ?= 1
JOBS_A_CARD ?= 1
DATA ?=
CORES ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
NAME ?=
ARGS ?=
# What narrows a book to some chapters and runs, each one or more words, such as TASKS="dtd10 cifar100"; on a GPU
# PRECISION=bf16 and COMPILE=1 change how runs are computed.
PAPERS ?=
TASKS ?=
METHODS ?=
SEEDS ?=
EPOCHS ?=
PRECISION ?=
COMPILE ?=
BACKBONE ?=
WEIGHTS ?=
LARGER ?=
WHEELS ?= timm pooch platformdirs jsonschema jsonschema-specifications referencing rpds-py attrs
NARROWING = PAPERS TASKS METHODS SEEDS EPOCHS PRECISION COMPILE BACKBONE WEIGHTS LARGER
# those without labels first: some of the others start from them
BACKBONES = $(foreach size,nano mini,$(addprefix vit_$(size)_patch4_24,.mae .mae_leaves) vit_$(size)_patch4_24) \
	$(addprefix vit_micro_patch4_24,.mae_leaves .mocov3_leaves .clip) vit_micro_patch4_24 swin_micro_patch3_24 resnet_micro_24
TESTS ?= tests

SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
# Where environment.yml's environment is active, it is the only one.
ifeq ($(CONDA_DEFAULT_ENV),visprompt)
BIN := $(CONDA_PREFIX)/bin
READY :=
endif
TORCH_INDEX ?=
export OMP_NUM_THREADS ?= 1
# Recipes read what the user gave from the environment, where quotes and # have no meaning.
export TORCH_INDEX PROFILE DEVICE GPUS JOBS_A_CARD DATA CORES NAME ARGS $(NARROWING)
# The user of a container may have no name and no home folder; Snakemake asks for both, Jupyter for the second.
export USER ?= $(shell id -un 2>/dev/null || id -u)
ifeq ($(shell [ -w ~ ] || echo none),none)
export HOME := $(CURDIR)/build/home
endif
# Two makes in one folder take turns; a killed one leaves no lock behind.
TURN := $(if $(shell command -v flock),flock build/.turn,)
WAIT := $(if $(TURN),flock -n build/.turn true || echo "Waiting for another make in this folder.";,)
SNAKEMAKE = mkdir -p build; $(WAIT) $(TURN) $(BIN)/snakemake --nolock \
	--cores "$$CORES" --resources gpu="$$((GPUS * JOBS_A_CARD))" --rerun-incomplete --keep-going --quiet host \
	--config $(MORE) profile="$$PROFILE" device="$$DEVICE" gpus="$$GPUS" jobs_a_card="$$JOBS_A_CARD" data_dir="['$$(sed "s/'/''/g" <<<"$$DATA")']" \
	$(foreach name,$(NARROWING),$(if $($(name)),$(shell echo $(name) | tr A-Z a-z)="['$$(sed "s/'/''/g" <<<"$$$(name)")']")) --
# What snakemake itself would refuse at length; the rest is checked in the Snakefile, for clusters too.
CHECK = [[ "$$CORES" =~ ^([1-9][0-9]*|all)$$ ]] || \
	{ echo "CORES is '$$CORES'; write a number, such as CORES=2"; exit 2; }; \
	[[ "$$GPUS" =~ ^[0-9]+$$ ]] || { echo "GPUS is '$$GPUS'; write a number, such as GPUS=1"; exit 2; }; \
	[[ "$$JOBS_A_CARD" =~ ^[1-9][0-9]*$$ ]] || \
	{ echo "JOBS_A_CARD is '$$JOBS_A_CARD'; write a number, such as JOBS_A_CARD=2"; exit 2; }; \
	bash -nc "true $$ARGS" 2>/dev/null || \
	{ echo "ARGS cannot be read, perhaps for an odd quote; write as in ARGS=\"-p seeds '[0]'\""; exit 2; }; \
	{ mkdir -p build && [ -w . ] && head -c 1000000 /dev/zero > build/.room; } 2>/dev/null || \
	{ rm -f build/.room 2>/dev/null; \
	  echo "This folder cannot be written: free space on its disk, or work in a copy of it that is yours."; exit 2; }; \
	rm -f build/.room

.PHONY: help book pdf sweep rehearsal test test-quick test-cluster notebook lab bench card wheels release lock pretrain clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /: /' | awk -F': ' '{printf "  make %-12s %s\n", $$1, $$2}'

book: $(READY)  ## run what changed, build the website in build/site (PROFILE=paper DATA= DEVICE= GPUS= CORES= PAPERS= TASKS= …)
	@$(CHECK); $(SNAKEMAKE) build/site.done
	@echo "Open build/site/index.html in a browser."

sweep: MORE = sweep=build/sweep.json
sweep: $(READY)  ## run a plan as jobs of MINUTES=30, as in ARTIFACTS="spt.table-3" PROFILE=paper (DATA= PAPERS= TASKS= …)
	@$(CHECK); $(BIN)/python -m visprompt batches $(or $(ARTIFACTS),$(PAPERS)) --profile "$$PROFILE" \
	  --minutes $(or $(MINUTES),30) $${PRECISION:+--precision "$$PRECISION"} $${DATA:+--data "$$DATA"} \
	  $${TASKS:+--tasks $$TASKS} $${METHODS:+--methods $$METHODS} $${SEEDS:+--seeds $$SEEDS} \
	  $${BACKBONE:+--backbone "$$BACKBONE"} $${WEIGHTS:+--weights $$WEIGHTS} --out build/sweep.json
	@$(SNAKEMAKE) sweep

# A stage of its own, where all that is large is small and all numbers mean nothing; ends with a table of what was filled.
rehearsal: MORE = weights="['$$WEIGHTS']"
rehearsal: $(READY)  ## run the paper profile's runs and pages with stand-ins, in build/rehearsal (CORES= PAPERS= ARTIFACTS=)
	@$(CHECK); mkdir -p build; $(BIN)/python -m visbook.site.rehearsal prepare build/rehearsal
	@cd build/rehearsal && export VISPROMPT_ROOT="$$PWD" PROFILE=rehearsal DATA="$$PWD/data" && \
	  WEIGHTS="$$(.venv/bin/python -m visbook.site.rehearsal weights .)" && export WEIGHTS && \
	  if [ -n "$(ARTIFACTS)" ]; then .venv/bin/python -m visprompt study $(ARTIFACTS) --profile rehearsal \
	    --seeds $(or $(SEEDS),0) --device "$$DEVICE" --data-dir "$$DATA" --weights $$WEIGHTS; \
	  else WANTED="$$(.venv/bin/python -m visbook.site.rehearsal pages . $(PAPERS))" && \
	    { $(SNAKEMAKE) $$WANTED; .venv/bin/python -m visbook.site.rehearsal report . $(PAPERS); }; fi

test: $(READY)  ## run the tests, of the costly ones some (TESTS=tests/test_site.py for a file, VISPROMPT_WHOLE=1 for all)
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(TESTS)

test-quick: $(READY)  ## the tests without the costly ones and those that run whole programs
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not whole and not costly" $(TESTS)

test-cluster: $(READY)  ## sweeps of 100 jobs through a Slurm of three nodes on this machine; Debian, root (VISPROMPT_CLUSTER_JOBS=)
	@command -v slurmctld slurmd munged sbatch >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq slurmctld slurmd slurm-client munge >/dev/null; }
	VISPROMPT_CLUSTER_JOBS=$${VISPROMPT_CLUSTER_JOBS:-100} $(BIN)/python -m pytest -q -rs tests/test_cluster.py

notebook: $(READY)  ## run one notebook into build/notebook, as in NAME=ap ARGS="-p seeds '[0]'"
	@[[ "$$NAME" != */* && -f "notebooks/$$NAME.py" ]] || \
	  { echo "Write NAME=..., one of: $(patsubst notebooks/%.py,%,$(wildcard notebooks/*.py))"; exit 2; }
	@$(CHECK); $(SNAKEMAKE) "build/ipynb/$$NAME.ipynb"
	@mkdir -p build/notebook
	$(BIN)/papermill --cwd . "build/ipynb/$$NAME.ipynb" "build/notebook/$$NAME.ipynb" \
	  -p profile "$$PROFILE" -p device "$$DEVICE" $(ARGS)

# JupyterLab is no part of the lock: it is installed when it is first asked for, and changes no locked version.
LAB := jupyterlab==4.4.5
lab: $(READY)  ## open the pages in JupyterLab; saving one writes its .py, by Jupytext (ARGS=--no-browser)
	@mkdir -p build/lab && grep -oE '^[^ ]+==[^ ]+' requirements.lock > build/lab/locked.txt
	@$(BIN)/python -c "import jupyterlab" 2>/dev/null || \
	  $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint build/lab/locked.txt "$(LAB)"
	@$(BIN)/jupytext-config --settings-file build/lab/labconfig/default_setting_overrides.json set-default-viewer python
	JUPYTER_CONFIG_PATH="$$PWD/build/lab" $(BIN)/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks $(ARGS)

bench: $(READY)  ## time the methods on this machine
	@$(CHECK)
	$(BIN)/python -m visprompt bench $(ARGS)

# Where there is neither a network nor make: VISPROMPT_COMMIT=... python3 -m visbook.studies.card, with src and the folder
# of wheels on PYTHONPATH. CARD has weights/ and photographs/ for the part photographs.
card: $(READY)  ## what a GPU is asked first, in parts of some minutes, into build/card (PARTS="run=130 bench", CARD=folder)
	$(BIN)/python -m visbook.studies.card $(if $(PARTS),--parts $(PARTS)) $(if $(CARD),--folder "$(CARD)") $(ARGS)

wheels: $(READY)  ## what a machine with PyTorch and the usual packages lacks, into build/wheels (PYTHON_VERSION=3.12 WHEELS=...)
	rm -rf build/wheels && mkdir -p build/wheels
	$(BIN)/python -m pip download --quiet --no-deps --only-binary=:all: --python-version $(or $(PYTHON_VERSION),3.12) \
	  --implementation cp $(foreach glibc,17 24 27 28 34,--platform manylinux_2_$(glibc)_x86_64) --platform manylinux2014_x86_64 \
	  -d build/wheels $(foreach name,$(WHEELS),$(shell grep -oE "^$(name)==[^ ]+" requirements.lock))

pdf: book  ## print the whole book into build/book.pdf (needs Chromium)
	$(BIN)/python -m visbook.site.pdf build/book.pdf

release: book  ## source, wheels, records and site with checksums, built twice, into build/release/COMMIT (BEFORE=an older claims.csv)
	@at="build/release/$$(git rev-parse --short=12 HEAD)"; rm -rf "$$at"; \
	  $(BIN)/python -m visbook.site.release "$$at" $(if $(BEFORE),--before "$(BEFORE)")

pretrain: $(READY)  ## train the small backbones of the quick profile again (NAME=... for one of them; hours, see The small world)
	@for name in $${NAME:-$(BACKBONES)}; do $(BIN)/python -m visbook.pretraining.pretrain "$$name" || exit 1; done

lock:  ## renew requirements.lock from the two project files (needs the network)
	rm -rf build/lock-venv && mkdir -p build
	$(call python) -m venv build/lock-venv
	build/lock-venv/bin/pip install --quiet uv
	{ echo "# Every package that make book and make test install, with hashes. Renew with: make lock"; \
	  build/lock-venv/bin/uv pip compile --quiet --upgrade --python-version 3.11 --extra test --generate-hashes \
	    --no-emit-index-url --no-annotate --no-header pyproject.toml src/visbook/pyproject.toml \
	  | sed -E "s/^((triton|nvidia-[^=]*|cuda-[^=]*)==[^ ]+) /\1 ; sys_platform == 'linux' /"; } > build/requirements.lock
	mv build/requirements.lock requirements.lock

clean:  ## remove what was built; the records of runs and .venv stay
	rm -rf $(addprefix build/,ipynb running executed notebook pages jupyter-book site site.old site.done home lab lock-venv \
	  from-nothing)

# The first Python of version 3.11 on this computer.
python = $$(for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && { command -v $$p; exit; }; \
	done; echo "no-python-3.11")

PIP = $(BIN)/python -m pip install --disable-pip-version-check
# With TORCH_INDEX=ADDRESS torch and torchvision come from there, as built for a processor alone, and no GPU's libraries.
WITHOUT_TORCH = '/^[a-z]/ {gone = /^(torch|torchvision|triton|nvidia-.*|cuda-.*)==/} !gone'
# The stamp is written last, so that a setup that was killed is done again.
$(READY): requirements.lock pyproject.toml src/visbook/pyproject.toml
	@p=$(call python); if [ "$$p" = no-python-3.11 ]; then \
	  echo "Python 3.11 is needed and was not found. Install it (for example: conda create -n py311 python=3.11,"; \
	  echo "or uv python install 3.11), see that python3.11 is on the PATH, and run make again."; exit 1; fi; \
	echo "Setting up .venv with $$p: about 130 packages, several minutes the first time."; \
	"$$p" -m venv .venv
	$(PIP) --progress-bar off --require-hashes -r $(if $(TORCH_INDEX),<(awk $(WITHOUT_TORCH) requirements.lock),requirements.lock)
	$(if $(TORCH_INDEX),$(PIP) --no-deps --index-url "$$TORCH_INDEX" $$(grep -oE '^torch(vision)?==[^ ]+' requirements.lock))
	$(PIP) --quiet --no-deps --no-build-isolation -e . -e src/visbook
	@touch $(READY)
