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
# Trained tokens that the blocks attend to, inserted once or in every block; some are gated, pruned or combined.
#
# [How to read the pictures and the costs](methods.ipynb) is on the first page about methods. {ref}`The loop over the
# blocks <block-loop>` calls the code of every method; [](../your-images.md) trains them on a folder of yours.

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
# $N_p$ tokens are trained {cite}`jia2022visual`. They enter the first block without a position. There they attend and are
# attended to like any token, so their values depend on the image from then on. As in the original code, they are
# initialised uniformly within $\pm\sqrt{6 / (3 s^2 + D)}$ for patches of $s \times s$ pixels. Where the head reads the mean
# of the patches, prompts are not part of that mean.

# %% name="vpt-shallow" tags=["hide-input"]
page.method("vpt-shallow", "VPT-Shallow: prompts enter once and pass through all blocks.")

# %% [markdown]
# (method-vpt-deep)=
# ## VPT-Deep (`vpt-deep`)
#
# *SPT, Eq. 6; iVPT, Eq. 2; DA-VPT, Eq. 1:*
#
# $$ [\mathbf{x}_i, -, \mathbf{E}_i] = \mathbf{B}_i([\mathbf{x}_{i-1}, \mathbf{P}_{i-1}, \mathbf{E}_{i-1}]) $$
#
# Every block has its own prompts, and their outputs are discarded. They therefore
# [need no query](method-keys-and-values): we implement them as keys and values only, with the same result.
# `form="concatenate"` is the plain definition. `block` restricts prompts to some blocks, as in AP's Figure A2.

# %% name="vpt-deep" tags=["hide-input"]
page.method("vpt-deep", "VPT-Deep: new prompts for every block, their outputs discarded.")

# %% [markdown]
# (vpt-deep-in-plain-pytorch)=
# ### VPT-Deep's forward pass in plain PyTorch
#
# Without this project's hooks VPT-Deep is one loop over the blocks of a timm ViT with a class token. It ends before the
# head. The features agree with ours up to rounding; `model.below` gives what training never changes, here the tokens that
# enter the first block.

# %%
import torch

import visprompt as vp


def vpt_deep(vit, prompts, images):
    """Images (B, 3, H, W) -> features (B, D); prompts: one (N, D) per block."""
    x = vit._pos_embed(vit.patch_embed(images))
    for block, own in zip(vit.blocks, prompts, strict=True):
        own = own.expand(len(x), -1, -1)
        x = block(torch.cat([x[:, :1], own, x[:, 1:]], dim=1))
        # what comes out of the prompts is discarded
        x = torch.cat([x[:, :1], x[:, 1 + own.shape[1] :]], dim=1)
    return vit.norm(x)[:, 0]


backbone = vp.load_backbone("vit_micro_patch4_24", "pretrained")
model = vp.build_method("vpt-deep", backbone, 2)
images = torch.rand(8, 3, 24, 24)
with torch.no_grad():
    plain = vpt_deep(backbone.model, model.method.prompts, images)
    apart = (plain - model.features(model.below(images))).abs().max()
print(f"largest difference: {apart:.0e}")

# %% [markdown]
# (method-gate-vpt)=
# ## Gate-VPT (`gate-vpt`)
#
# *No equation in the papers; our equation, from their text and the reference code:*
#
# $$ \mathbf{P}_{\text{in}}^{l+1} = g_l \, \mathbf{P}_{\text{out}}^{l} + (1 - g_l) \, \mathbf{P}_{\text{in}}^{l},
# \qquad \mathrm{softmax}\!\left(\frac{Q K^\top}{T_l \sqrt{d}}\right) $$
#
# VPT-Shallow with a trained gate $g_l$ (a sigmoid) between each pair of blocks, which decides how much of a block's output
# the prompts keep, and a trained temperature in every block {cite}`yoo2023`. SPT and iVPT mention it without details.
# Initialisation and bounds follow the reference code: gates begin close to "skip the block", temperatures at 1.

# %% name="gate-vpt" tags=["hide-input"]
page.method("gate-vpt", "Gate-VPT: a gate after a block, a temperature inside it.")

# %% [markdown]
# (method-e2vpt)=
# ## E²VPT (`e2vpt`)
#
# *No equation in the papers; our equation, from their text and the reference code:*
#
# $$ \mathrm{softmax}\!\left(\frac{Q \, [K, P_K]^\top}{\sqrt{d}}\right) [V, P_V], \qquad P_K = P_V $$
#
# Besides VPT-Deep's prompts, it trains vectors that are appended to keys and values after their projections {cite}`han2023`.
# After a first training it prunes prompts, and segments of prompts (equal pieces of their $D$ entries). The gradient of a
# mask on each decides: those that matter least for the loss are removed. The rest is trained again from its initialisation.
# The papers give no numbers and no shares; `key_value_tokens`, `prune_tokens` and `prune_segments` set them. The cost below
# is for the first training, before pruning.

# %% name="e2vpt" tags=["hide-input"]
page.method("e2vpt", "E²VPT: pruned prompts, and vectors appended to keys and values.")

# %% [markdown]
# (method-provp)=
# ## ProVP (`provp`)
#
# *iVPT, Section 4.3 (B):*
#
# $$ \hat{\mathbf{P}}^l = \mathbf{P}^l + \mathcal{T}^{l-1}(\hat{\mathbf{P}}^{l-1}) $$
#
# Prompts pass through the blocks as in VPT-Shallow, and every block adds new trained prompts to the outputs of the block
# before {cite}`xu2023`. This is the structure that iVPT compares with; the original method has more parts, which we left
# out.

# %% name="provp" tags=["hide-input"]
page.method("provp", "ProVP: new prompts are added to the prompts' outputs.")

# %% [markdown]
# (method-express)=
# ## EXPRESS (`express`)
#
# *No equation in the papers; our equation, from their text and the reference code:*
#
# $$ \mathrm{LN}(\mathbf{P} + \mathbf{r}_1), \qquad W_{QKV} (\mathrm{LN}(\cdot) + \mathbf{r}_2), \qquad
# \mathrm{MSA}([Q, K, V] + \mathbf{r}_3) $$
#
# Prompts pass through the blocks as in VPT-Shallow, and three trained residuals per block are added to them
# {cite}`das2023`. iVPT places these before LayerNorm, QKV projection and self-attention in Section 2.3 and in the caption of
# Figure 3, but after them in Section 4.3; `place` is `"before"` or `"after"`. The first residual enters the branch and not
# the skip connection, which the text leaves open. Residuals are initialised to zero.

# %% name="express" tags=["hide-input"]
page.method("express", "EXPRESS: residuals for the prompts inside every block.")

# %% [markdown]
# (method-keys-and-values)=
# ## Why discarded prompts are only keys and values
#
# Attention works query by query: token $i$ receives $\sum_j \mathrm{softmax}_j(q_i \cdot k_j / \sqrt{d}) \, v_j$, and no
# other query matters. In VPT-Deep, CDC, iVPT, SPT-Deep and DA-VPT the outputs of the prompts are not used. We can therefore
# leave out their queries, their attention and their pass through the MLP, and every other output stays the same. What
# remains of a prompt, its key and its value, does not depend on the image and is computed once per batch.
#
# The last block goes one step further. If the head reads only the class token, only its query is needed, with the keys and
# values of all tokens. That holds for the bare backbone as well. With average pooling it does not.

# %% name="keys-and-values" tags=["hide-input"]
page.picture(
    "keys-and-values", "Which rows of attention are needed if the outputs of prompts are discarded."
)

# %% tags=["hide-input"]
rows, used = method_checks.forms_costs((10, 50, 100))
page.table(
    rows,
    "Multiply-adds of VPT-Deep's forward pass divided by those of the bare network.",
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
# The other methods of this page are `"vpt-deep"`, `"gate-vpt"`, `"e2vpt"`, `"provp"` and `"express"`. {ref}`What this
# call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("vpt-shallow", prompt_tokens=20)

# %% tags=["remove-output", "remove-input"]
page.close()
