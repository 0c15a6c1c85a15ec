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
# Small trained layers next to those of the frozen network, or after them.
#
# [How to read the pictures and the costs](methods.ipynb) is on the first page about methods.

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
# Two thin matrices, $A$ ($r \times D$) and $B$ ($D \times r$), change the query and value projections of every block
# {cite}`hu2021`; $B$ is initialised to zero. timm has queries, keys and values in one layer. A single $A$ for that layer
# would couple the three, so each projection has its own. The rank of 10 is AP's, the targets are the original paper's;
# `rank`, `alpha` and `targets` change them. After training the product is added to the weights, so inference costs nothing
# more.

# %% name="lora" tags=["hide-input"]
page.method("lora", "LoRA: a low-rank path parallel to the query and value projections.")

# %% [markdown]
# (method-adapter)=
# ## Adapter (`adapter`)
#
# *Houlsby et al., Figure 2, which prints no equation:*
#
# $$ y \leftarrow y + W_{\mathrm{up}} \, \phi(W_{\mathrm{down}} \, y + b_{\mathrm{down}}) + b_{\mathrm{up}} $$
#
# A bottleneck with an activation $\phi$ (here GELU) follows attention and MLP {cite}`houlsby2019`, inside the residual
# branch. $W_{\mathrm{up}}$ is initialised to zero, so the adapter begins as the identity. The papers state neither width nor
# position. The defaults are the two positions of the original; `places=("mlp",)` is the later variant with one.

# %% name="adapter" tags=["hide-input"]
page.method("adapter", "Adapter: a bottleneck after attention and after the MLP.")

# %% [markdown]
# (method-adaptformer)=
# ## AdaptFormer (`adaptformer`)
#
# *AdaptFormer, Eq. 3-4:*
#
# $$ \begin{aligned} \tilde{x}_l &= \mathrm{ReLU}(\mathrm{LN}(x'_l) \, W_{\mathrm{down}}) \, W_{\mathrm{up}} \\
# x_l &= \mathrm{MLP}(\mathrm{LN}(x'_l)) + s \, \tilde{x}_l + x'_l \end{aligned} $$
#
# The bottleneck is parallel to the MLP instead of after it, and a constant $s$ scales it {cite}`chen2022`. As in the
# equation, it reads the same input as the MLP, after the LayerNorm; the released code reads the tokens before the LayerNorm.

# %% name="adaptformer" tags=["hide-input"]
page.method("adaptformer", "AdaptFormer: a bottleneck parallel to the MLP.")

# %% [markdown]
# (method-ssf)=
# ## SSF (`ssf`)
#
# *SSF, for the output $x$ of each layer:*
#
# $$ y = \gamma \odot x + \beta $$
#
# After the patch embedding, every linear layer and every norm, each channel is scaled and shifted {cite}`lian2022`. The
# original initialises $\gamma$ and $\beta$ randomly, close to 1 and 0. We use exactly 1 and 0, so that training begins as a
# linear probe. After training they are merged into the weights.

# %% name="ssf" tags=["hide-input"]
page.method("ssf", "SSF: scale and shift after every layer.")

# %% [markdown]
# ## Try it
#
# The other methods of this page are `"lora"`, `"adapter"` and `"adaptformer"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ssf")

# %% tags=["remove-output", "remove-input"]
page.close()
