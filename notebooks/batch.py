# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A batch of the plan
#
# Some of the runs that `visprompt plan` lists, one after the other. It leaves a record a run; the pages of the book
# then find those. `visprompt batches` cuts a plan into such batches, and `make sweep` runs them, here or on a cluster.

# %% tags=["parameters"]
profile = "paper"
device = "cpu"
artifacts = None  # of the plan, such as [spt.table-3]; None: all
runs = None  # ids of their runs, as `visprompt batches` writes them; None: all
tasks = None  # none but these, as `visprompt batches` was told; likewise the next three
methods = None
seeds = None
backbone = None
data_dir = None  # folder of the tasks that are not embedded
weights = "pretrained"  # or NAME=FILE for each backbone whose weights have no address
epochs = None  # in place of the recipe's
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %%
from dataclasses import dataclass

from visbook.pages.parameters import FitParameters, read_parameters
from visbook.studies import batches


@dataclass(frozen=True)
class BatchParameters(FitParameters):
    artifacts: list[str] | None = None
    runs: list[str] | None = None
    tasks: list[str] | None = None
    methods: list[str] | None = None
    seeds: list[int] | None = None
    backbone: str | None = None
    data_dir: str | None = None
    weights: str | list[str] | None = "pretrained"


p = read_parameters(BatchParameters, globals())
narrowed = {"backbone": p.backbone, "tasks": p.tasks or (), "methods": p.methods or ()}
plan = batches.planned_runs(p.artifacts, p.plan, seeds=p.seeds, **narrowed)
todo = batches.chosen(plan, p.runs)
frame = batches.do(
    todo,
    weights=p.weights,
    data_dir=p.data_dir,
    device=p.device,
    changes=p.changes,
    profile=p.profile,
)
frame[["id", "backbone", "task", "method", "seed", "rate", "val", "fit_seconds"]]
