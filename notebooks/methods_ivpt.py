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
# # The methods: prompts connected across blocks (iVPT)
#
# A block's prompts are joined by those of other blocks, before they enter. The papers' own drawings {cite}`ivpt` have
# their counterparts here, under their printed names.
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
page = MethodsPage("methods_ivpt", p)

# %% [markdown]
# (ivpt.figure-1)=
# ## iVPT, Figure 1: Three kinds of prompt tuning
#
# iVPT sorts the earlier methods by what passes from block to block. If outputs are dropped, nothing does. If they are
# kept, image content comes along. iVPT joins prompts before they enter, where no image has touched them.

# %% name="ivpt.figure-1" tags=["hide-input"]
page.counterpart(
    "ivpt.figure-1",
    "ivpt.figure-1",
    "Three ways for prompts to meet those of another block, upwards.",
)

# %% [markdown]
# (ivpt.figure-3)=
# ## iVPT, Figure 3: Five prompt structures
#
# The structures of iVPT's ablation (Table 3), each of which is a method or a setting here: `vpt-deep`, `provp`,
# `express`, `cdc` with `cdc="all"`, and `cdc`.

# %% name="ivpt.figure-3" tags=["hide-input"]
page.counterpart(
    "ivpt.figure-3", "ivpt.figure-3", "The five structures on three blocks; data flow upwards."
)

# %% [markdown]
# (method-cdc)=
# ## CDC (`cdc`)
#
# *iVPT, Eq. 3-4:*
#
# $$ \begin{aligned} {}[\mathbf{z}_{\text{cls}}^{l+1}, \dots, \mathbf{Z}^{l+1}] &=
# \mathcal{T}^l([\mathbf{z}_{\text{cls}}^l, \hat{\mathbf{P}}^l, \mathbf{Z}^l]) \\
# \hat{\mathbf{P}}^l &= \begin{cases} \mathbf{P}^0, & l = 0 \\
# \mathbf{P}^l + \mathbf{P}^{l-1}, & l = 1, \dots, L-1 \end{cases} \end{aligned} $$
#
# As many prompts as in VPT-Deep are trained; a block sees the sum of its own and those of the block before.
# `cdc="all"` is vanilla CDC, where all earlier ones are added. On a Swin, prompts of stages of different width cannot
# be added, so the first block of a stage has its own only; the paper does not say what it does there.

# %% name="cdc" tags=["hide-input"]
page.method("cdc", "CDC: a block's prompts and those of the block before.")

# %% [markdown]
# (ivpt.figure-2)=
# (method-ivpt)=
# ## iVPT (`ivpt`), Figure 2 of its paper
#
# *iVPT, Eq. 5-6:*
#
# $$ \hat{\mathbf{P}}^l = \mathbf{P}^l + \psi^{l-1}(\mathbf{P}^{l-1}), \qquad
# \psi^{l-1}(\mathbf{P}^{l-1}) = \Bigl[\sum_{j=1}^{N} \gamma_{i,j}^{l-1} \, \mathbf{p}_j^{l-1}\Bigr]_{i=1}^{N} $$
#
# *iVPT, Eq. 14-15:*
#
# $$ \Omega^l = \mathrm{Topk}(\tilde{w}^l, k), \qquad \tilde{\mathbf{Z}}^{l+1}[\Omega^l] =
# \mathbf{Z}^{l+1}[\Omega^l] + \mathbf{P}_{re}^l $$
#
# CDC with weights $\gamma$ (dynamic aggregation, DA), and $k$ prompts added to the patches that the class token
# attends to most (attentive reinforcement, AR). Only one row of attention is computed for that. The paper states no
# start for $\gamma$ and $\mathbf{P}_{re}$: here identity and zero, so that training starts at CDC. How heads are
# joined is open too; here their attention is averaged; a ViT without a class token takes the mean of its patches'
# rows. Nothing is added behind the last block, where no block follows. The parts come apart: `cdc`, `da`, `ar`. A
# Swin has no such attention, so give `ar="none"` there.

# %% name="ivpt.figure-2" tags=["hide-input"]
page.method(
    "ivpt",
    "iVPT: weighted connections of prompts, and prompts for salient patches.",
    "ivpt.figure-2",
)

# %% [markdown]
# (ivpt-reweighting)=
# ## Earlier prompts re-weight attention (iVPT, Eq. 7-13)
#
# Section 3.4 of iVPT reads CDC as a re-weighting. Let $w_i$ be the attention of a query $q$ to prompt $i$ of VPT,
# $W_K^l$ the key projection of block $l$, and $D/N_h$ the width of a head.
# Adding $p_i^{l-1}$ to the prompt multiplies it by a factor, and so does DA's weighted sum:
#
# $$ \tilde w_i \propto w_i \prod_{j=1}^{N} \exp\!\left(\frac{q^\top W_K^l \, \gamma_{i,j}^{l-1} p_j^{l-1}}
# {\sqrt{D/N_h}}\right) $$
#
# These are Eq. 12-13; with the identity for $\gamma$, Eq. 9-10.
# The paper leaves LayerNorm out of the argument. Left: as the paper argues, both sides are the same number. Right:
# with the block's LayerNorm in front of the key projection they are not, because normalising a sum is not summing what
# was normalised. In a real block the factors say where attention tends, not what it becomes.

# %% name="ivpt-reweighting" tags=["hide-input"]
sides = method_checks.reweighted()
without, normed = (method_checks.largest_gap(sides, norm) for norm in (False, True))
page.present(
    method_checks.draw_sides(sides),
    evidence="derived",
    records=[sides],
    cell="ivpt-reweighting",
    how="Random cases at ViT-B's sizes, 20 of each kind, 10 prompts, float64, normalised over the prompts.",
    caption=f"Both sides of the identity. Largest difference without LayerNorm {without:.1e}, with it {normed:.2f}.",
    alt="Without LayerNorm all points lie on the diagonal; with it they lie on a flatter band around it.",
)

# %% name="ivpt-reweighting-claims" tags=["hide-input"]
for claim, aggregated in {"cdc": False, "da": True}.items():
    gaps = [sides.values[f"{aggregated} {norm}"]["gap"] for norm in (False, True)]
    note = f"With the block's LayerNorm, which the argument leaves out, the two differ by up to {gaps[1]:.2f}."
    page.judge(
        f"ivpt.figure-2.{claim}-re-weights", gaps[0], evidence="derived", records=[sides], note=note
    )

# %% [markdown]
# ## Try it
#
# The other of this page is `"ivpt"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("cdc", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
