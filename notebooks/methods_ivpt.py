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
# Before a block's prompts enter, those of other blocks are added to them. Our versions of the paper's drawings {cite}`ivpt`
# have their printed names.
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
page = MethodsPage("methods_ivpt", p)

# %% [markdown]
# (ivpt.figure-1)=
# ## iVPT, Figure 1: Three kinds of prompt tuning
#
# iVPT distinguishes earlier methods by what passes from block to block. If the prompts' outputs are discarded, nothing does.
# If they are passed on, they carry information about the image. iVPT connects prompts before they enter a block, where they
# do not depend on the image.

# %% name="ivpt.figure-1" tags=["hide-input"]
page.counterpart(
    "ivpt.figure-1",
    "ivpt.figure-1",
    "Three ways in which prompts relate to those of the block before; data flow upwards.",
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
# As many prompts as in VPT-Deep are trained. A block receives the sum of its own prompts and those of the block before.
# `cdc="all"` is vanilla CDC, where all earlier prompts are added. On a Swin, prompts of stages with different widths cannot
# be added, so the first block of a stage has only its own; the paper does not say what it does there.

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
# CDC with learned weights $\gamma$ (dynamic aggregation, DA), and $k$ prompts added to the patches that the class token
# attends to most (attentive reinforcement, AR), for which only one row of attention is computed.
#
# The paper does not state the initialisation of $\gamma$ and $\mathbf{P}_{re}$. We use the identity and zero, so that
# training begins as CDC. It also leaves open how heads are combined; we average their attention. A ViT without a class token
# uses the mean of the rows of its patches. Nothing is added after the last block. `cdc`, `da` and `ar` turn off the parts.
# A Swin has no such attention; use `ar="none"` there.

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
# Section 3.4 of iVPT interprets CDC as a re-weighting of attention. Let $w_i$ be the attention of a query $q$ to prompt $i$
# of VPT, $W_K^l$ the key projection of block $l$, and $D/N_h$ the width of a head. Adding $p_i^{l-1}$ to the prompt
# multiplies $w_i$ by a factor, and so does DA's weighted sum:
#
# $$ \tilde w_i \propto w_i \prod_{j=1}^{N} \exp\!\left(\frac{q^\top W_K^l \, \gamma_{i,j}^{l-1} p_j^{l-1}}
# {\sqrt{D/N_h}}\right) $$
#
# These are Eq. 12 and 13; with the identity for $\gamma$ they are Eq. 9 and 10. The paper's argument leaves out LayerNorm.
# Left: without it, both sides are equal, as the paper says. Right: with the block's LayerNorm before the key projection they
# differ, because normalising a sum is not the same as summing normalised terms. In a real block the factors indicate the
# direction in which attention changes, not its value.

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
    alt=f"Without LayerNorm all points lie on the diagonal, with differences up to {without:.1e}. With it they lie in a band "
    f"around it, with differences up to {normed:.2f}.",
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
# The other method of this page is `"ivpt"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("cdc", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
