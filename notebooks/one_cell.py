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
# # One cell at the paper's scale
#
# Reproduce one printed number on any GPU that you are lent, a hosted one included. The notebook fetches one
# checkpoint and one VTAB task, tunes one method, prints the result beside the paper's, and leaves the record in one
# file. It needs Python 3.11 or later, PyTorch, and this repository. With the defaults it takes some minutes on a
# recent GPU; the learning rate is the recipe's, so the paper's search is not repeated.

# %% tags=["parameters"]
table = "ivpt.table-1"
row = "VPT-Deep"  # as the plan names it: `visprompt artifacts` lists tables
task = "caltech101"
column = ""  # the printed column, where it has another name than the task
device = "cuda"
data_dir = "build/data"
weights = "pretrained"  # or a file
backbone = ""  # another network than the table's, for a trial
epochs = 0  # other than the recipe's, for a trial

# %%
# In a hosted notebook, inside a clone of the repository: install both packages.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("visbook") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", ".", "./src/visbook"], check=True)

# %%
from pathlib import Path

from visbook.studies import one_cell

cell = one_cell.chosen(table, row, task)
print(f"{cell.run.label}, recipe {cell.recipe}")
one_cell.fetch(cell, Path(data_dir))

# %%
more = {"epochs": epochs} if epochs else {}
record = one_cell.run(cell, Path(data_dir), device, weights=weights, backbone=backbone, **more)
paper = one_cell.printed(table, row, column or task)
said = (
    "no printed number was found; name the column" if paper is None else f"the paper prints {paper}"
)
print(
    f"test accuracy {record.values['test']:.2f} % after {record.seconds / 60:.1f} minutes; {said}"
)

# %% [markdown]
# One seed and the recipe's learning rate: a gap of a point or two says little. Send the file below with an issue;
# `visprompt merge` takes it once unpacked.

# %%
print(one_cell.pack(record, Path("build", f"cell-{record.id}.tgz")))
