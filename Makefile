# make help lists what there is. Everything is made inside this folder; .venv holds the packages.
PROFILE ?= quick
DEVICE ?= cpu
GPUS ?= 1
DATA ?=
CORES ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
NAME ?=
ARGS ?=
# those without labels first: two of the others start from them
BACKBONES = $(foreach size,micro nano mini,vit_$(size)_patch4_24.mae vit_$(size)_patch4_24) vit_micro_patch4_24.mocov3 \
	resnet_micro_24
TESTS ?= tests

SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
export OMP_NUM_THREADS ?= 1
# Recipes read what the user gave from the environment, where quotes and # have no meaning.
export PROFILE DEVICE GPUS DATA CORES NAME ARGS
# Two makes in one folder take turns; a killed one leaves no lock behind.
TURN := $(if $(shell command -v flock),flock build/.turn,)
WAIT := $(if $(TURN),flock -n build/.turn true || echo "Waiting for another make in this folder.";,)
SNAKEMAKE = mkdir -p build; $(WAIT) $(TURN) $(BIN)/snakemake --nolock \
	--cores "$$CORES" --resources gpu="$$GPUS" --rerun-incomplete --keep-going --quiet host \
	--config profile="$$PROFILE" device="$$DEVICE" gpus="$$GPUS" data_dir="['$$(sed "s/'/''/g" <<<"$$DATA")']" --
# What snakemake itself would refuse at length; the rest is checked in the Snakefile, for clusters too.
CHECK = [[ "$$CORES" =~ ^([1-9][0-9]*|all)$$ ]] || \
	{ echo "CORES is '$$CORES'; write a number, such as CORES=2"; exit 2; }; \
	[[ "$$GPUS" =~ ^[0-9]+$$ ]] || { echo "GPUS is '$$GPUS'; write a number, such as GPUS=1"; exit 2; }; \
	bash -nc "true $$ARGS" 2>/dev/null || \
	{ echo "ARGS cannot be read, perhaps for an odd quote; write as in ARGS=\"-p seeds '[0]'\""; exit 2; }

.PHONY: help book test notebook bench lock pretrain clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /: /' | awk -F': ' '{printf "  make %-10s %s\n", $$1, $$2}'

book: $(READY)  ## run what changed, build the website in build/site (PROFILE=paper DATA= DEVICE= GPUS= CORES=)
	@$(CHECK); $(SNAKEMAKE) build/site.done
	@echo "Open build/site/index.html in a browser."

test: $(READY)  ## run the tests (TESTS=tests/test_site.py for some of them)
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder $(TESTS)

notebook: $(READY)  ## run one notebook into build/notebook, as in NAME=ap ARGS="-p seeds '[0]'"
	@[[ "$$NAME" != */* && -f "notebooks/$$NAME.py" ]] || \
	  { echo "Write NAME=..., one of: $(patsubst notebooks/%.py,%,$(wildcard notebooks/*.py))"; exit 2; }
	@$(CHECK); $(SNAKEMAKE) "build/ipynb/$$NAME.ipynb"
	@mkdir -p build/notebook
	$(BIN)/papermill --cwd . "build/ipynb/$$NAME.ipynb" "build/notebook/$$NAME.ipynb" \
	  -p profile "$$PROFILE" -p device "$$DEVICE" $(ARGS)

bench: $(READY)  ## time the methods on this machine
	@$(CHECK)
	$(BIN)/python -m visprompt bench $(ARGS)

pretrain: $(READY)  ## train the small backbones of the quick profile again (NAME=... for one of them; about two hours)
	@for name in $${NAME:-$(BACKBONES)}; do $(BIN)/python -m visprompt.models.pretraining "$$name" || exit 1; done

lock:  ## renew requirements.lock from pyproject.toml (needs the network)
	rm -rf build/lock-venv && mkdir -p build
	$(call python) -m venv build/lock-venv
	build/lock-venv/bin/pip install --quiet uv
	{ echo "# Every package that make book and make test install, with hashes. Renew with: make lock"; \
	  build/lock-venv/bin/uv pip compile --quiet --upgrade --python-version 3.11 --extra book --extra test --generate-hashes \
	    --no-emit-index-url --no-annotate --no-header pyproject.toml; } > build/requirements.lock
	mv build/requirements.lock requirements.lock

clean:  ## remove what was built; the records of runs and .venv stay
	rm -rf $(addprefix build/,ipynb slices running executed notebook pages jupyter-book site site.old site.done lock-venv \
	  from-nothing)

# The first Python of version 3.11 on this computer.
python = $$(for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && { command -v $$p; exit; }; \
	done; echo "no-python-3.11")

# The stamp is written last, so that a setup that was killed is done again.
$(READY): requirements.lock pyproject.toml
	@p=$(call python); if [ "$$p" = no-python-3.11 ]; then \
	  echo "Python 3.11 is needed and was not found. Install it (for example: conda create -n py311 python=3.11,"; \
	  echo "or uv python install 3.11), see that python3.11 is on the PATH, and run make again."; exit 1; fi; \
	echo "Setting up .venv with $$p: about 130 packages, several minutes the first time."; \
	"$$p" -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $(READY)
