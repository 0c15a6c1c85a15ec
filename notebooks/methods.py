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
# Every method of this book adapts a frozen network to a task by training a few parameters and a linear head. There is one
# page per family, with what is added and where, the equation, the code and the cost: [](methods_baselines.ipynb),
# [](methods_adapters.ipynb), [](methods_added.ipynb), [](methods_prompts.ipynb), [](methods_ivpt.ipynb),
# [](methods_spt.ipynb) and [](methods_davpt.ipynb). This page says how to read them and compares all methods. The pictures
# are drawn by this book's code; a picture that corresponds to a drawing of a paper {cite}`ivpt,davpt,spt` has its name.
#
# All methods run on one loop over the blocks. A test compares the outputs and gradients of each with its plain definition.
# Everything except the learning rates at the end follows from code and architecture (`derived`). Some
# released code differs from its paper: see [](../released-code.md).

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
# A picture shows the whole network, the inside of one block, or both. Trained parts have one colour, frozen parts are
# grey, and dashed tokens are outputs that are not used. Blocks are counted from 0 to $L-1$. The order of tokens in a column
# means nothing, because attention does not see it and positions are added in the stem. The pictures show a ViT whose head
# reads the class token; without a class token it reads the mean of the patches. The head is trained in every method.

# %% name="vit" tags=["hide-input"]
page.picture("vit", "A vision transformer, and the inside of one of its blocks.")

# %% [markdown]
# (block-loop)=
# ## One loop, and what a method changes in it
#
# A frozen network is one loop over its blocks. A method is a class with hooks that the loop calls: before a block, around a
# block or a layer inside it, for additional keys and values, and after the last block. Other hooks only observe. Each
# method's page shows the code of that method. The code that all methods share is below; open a box to read it.

# %% name="loop" tags=["remove-input"]
method_code.show_loop()

# %% [markdown]
# ## How to read the costs
#
# Below each picture is the cost of the method with its default settings. GMACs are billions of multiply-adds in the forward
# pass of a training step, per image; work that a batch shares is divided by the batch size. We count matrix products,
# convolutions and attention, but no element-wise operations. Each count is also given relative to the bare backbone, run as
# the papers run it. Most ratios are below 1, but not because of the method: where the head reads only the class token,
# {ref}`the last block computes only that token <method-keys-and-values>`.

# %% name="costs" tags=["hide-input"]
costs = {slug: methods.cost(slug) for slug, _, _ in progress(methods.by_idea(), "counting")}
trimmed = costs["linear-probe"]
page.table(
    [methods.reference_row(trimmed)], "The reference for all costs.", [methods.bare(), trimmed]
)

# %% [markdown]
# ## All methods side by side
#
# Trained parameters do not include the head. LoRA, SSF and BIAS can be merged into the weights after training; then they
# cost nothing at inference.

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
# Choose a backbone, the number of prompts and the number of classes. The table is updated, and the line below it builds the
# selected method. Parameters, operations and memory are at most quadratic in the number of prompts, so three counts give
# all others exactly. Operations are for a single image, in GFLOPs (two per multiply-add). Memory is what a training step
# must hold in float32 with Adam, without the framework's workspace. All other settings are the method's defaults.

# %% name="explorer" tags=["hide-input"]
method_explorer.show(page, method_explorer.all_counts())

# %% [markdown]
# ## All settings and their reasons
#
# The table is read from the code, with the comments there as reasons. Methods that are missing have no settings. DA-VPT+
# also has all settings of DA-VPT.

# %% name="settings" tags=["hide-input"]
page.table(methods.all_settings(), "Settings of the methods.", how="Read from the code.")

# %% [markdown]
# (method-rates)=
# ## The quick recipe's learning rates
#
# We tried five learning rates for each method on the task `position` with seed 0. The one with the best validation accuracy
# went into the quick recipe; we did not look at test accuracies. The runs below use other random numbers than those that
# made the choice. The last column says how far the recipe's learning rate is below the best of its row. With 200 validation
# images the standard error is up to 3.5 points, so neighbouring learning rates often cannot be distinguished. The studies
# in the chapters search around the recipe's learning rate.

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
