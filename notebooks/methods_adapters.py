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
# # The methods: adapters
#
# Small trained layers beside or behind those of the frozen network.
#
# [How to read the pictures and the costs](methods.ipynb) stands on the first page on the methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters.methods import MethodsPage
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = MethodsPage("methods_adapters", p)

# %% [markdown]
# (method-lora)=
# ## LoRA (`lora`)
#
# *LoRA, Eq. 3:*
#
# $$ h = W_0 x + \Delta W x = W_0 x + B A x $$
#
# Two thin matrices, $A$ of $r \times D$ and $B$ of $D \times r$, change the query and the value projection of every
# block {cite}`hu2021`; $B$ starts at zero. timm keeps queries, keys and values in one layer. One $A$ for all of it
# would tie the three together, so each projection has its own. AP names a rank of 10, and the original the targets;
# `rank`, `alpha` and `targets` change them. After training the change is added to the weights, and inference costs
# nothing more.

# %% name="lora" tags=["hide-input"]
page.method("lora", "LoRA: a path of low rank beside the query and value projections.")

# %% [markdown]
# (method-adapter)=
# ## Adapter (`adapter`)
#
# *Houlsby et al., Figure 2, which prints no equation:*
#
# $$ y \leftarrow y + W_{\mathrm{up}} \, \phi(W_{\mathrm{down}} \, y + b_{\mathrm{down}}) + b_{\mathrm{up}} $$
#
# A bottleneck with an activation $\phi$ (GELU here) follows attention and MLP {cite}`houlsby2019`, inside the
# residual branch. It starts at zero through $W_{\mathrm{up}}$. The papers state no width and no place; the
# defaults are the original's two places, and `places=("mlp",)` is the later variant with one.

# %% name="adapter" tags=["hide-input"]
page.method("adapter", "Adapter: a bottleneck behind attention and behind the MLP.")

# %% [markdown]
# (method-adaptformer)=
# ## AdaptFormer (`adaptformer`)
#
# *AdaptFormer, Eq. 3-4:*
#
# $$ \begin{aligned} \tilde{x}_l &= \mathrm{ReLU}(\mathrm{LN}(x'_l) \, W_{\mathrm{down}}) \, W_{\mathrm{up}} \\
# x_l &= \mathrm{MLP}(\mathrm{LN}(x'_l)) + s \, \tilde{x}_l + x'_l \end{aligned} $$
#
# The bottleneck stands beside the MLP instead of behind it, and a fixed $s$ scales it {cite}`chen2022`. Here it reads
# what the MLP reads, behind the LayerNorm, as the equation says; the released code reads the tokens before the
# LayerNorm.

# %% name="adaptformer" tags=["hide-input"]
page.method("adaptformer", "AdaptFormer: a bottleneck beside the MLP.")

# %% [markdown]
# (method-ssf)=
# ## SSF (`ssf`)
#
# *SSF, for what each layer gives:*
#
# $$ y = \gamma \odot x + \beta $$
#
# Behind the patch embedding, every linear layer and every norm, each channel is scaled and shifted {cite}`lian2022`.
# The original starts $\gamma$ and $\beta$ with a small random spread around 1 and 0; here they start there exactly,
# so that training starts at the linear probe. After training they are multiplied into the weights.

# %% name="ssf" tags=["hide-input"]
page.method("ssf", "SSF: scale and shift behind every layer.")

# %% [markdown]
# ## Try it
#
# The others of this page are `"lora"`, `"adapter"` and `"adaptformer"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ssf")

# %% tags=["remove-output", "remove-input"]
page.close()
