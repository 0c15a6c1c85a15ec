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
# # The methods: prompt tokens
#
# Trained tokens that the blocks attend to: put in once or at every block, gated, pruned, or added to.
#
# [How to read the pictures and the costs](methods.ipynb) stands on the first page on the methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from IPython.display import HTML, display

from visbook.chapters import method_checks
from visbook.chapters.methods import MethodsPage, bare
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = MethodsPage("methods_prompts", p)

# %% [markdown]
# (method-vpt-shallow)=
# ## VPT-Shallow (`vpt-shallow`)
#
# *SPT, Eq. 4-5:*
#
# $$ \begin{aligned} {}[\mathbf{x}_1, \mathbf{Z}_1, \mathbf{E}_1] &= \mathbf{B}_1([\mathbf{x}_0, \mathbf{P}_0,
# \mathbf{E}_0]) \\ {}[\mathbf{x}_i, \mathbf{Z}_i, \mathbf{E}_i] &= \mathbf{B}_i([\mathbf{x}_{i-1}, \mathbf{Z}_{i-1},
# \mathbf{E}_{i-1}]), \qquad i = 2, \dots, L \end{aligned} $$
#
# $N_p$ tokens are trained {cite}`jia2022visual`. They enter the first block without a position, attend and are
# attended to like any token, and change with the image on their way. They start uniform within
# $\pm\sqrt{6 / (3 s^2 + D)}$ for patches of $s \times s$ pixels, as the original's code does. Where patches are
# averaged, prompts are left out.

# %% name="vpt-shallow" tags=["hide-input"]
page.method("vpt-shallow", "VPT-Shallow: prompts enter once and travel through all blocks.")

# %% [markdown]
# (method-vpt-deep)=
# ## VPT-Deep (`vpt-deep`)
#
# *SPT, Eq. 6; iVPT, Eq. 2; DA-VPT, Eq. 1:*
#
# $$ [\mathbf{x}_i, -, \mathbf{E}_i] = \mathbf{B}_i([\mathbf{x}_{i-1}, \mathbf{P}_{i-1}, \mathbf{E}_{i-1}]) $$
#
# Every block has its own prompts, and what comes out for them is dropped. So
# [they need no query](method-keys-and-values): here they are keys and values only, with the same result;
# `form="concatenate"` is the plain definition. `block` puts prompts at some blocks only, as AP's Figure A2 does.

# %% name="vpt-deep" tags=["hide-input"]
page.method("vpt-deep", "VPT-Deep: new prompts in front of every block, their outputs dropped.")

# %% [markdown]
# (method-gate-vpt)=
# ## Gate-VPT (`gate-vpt`)
#
# *No equation in the papers; written from what they and the reference code say:*
#
# $$ \mathbf{P}_{\text{in}}^{l+1} = g_l \, \mathbf{P}_{\text{out}}^{l} + (1 - g_l) \, \mathbf{P}_{\text{in}}^{l},
# \qquad \mathrm{softmax}\!\left(\frac{Q K^\top}{T_l \sqrt{d}}\right) $$
#
# VPT-Shallow with a trained gate $g_l$, a sigmoid, at every border of two blocks, which decides how much of a block's
# output the prompts carry on, and a trained temperature in every block {cite}`yoo2023`. SPT and iVPT name it without
# details. Start and bounds follow the reference code: the gates start near "skip the block", temperatures at 1.

# %% name="gate-vpt" tags=["hide-input"]
page.method("gate-vpt", "Gate-VPT: a gate behind a block, a temperature inside it.")

# %% [markdown]
# (method-e2vpt)=
# ## E²VPT (`e2vpt`)
#
# *No equation in the papers; written from what they and the reference code say:*
#
# $$ \mathrm{softmax}\!\left(\frac{Q \, [K, P_K]^\top}{\sqrt{d}}\right) [V, P_V], \qquad P_K = P_V $$
#
# Besides VPT-Deep's prompts, vectors are trained that join keys and values behind their projections {cite}`han2023`.
# After a first training the prompts, and the segments (equal pieces of a prompt's $D$ entries), that change the loss
# least by the gradient of a mask on each are dropped, and what is left is trained again from its start. The papers
# give neither numbers nor shares: `key_value_tokens`, `prune_tokens` and `prune_segments` do. The cost below is that
# of the first training, before anything is dropped.

# %% name="e2vpt" tags=["hide-input"]
page.method("e2vpt", "E²VPT: pruned prompts, and vectors that join keys and values.")

# %% [markdown]
# (method-provp)=
# ## ProVP (`provp`)
#
# *iVPT, Section 4.3 (B):*
#
# $$ \hat{\mathbf{P}}^l = \mathbf{P}^l + \mathcal{T}^{l-1}(\hat{\mathbf{P}}^{l-1}) $$
#
# Prompts travel as in VPT-Shallow, and every block adds new trained ones to those that came out of the block before
# {cite}`xu2023`. This is the structure that iVPT compares with; the original method has more parts, which are not
# here.

# %% name="provp" tags=["hide-input"]
page.method("provp", "ProVP: new prompts are added to those that come out.")

# %% [markdown]
# (method-express)=
# ## EXPRESS (`express`)
#
# *No equation in the papers; written from what they and the reference code say:*
#
# $$ \mathrm{LN}(\mathbf{P} + \mathbf{r}_1), \qquad W_{QKV} (\mathrm{LN}(\cdot) + \mathbf{r}_2), \qquad
# \mathrm{MSA}([Q, K, V] + \mathbf{r}_3) $$
#
# Prompts travel as in VPT-Shallow; three trained residuals a block are added to them {cite}`das2023`. iVPT places
# them before LayerNorm, QKV projection and self-attention in Section 2.3 and in the caption of Figure 3, and after
# these in Section 4.3: `place` is `"before"` or `"after"`. The first enters the branch and not the skip connection,
# which the text leaves open. Residuals start at zero.

# %% name="express" tags=["hide-input"]
page.method("express", "EXPRESS: residuals for the prompts inside every block.")

# %% [markdown]
# (method-keys-and-values)=
# ## Why dropped prompts are keys and values only
#
# Attention works query by query: what token $i$ receives is
# $\sum_j \mathrm{softmax}_j(q_i \cdot k_j / \sqrt{d}) \, v_j$, and no other query enters. In VPT-Deep, CDC, iVPT,
# SPT-Deep and DA-VPT nobody reads what a block gives for its prompts. Their queries, their attention and their pass
# through the MLP can be left out, and every other output stays as it was. What is left of a prompt, its key and its
# value, contains no image, and is computed once a batch.
#
# The last block takes this one step further. If the head reads the class token alone, only its query is needed, with
# the keys and values of all tokens; that holds for the bare backbone as well. With average pooling it does not hold.

# %% name="keys-and-values" tags=["hide-input"]
page.picture(
    "keys-and-values", "Which rows of attention are needed when the outputs of prompts are dropped."
)

# %% tags=["hide-input"]
rows, used = method_checks.forms_costs((10, 50, 100))
page.table(
    rows,
    "Multiply-adds of VPT-Deep's forward pass over those of the bare network.",
    [bare(), *used],
)
same = method_checks.two_forms()
display(
    HTML(
        f"<p>On a ViT-S/16 with random weights, in float64, the logits of the two forms differ by at most "
        f"{same.values['difference']:.1e}; the largest logit is {same.values['largest']:.2f}.</p>"
    )
)

# %% [markdown]
# ## Try it
#
# The others of this page are `"vpt-deep"`, `"gate-vpt"`, `"e2vpt"`, `"provp"` and `"express"`. {ref}`What this
# call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("vpt-shallow", prompt_tokens=20)

# %% tags=["remove-output", "remove-input"]
page.close()
