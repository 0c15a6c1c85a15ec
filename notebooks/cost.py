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
# # What the methods cost
#
# Every prompt method here has a plain form, the paper's formula taken at its word, and most have a faster one that
# gives the same numbers. Three facts make it faster. A prompt whose output is dropped is a key and a value and
# nothing else, the same for every image of a batch. In the last block only the class token is read. And whatever
# lies below the first trained block is constant, so it can be computed once and kept.
#
# **What this page can settle.** Parameters, operations and a lower bound of the memory follow from the architecture
# and hold on any machine (`derived`). Times belong to the machine that is named beside them (`measured`); random
# weights serve as well as any. Times of different machines are never compared, only ratios that one machine, or one
# paper, gives by itself.
#
# The costs that the papers print stand beside ours on [](cost_papers.ipynb).

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import cost
from visbook.pages.parameters import Parameters, read_parameters
from visbook.studies import bench
from visprompt.progress import progress

p = read_parameters(Parameters, globals())
page = cost.CostPage("cost", p)

# %% [markdown]
# ## The bench
#
# `make bench` times both sides of a pair in one process, in turns: one step of the first, one of the second, and so
# on, after a round that is not counted. The ratio is the median over rounds of the first's time over the second's,
# and the range is over rounds too. A step is forward, loss, backward and optimizer. *Aim* is what this project set
# itself before it measured. *By operations* is the ratio that counted multiply-adds, forward and backward, would give.
# "a / b" are the two sides. `make bench` leaves records; `make notebook NAME=cost` then shows this machine's too.
#
# How to read the rows of cached activations. With the first trained thing in front of block $l$ of $L$, what lies
# below is computed once. The aim, $(L - l) / L$ of the plain time, supposes a plain step that goes through all $L$
# blocks both ways. Autograd already stops its way back at block $l$, so the plain step costs $L + (L - l)$ block
# passes and the cached one $2 (L - l)$; their ratio, $2(L - l) / (2L - l)$, is what can be reached. The last blocks
# come below it, because the last one computes the class token alone. DA-VPT maps classes to prompts again once an
# epoch; that is not part of a step.

# %% name="bench" tags=["hide-input"]
for machine in page.machines:
    page.show_bench(machine)
if not any(r.settings["device"] == "cpu" for r in page.timed):
    page.not_timed("The bench on a CPU", "OMP_NUM_THREADS=2 make bench")
if not any(r.settings["device"] == "cuda" for r in page.timed):
    page.not_timed("The bench on a GPU", 'make bench ARGS="--device cuda"')

# %% [markdown]
# ## How cost grows with the number of prompts
#
# The plain form appends the prompts to the tokens, so that each goes through the whole block. As keys and values
# they cost their projection, which a batch shares, and their part of attention.

# %% name="growth" tags=["hide-input"]
page.show_growth(cost.growth())

# %% [markdown]
# ## Memory and parameters, method by method
#
# What a training step must hold at once: all weights, a gradient and Adam's two moments for whatever is trained, and
# what autograd keeps for the way back. A framework's workspace comes on top. Activations make the difference: a
# prompt at the image needs the way back through every block, the linear probe none. Each method has its default
# settings, which are listed on the page of methods; what is constant is cached.

# %% name="memory" tags=["hide-input"]
memory = {slug: bench.counted_memory(slug) for slug in progress(bench.BY_METHOD, "counting memory")}
order = sorted(memory, key=lambda slug: memory[slug].values["memory"]["total"], reverse=True)
page.present(
    cost.draw_memory(memory, order),
    evidence="derived",
    records=list(memory.values()),
    caption=f"Memory of a training step and trained parameters at {bench.BASE}, batch {bench.MEMORY_BATCH}, float32.",
    how="Counted on shapes; default settings of each method, 100 classes.",
    alt=f"Bars by method, from {cost.NAMES[order[0]]} with most memory to {cost.NAMES[order[-1]]} with least; beside "
    "them the trained parameters on a logarithmic axis.",
)

# %% [markdown]
# ## Time for one VTAB-sized task
#
# 800 training images, 100 epochs, ViT-Base/16: 80,000 images through a training step. The time is the measured step
# times the number of steps, and for methods with a cache the one pass that fills it. Each method has its default
# settings. What comes once or once an epoch is left out: SPT's start, DA-VPT's clusters, evaluation. E2VPT trains
# twice, before and after it prunes. Of the papers only iVPT prints such a time ({ref}`Table 8 <ivpt.table-8>`).

# %% name="vtab" tags=["hide-input"]
for machine in page.machines:
    for record in page.of(machine, "methods"):
        page.show_task(record)
if not any(r.settings["name"] == "methods" for r in page.timed):
    page.not_timed("The step of every method", "OMP_NUM_THREADS=2 make bench")

# %% [markdown]
# ## One run on a GPU, by part
#
# 800 images at 224 pixels to train on and 200 to validate, as in VTAB-1k, joined for training; 2,000 to test, which is
# our choice; batches of 64, ten prompts per block. Float32 is without TF32 in matrix products. Six epochs were run. The
# time of 100 is the first epoch's, 99 times the median of the later ones, and what comes once, without the decoding.
# An epoch includes its validation.

# %% name="gpu" tags=["hide-input"]
page.show_whole_runs()

# %% tags=["remove-output", "remove-input"]
page.close()
