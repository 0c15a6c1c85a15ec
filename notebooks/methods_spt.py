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
# Prompts are initialised with tokens of the task's own images. Our versions of the paper's drawings {cite}`spt` have their
# printed names.
#
# [How to read the pictures and the costs](methods.ipynb) is on the first page about methods.

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
# VPT-Shallow whose prompts are initialised with patch tokens of the task: k-means centres of all tokens (Eq. 9 and 10),
# means or maxima over a window, or random tokens (Section 3.4). Random tokens are the default, as in the paper after
# Table 4. The paper samples from the tokens of one batch, its code from those of all training images; `images` sets from
# how many, by default all. We choose the positions first, so that only the sampled images, at most one per prompt, pass
# through the network. Tokens include their position (Eq. 1); the released code takes them before it is added.
# `frozen=True` trains only the head (Table 4a).

# %% name="spt.figure-1" tags=["hide-input"]
page.method(
    "spt-shallow",
    "SPT-Shallow: prompts are initialised with patch tokens of the task.",
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
# VPT-Deep whose prompts are initialised with patch tokens that enter their own block. `source` uses the first or the last
# level for all blocks instead (Table S2).

# %% name="spt-deep" tags=["hide-input"]
page.method(
    "spt-deep",
    "SPT-Deep: each block's prompts are initialised with tokens of its own level.",
    "spt.figure-1",
)

# %% [markdown]
# (spt.figure-s2)=
# ## SPT, Figure S2: Prompt initialisation strategies
#
# The settings are `start="uniform"` for (a), `source="first"` or `"last"` for (b), the default for (c) and
# `frozen=True` for (d).

# %% name="spt.figure-s2" tags=["hide-input"]
page.counterpart(
    "spt.figure-s2", "spt.figure-s2", "Four ways to initialise prompts, with three levels each."
)

# %% [markdown]
# Our code does what Figures 1 and S2 show: initial prompts are patch tokens of their own block, and only prompts and head
# are trained, or only the head if prompts are frozen.

# %% name="spt-drawings" tags=["hide-input"]
held = method_checks.spt_starts()
for what, name in {
    "Largest distance of an initial prompt from the nearest patch token of its block": "distance",
    "Trained parameters other than prompts and head": "outside",
    "Trained parameters of the encoder": "encoder",
    "Trained parameters other than the head if prompts are frozen": "frozen",
}.items():
    page.checked(what, held.values[name], at_most=1e-5)

# %% [markdown]
# ## Try it
#
# The other method of this page is `"spt-deep"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("spt-shallow", prompt_tokens=20)

# %% tags=["remove-output", "remove-input"]
page.close()
