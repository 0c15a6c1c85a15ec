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
# Every prompt method here has a plain form, which follows the paper's formula literally. Most also have a faster form that
# gives the same numbers, for three reasons. A prompt whose output is discarded is only a key and a value, the same for
# every image of a batch. In the last block only the class token is read. And whatever comes before the first trained block
# never changes, so it can be computed once and cached.
#
# **What this page can settle.** Parameters, operations and a lower bound of memory follow from the architecture and hold on
# any machine (`derived`). Times belong to the machine named next to them (`measured`); random weights are sufficient for
# them. We never compare times across machines, only ratios measured on one machine or printed in one paper.
#
# The costs that the papers print are on [](cost_papers.ipynb).

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
# ## The benchmark
#
# Each row compares two things, A / B. Both are timed in one process in alternation: one step of A, one step of B, and so on,
# after a round that is not counted. The *ratio* is the median over rounds of A's time divided by B's; the *range* is also
# over rounds. A step is forward, loss, backward and optimiser. *By operations* is the ratio that counted multiply-adds
# (forward and backward) would give. To add your machine, run `make bench` and then `make notebook NAME=cost`.
#
# **Cached activations.** If the lowest trained parameter enters at block $l$ of $L$, the activations below it never change
# and can be cached. Without caching, a step costs $L$ forward and $L - l$ backward block passes, because backpropagation
# stops at block $l$. With caching it costs $2 (L - l)$. The best possible ratio is therefore $2(L - l) / (2L - l)$. Late
# blocks do even better, because the last block computes only the class token. DA-VPT's clustering, once per epoch, is not
# part of a step.

# %% name="bench" tags=["hide-input"]
for machine in page.machines:
    page.show_bench(machine)
if not any(r.settings["device"] == "cpu" for r in page.timed):
    page.not_timed("The benchmark on a CPU", "OMP_NUM_THREADS=2 make bench")
if not any(r.settings["device"] == "cuda" for r in page.timed):
    page.not_timed("The benchmark on a GPU", 'make bench ARGS="--device cuda"')

# %% [markdown]
# ## How cost grows with the number of prompts
#
# The plain form appends the prompts to the tokens, so that every prompt goes through the whole block. As keys and values,
# prompts cost only their projection, once per batch, and their share of attention.

# %% name="growth" tags=["hide-input"]
page.show_growth(cost.growth())

# %% [markdown]
# ## Memory and parameters, method by method
#
# A training step must hold all weights, a gradient and Adam's two moments for every trained parameter, and the activations
# that backpropagation needs. The framework's workspace comes on top. Activations make the difference: a prompt on the image
# needs backpropagation through every block, a linear probe through none. Each method has its default settings
# ([](methods.ipynb)); constant activations are cached.

# %% name="memory" tags=["hide-input"]
memory = {slug: bench.counted_memory(slug) for slug in progress(bench.BY_METHOD, "counting memory")}
order = sorted(memory, key=lambda slug: memory[slug].values["memory"]["total"], reverse=True)
page.present(
    cost.draw_memory(memory, order),
    evidence="derived",
    records=list(memory.values()),
    caption=f"Memory of a training step (left) and trained parameters (right, logarithmic axis), {bench.BASE}, batch "
    f"{bench.MEMORY_BATCH}, float32.",
    how="Counted on shapes; default settings of each method, 100 classes.",
    alt=f"Memory in GiB by method: {cost.memory_told(memory, order)}.",
)

# %% [markdown]
# ## Time for one VTAB-sized task
#
# 800 training images, 100 epochs, ViT-Base/16. The time is the measured step times the number of steps, plus, for methods
# with a cache, the one pass that fills it. Each method has its default settings. We leave out what happens only once or
# once per epoch: SPT's initialisation, DA-VPT's clustering, evaluation. E2VPT trains twice, before and after pruning. Among
# the papers only iVPT prints such a time ({ref}`Table 8 <ivpt.table-8>`).

# %% name="vtab" tags=["hide-input"]
for machine in page.machines:
    for record in page.of(machine, "methods"):
        page.show_task(record)
if not any(r.settings["name"] == "methods" for r in page.timed):
    page.not_timed("The step of every method", "OMP_NUM_THREADS=2 make bench")

# %% [markdown]
# ## One run on a GPU, by part
#
# As in VTAB-1k, 800 training and 200 validation images of 224 pixels are joined for training. We test on 2,000 images.
# Batches of 64, ten prompts per block; float32 without TF32 in matrix products. We ran six epochs. The time of 100 epochs
# is that of the first epoch, 99 times the median of the later ones, and the parts that come once, without decoding the
# images. An epoch includes its validation.

# %% name="gpu" tags=["hide-input"]
page.show_whole_runs()

# %% tags=["remove-output", "remove-input"]
page.close()
