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
# One trained tensor for all images, in front of the network or of one of its blocks.
#
# [How to read the pictures and the costs](methods.ipynb) stands on the first page on the methods.

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
# One perturbation of the image, the same for all images, is trained {cite}`bahng2022`; $M$ shrinks the image. AP says
# "additive" unless stated otherwise and gives no width for a frame. The default trains every pixel; `padding` trains
# a frame of so many pixels, and `template="resize"` shrinks the image into its hole. The frame starts at zero.

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
# A tensor of the activations' own shape is added in front of one block: the third of a transformer, the third-to-last
# of a ResNet. What lies below never changes and is kept. `block` names another place or several; `kind` takes the
# paper's other two forms, product and concatenation, for which it states no start and no number of tokens. The page
# on {doc}`AP <ap>` has its experiments.

# %% name="ap" tags=["hide-input"]
page.method("ap", "AP: a tensor added to what enters one block, and the three kinds.")

# %% [markdown]
# ## Try it
#
# The other of this page is `"ap"`; `block` says where its prompt is added. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("vp")

# %% tags=["remove-output", "remove-input"]
page.close()
