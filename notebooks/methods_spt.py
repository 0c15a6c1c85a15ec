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
# # The methods: prompts initialised from the task (SPT)
#
# Prompts that start as tokens of the task's own images. The drawings of the paper {cite}`spt` have their counterparts
# here, under their printed names.
#
# [How to read the pictures and the costs](methods.ipynb) stands on the first page on the methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import method_checks
from visbook.chapters.methods import MethodsPage
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = MethodsPage("methods_spt", p)

# %% [markdown]
# (spt.figure-1)=
# (method-spt-shallow)=
# ## SPT-Shallow (`spt-shallow`), Figure 1 of its paper
#
# *SPT, Eq. 9 and 11:*
#
# $$ \arg\min_{\mathbb{S}_i} \sum_{j=1}^{N_p} \sum_{\mathbf{x}^j \in \mathbb{S}_i^j}
# \lVert \mathbf{x}^j - \mathbf{c}_i^j \rVert^2,
# \qquad [\mathbf{x}_1, \mathbf{Z}_1, \mathbf{E}_1] = B_1([\mathbf{x}_0, \mathbf{C}_0, \mathbf{E}_0]) $$
#
# VPT-Shallow whose prompts start as patch tokens of the task: k-means over all of them (Eq. 9-10), means or maxima of
# a window, or a random draw (Section 3.4), which is the default, the paper's choice after Table 4. The paper draws
# from the tokens of one batch, its code from those of all training images; here `images` says from how many, by
# default from all. Places are drawn first: only the images drawn, at most one a prompt, pass through the network.
# Tokens are taken with their position (Eq. 1); the released code takes them before it is added. `frozen=True` trains
# the head alone (Table 4a).

# %% name="spt.figure-1" tags=["hide-input"]
page.method(
    "spt-shallow",
    "SPT-Shallow: patch tokens of the task become the prompts' start.",
    "spt.figure-1",
)

# %% [markdown]
# (method-spt-deep)=
# ## SPT-Deep (`spt-deep`)
#
# *SPT, Eq. 13:*
#
# $$ [\mathbf{x}_i, -, \mathbf{E}_i] = \mathrm{B}_i([\mathbf{x}_{i-1}, \mathbf{C}_{i-1}, \mathbf{E}_{i-1}]) $$
#
# VPT-Deep whose prompts start as tokens that enter their own block, without the class token. `source` takes the first
# or the last level for all blocks instead (Table S2).

# %% name="spt-deep" tags=["hide-input"]
page.method(
    "spt-deep", "SPT-Deep: each block's prompts start as tokens of its own level.", "spt.figure-1"
)

# %% [markdown]
# (spt.figure-s2)=
# ## SPT, Figure S2: Prompt initialisation strategies
#
# The settings are `start="uniform"` for (a), `source="first"` or `"last"` for (b), the default for (c) and
# `frozen=True` for (d).

# %% name="spt.figure-s2" tags=["hide-input"]
page.counterpart(
    "spt.figure-s2", "spt.figure-s2", "Where prompts start: four strategies, three levels each."
)

# %% [markdown]
# What Figures 1 and S2 assert holds for the methods as built: initial prompts are patch tokens of their own block, and
# nothing is trained beside prompts and head, or beside the head where prompts are frozen.

# %% name="spt-drawings" tags=["hide-input"]
held = method_checks.spt_starts()
for what, name in {
    "Distance of initial prompts from the nearest patch tokens of their block, largest": "distance",
    "Trained entries beside prompts and head": "outside",
    "Trained entries of the encoder": "encoder",
    "Trained entries beside the head where prompts are frozen": "frozen",
}.items():
    page.checked(what, held.values[name], at_most=1e-5)

# %% [markdown]
# ## Try it
#
# The other of this page is `"spt-deep"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("spt-shallow", prompt_tokens=20)

# %% tags=["remove-output", "remove-input"]
page.close()
