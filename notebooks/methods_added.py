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
# # The methods: added to the image or to activations
#
# One trained tensor, the same for all images, is added to the image or to the input of one block.
#
# [How to read the pictures and the costs](methods.ipynb) is on the first page about methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters.methods import MethodsPage
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = MethodsPage("methods_added", p)

# %% [markdown]
# (method-vp)=
# ## VP (`vp`)
#
# *AP, Section 3:*
#
# $$ g(\mathbf{x}, \delta_{\mathrm{VP}}) = \mathbf{x} + \delta_{\mathrm{VP}}
# \quad \text{or} \quad [\delta_{\mathrm{VP}}, M(\mathbf{x})] $$
#
# One perturbation, the same for all images, is trained {cite}`bahng2022`; $M$ shrinks the image. AP says "additive" unless
# stated otherwise and gives no width for a frame. By default every pixel is trained. `padding` trains a frame of that many
# pixels, and `template="resize"` shrinks the image so that it fits inside. The perturbation is initialised to zero.

# %% name="vp" tags=["hide-input"]
page.method("vp", "VP: a perturbation of the image, and its three templates.")

# %% [markdown]
# (method-ap)=
# ## AP (`ap`)
#
# *AP, Section 3:*
#
# $$ g(\mathbf{z}^{(l)}, \delta^{(l)}) = \mathbf{z}^{(l)} + \delta^{(l)} $$
#
# A tensor with the shape of the activations is added to the input of one block: the third block of a transformer, the
# third-to-last of a ResNet. The activations below that block never change and are cached. `block` names another block or
# several. `kind` selects the paper's other two forms, product and concatenation, for which it states neither the
# initialisation nor the number of tokens. The experiments are on the page on {doc}`AP <ap>`.

# %% name="ap" tags=["hide-input"]
page.method("ap", "AP: a tensor added to the input of one block, and the three kinds.")

# %% [markdown]
# ## Try it
#
# The other method of this page is `"ap"`; `block` says which block gets its prompt. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("vp")

# %% tags=["remove-output", "remove-input"]
page.close()
