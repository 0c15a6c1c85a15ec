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
# # The methods, one picture each
#
# Every method of this book adapts a frozen network to a task by training a few numbers and a linear head. A page for each
# family shows what is added and where, its equation, its code and its cost: [](methods_baselines.ipynb),
# [](methods_adapters.ipynb), [](methods_added.ipynb), [](methods_prompts.ipynb), [](methods_ivpt.ipynb),
# [](methods_spt.ipynb) and [](methods_davpt.ipynb). This page says how to read them and puts all methods side by side.
# The book's code draws the pictures; those that stand for a drawing of a paper {cite}`ivpt,davpt,spt` have its name.
#
# All methods run on one loop over the blocks, and a test holds each against its plain definition, value and gradient.
# All but the learning rates at the end follows from code and architecture (`derived`). [](../released-code.md) says where
# released code differs from its paper.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import method_code, method_explorer, methods
from visbook.pages.parameters import Parameters, read_parameters
from visbook.studies import rates
from visprompt.progress import progress

p = read_parameters(Parameters, globals())
page = methods.MethodsPage("methods", p)

# %% [markdown]
# ## How to read the pictures
#
# A picture shows the whole network, a single block opened, or both. What is trained is in one colour throughout, what
# is frozen is grey, and dashed tokens are outputs that nobody reads. Blocks are counted from 0 to $L-1$. The order of
# tokens in a column means nothing: attention does not see it, and positions were added in the stem. The pictures show
# a ViT that pools its class token; without one, the patches are averaged. The head is trained in every method.

# %% name="vit" tags=["hide-input"]
page.picture("vit", "A vision transformer, and one of its blocks opened.")

# %% [markdown]
# (block-loop)=
# ## One loop, and what a method changes in it
#
# A frozen network is one loop over its blocks. A method is a class whose hooks the loop calls: before a block, around a
# block or a layer in it, for additional keys and values, and after the last block; others only watch what passes. Each
# method's page shows the lines that are the method; what they build on is here once. Open a box to read it.

# %% name="loop" tags=["remove-input"]
method_code.show_loop()

# %% [markdown]
# ## How to read the costs
#
# Under each picture stands what the method costs with its default settings. GMACs are billions of multiply-adds in
# the forward pass of a training step, for one image of a batch; what a batch shares is divided by its size. Matrix
# products, convolutions and attention are counted, and sums or products entry by entry are not. Each count is
# also given as a ratio to the bare backbone, run as the papers run it. Most ratios are below 1 for a reason that is not
# the method: where only the class token is pooled, {ref}`the last block computes only that token
# <method-keys-and-values>`.

# %% name="costs" tags=["hide-input"]
costs = {slug: methods.cost(slug) for slug, _, _ in progress(methods.by_idea(), "counting")}
trimmed = costs["linear-probe"]
page.table(
    [methods.reference_row(trimmed)], "What the lines of costs refer to.", [methods.bare(), trimmed]
)

# %% [markdown]
# ## All methods side by side
#
# Trained parameters are those of the method alone; the head comes on top. LoRA, SSF and BIAS can be merged into the
# weights after training and then cost nothing at inference.

# %% name="summary" tags=["hide-input"]
page.table(
    [
        methods.summary_row(slug, idea, where, costs[slug])
        for slug, idea, where in methods.by_idea()
    ],
    "All methods with their default settings.",
    list(costs.values()),
)

# %% [markdown]
# (method-explorer)=
# ## What a method costs at any size
#
# Choose a backbone, how many prompts and how many classes: the table is counted anew, and below it stands the line
# that builds the picked method. Parameters, operations and memory are at most quadratic in the number of prompts, so
# three counted numbers give all others exactly. Operations are those of one image alone, with nothing to share, in
# GFLOPs: two for each multiply-add.
# Memory is what a training step must hold at once in float32 with Adam; a framework's workspace comes on top.
# Everything else is as the method's default settings have it.

# %% name="explorer" tags=["hide-input"]
method_explorer.show(page, method_explorer.all_counts())

# %% [markdown]
# ## All settings and their reasons
#
# The table is read off the code: a setting's reason is the comment that stands behind it there. Methods that are not
# in it have nothing to choose. DA-VPT+ has all settings of DA-VPT as well.

# %% name="settings" tags=["hide-input"]
page.table(methods.all_settings(), "Settings of the methods.", how="Read off the code.")

# %% [markdown]
# (method-rates)=
# ## The quick recipe's learning rates
#
# Each method was tried with five rates of its prompts or weights on the task `position` with seed 0; the rate with the
# best validation accuracy went into the quick recipe. Test accuracies of these runs were not looked at. The runs shown
# use other random streams than those by which the rates were chosen; the last column says how far the recipe's rate is
# below the best of its row. 200 validation images give a standard error of up to 3.5 points, so that neighbouring
# rates often cannot be told apart. The studies of the chapters search around the recipe's rate.

# %% name="method-rates" tags=["hide-input"]
found = rates.all_searched()
page.table(
    methods.tried_rates(found),
    "Validation accuracy in percent by learning rate; bold: the recipe's.",
    [record for tried in found.values() for record in tried.values()],
    f"On {rates.NETWORK}, task {rates.TASK}, seed 0, 200 validation images.",
    "trend",
)

# %% tags=["remove-output", "remove-input"]
page.close()
