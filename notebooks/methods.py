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
# # The methods, one picture each
#
# Every method of this book adapts a frozen network to a task by training a few numbers and a linear head. This page
# shows for each what is added and where, the equation it implements with its number in the paper, what the papers
# leave open, and what it costs. The pictures are drawn by the book's code in one style; some are the counterparts of
# drawings in the papers {cite}`ivpt,davpt,spt`, and stand under their printed names.
#
# All methods run on one loop over the blocks, and a test holds each against its plain definition, value and gradient.
# Everything here follows from the code and the architecture, so the evidence is `derived`.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
import html

import matplotlib.pyplot as plt
import pandas as pd
import torch
from IPython.display import HTML, display

import visprompt as vp
from visprompt.measure import figure_claims
from visprompt.measure.cost import count_flops
from visprompt.methods.parameters import count_parameters
from visprompt.pages import diagrams, plots
from visprompt.pages.page import Page
from visprompt.pages.parameters import Parameters, read_parameters
from visprompt.progress import progress
from visprompt.records import recorded
from visprompt.theory.attention_shift import attention_change, draw, exponent, reweighting, rises
from visprompt.training.loop import tune
from visprompt.training.recipe import load_recipe

p = read_parameters(Parameters, globals())
page = Page("methods", p)
plots.style()
torch.set_num_threads(1)

BACKBONE, CLASSES, BATCH = "vit_base_patch16_224", 100, 64
FAMILIES = {"vit": "ViT", "resnet": "ResNet", "swin": "Swin"}
# The sections of this page: the idea, and the methods that share it.
IDEAS = {
    "baseline": ["linear-probe", "full-finetune", "bias", "norm-tune"],
    "adapter": ["lora", "adapter", "adaptformer", "ssf"],
    "added to image or activations": ["vp", "ap"],
    "prompt tokens": ["vpt-shallow", "vpt-deep", "gate-vpt", "e2vpt", "provp", "express"],
    "prompts connected across blocks": ["cdc", "ivpt"],
    "prompts started from the task": ["spt-shallow", "spt-deep"],
    "prompts guided by classes": ["da-vpt", "da-vpt-plus"],
}
assert sorted(slug for slugs in IDEAS.values() for slug in slugs) == sorted(vp.METHODS)


BACKBONES = {trims: vp.load_backbone(BACKBONE, device="meta") for trims in (True, False)}
BACKBONES[False].trims = False  # every token through the last block, as the papers run it


def cost(slug, trims=True, **settings):
    """Record of trained parameters and of multiply-adds for one image, on the shapes of ViT-B/16."""
    model = vp.build_method(slug, BACKBONES[trims], CLASSES, **settings)
    chosen = {
        "what": "a method's cost",
        "backbone": BACKBONE,
        "classes": CLASSES,
        "batch_size": BATCH,
        "trims": trims,
        "method": slug,
        "method_settings": settings,
    }
    return recorded(
        "count",
        chosen,
        lambda: {**count_parameters(model), "macs": count_flops(model, batch_size=BATCH)["macs"]},
        made=[model, model.source],
    )


DRAWN = "A drawing made from code, of what the methods' code does."
COUNTED = f"Counted on the shapes of {BACKBONE} with {CLASSES} classes, a batch of {BATCH}."


def table(rows, caption, records=(), how=COUNTED, evidence="derived"):
    """A table of what is no artifact of a paper; its cells may hold HTML."""
    page.present(pd.DataFrame(rows), evidence=evidence, how=how, records=records, caption=caption, escape=False)


def picture(name, caption):
    """A picture that is no artifact of a paper; the cell that draws it has its name."""
    page.present(diagrams.draw(name), evidence="derived", how=DRAWN, caption=caption, alt=diagrams.alt(name), cell=name)


def counterpart(artifact, name, caption, records=(), how=DRAWN):
    """A picture that is the counterpart of a drawing in a paper."""
    page.show(
        artifact, diagrams.draw(name), evidence="derived", how=how, records=records, caption=caption, alt=diagrams.alt(name)
    )


def runs_on(slug):
    """The families of backbones that carry a method, for reading."""
    method = vp.build_method(slug, BACKBONES[True], CLASSES).method
    return ", ".join(FAMILIES[family] for family in method.families)


def over_bare(record):
    return f"{record.values['macs'] / bare.values['macs']:.3f}"


def line(slug):
    """What a method costs, as one row."""
    record = costs[slug]
    return {
        "trained by the method": f"{record.values['method']:,}",
        "GMACs an image": f"{record.values['macs'] / 1e9:.2f}",
        "over the bare backbone": over_bare(record),
        "runs on": runs_on(slug),
    }


def method(slug, caption, artifact=None):
    """The picture of a method and its line of costs."""
    if artifact:
        counterpart(artifact, slug, caption, [costs[slug]])
    else:
        picture(slug, caption)
    table([line(slug)], f"Cost of {plots.NAMES[slug]} with its default settings.", [costs[slug]])


# %% [markdown]
# ## How to read the pictures
#
# A picture shows the whole network, a single block opened, or both. What is trained is in one colour throughout, what
# is frozen is grey, and dashed tokens are outputs that nobody reads. Blocks are counted from 0 to $L-1$. The order of
# tokens in a column means nothing: attention does not see it, and positions were added in the stem. The pictures show
# a ViT that pools its class token; without one, the patches are averaged. The head is trained in every method.

# %% name="vit" tags=["hide-input"]
picture("vit", "A vision transformer, and one of its blocks opened.")

# %% [markdown]
# ## How to read the costs
#
# Under each picture stands what the method costs with its default settings. GMACs are billions of multiply-adds in
# the forward pass of a training step, for one image of a batch; what a batch shares is divided by its size. Matrix
# products, convolutions and attention are counted, and sums or products entry by entry are not. The counts are also
# given over those of the bare backbone, run as the papers run it. Most of ours are below 1 for a reason that is not
# the method: where only the class token is pooled, [the last block computes only that token](method-keys-and-values).

# %% name="costs" tags=["hide-input"]
bare = cost("linear-probe", trims=False)
costs = {slug: cost(slug) for slug in progress(vp.METHODS, "counting")}
trimmed = costs["linear-probe"]
table(
    [
        {
            "backbone": BACKBONE,
            "classes": CLASSES,
            "batch": BATCH,
            "bare GMACs": f"{bare.values['macs'] / 1e9:.2f}",
            "with a last block for the class token alone": over_bare(trimmed),
            "trained in the head, by every method": f"{bare.values['head']:,}",
        }
    ],
    "What the lines of costs refer to.",
    [bare, trimmed],
)

# %% [markdown]
# ## Baselines
#
# (method-linear-probe)=
# ### Linear probe (`linear-probe`)
#
# *SPT, Eq. 3:*
#
# $$ \mathbf{y} = \mathrm{Head}(\mathbf{x}_L) $$
#
# Only the head is trained, on the features that the frozen backbone gives. They are the same in every epoch, so they
# are computed once and kept. Unless a recipe says otherwise, the head of every method sees features standardised with
# the mean and spread that they have on the training set before training.

# %% name="linear-probe" tags=["hide-input"]
method("linear-probe", "Linear probe: nothing before the head is trained.")

# %% [markdown]
# (method-full-finetune)=
# ### Full fine-tuning (`full-finetune`)
#
# *AP, Section 3, with all weights free:*
#
# $$ \min_{\theta} \; \frac{1}{|\mathcal{D}|} \sum_{(x, y) \in \mathcal{D}} \ell(f_\theta(x); y) $$
#
# A copy of the whole backbone is trained with the head. timm's own classifier is left out of it and of the counts.

# %% name="full-finetune" tags=["hide-input"]
method("full-finetune", "Full fine-tuning: every weight is trained.")

# %% [markdown]
# (method-bias)=
# ### BIAS (`bias`)
#
# *No equation in the five papers (AP, Section 6.1; DA-VPT, Section 2.5):*
#
# $$ h = W x + b + \Delta b $$
#
# The shifts of linear and normalisation layers are trained {cite}`zaken2021`; the code learns the differences
# $\Delta b$, which start at zero. Which categories belong to the method is left open by the papers: by default it is
# all of them, the patch embedding's and the last norm's included, and `categories` picks some, such as DA-VPT's
# `("key", "value")`. Of these, [the key's shift does nothing](method-key-bias).

# %% name="bias" tags=["hide-input"]
method("bias", "BIAS: a trained shift b at every layer.")

# %% [markdown]
# (method-norm-tune)=
# ### NORM-TUNE (`norm-tune`)
#
# *AP, Eq. A3:*
#
# $$ \mathrm{LN}(z^{(l)}_{b,d,p}) = \gamma_d \, \frac{z^{(l)}_{b,d,p} - \mu_{b,p}}{\sigma_{b,p}} + \beta_d $$
#
# The scales $\gamma$ and shifts $\beta$ of all normalisation layers are trained {cite}`basu2023`: LayerNorms of a
# transformer, BatchNorms of a ResNet. A ResNet's running means and variances move as well, because the backbone is in
# training mode then.

# %% name="norm-tune" tags=["hide-input"]
method("norm-tune", "NORM-TUNE: scale and shift of every normalisation layer.")

# %% [markdown]
# ## Adapters
#
# (method-lora)=
# ### LoRA (`lora`)
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
method("lora", "LoRA: a path of low rank beside the query and value projections.")

# %% [markdown]
# (method-adapter)=
# ### Adapter (`adapter`)
#
# *Houlsby et al., Figure 2, which prints no equation:*
#
# $$ y \leftarrow y + W_{\mathrm{up}} \, \phi(W_{\mathrm{down}} \, y + b_{\mathrm{down}}) + b_{\mathrm{up}} $$
#
# A bottleneck with an activation $\phi$ (GELU here) follows attention and MLP {cite}`houlsby2019`, inside the
# residual branch. It starts at zero through $W_{\mathrm{up}}$. The five papers state no width and no place; the
# defaults are the original's two places, and `places=("mlp",)` is the later variant with one.

# %% name="adapter" tags=["hide-input"]
method("adapter", "Adapter: a bottleneck behind attention and behind the MLP.")

# %% [markdown]
# (method-adaptformer)=
# ### AdaptFormer (`adaptformer`)
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
method("adaptformer", "AdaptFormer: a bottleneck beside the MLP.")

# %% [markdown]
# (method-ssf)=
# ### SSF (`ssf`)
#
# *SSF, for what each layer gives:*
#
# $$ y = \gamma \odot x + \beta $$
#
# Behind the patch embedding, every linear layer and every norm, each channel is scaled and shifted {cite}`lian2022`.
# The original starts $\gamma$ and $\beta$ with a small random spread around 1 and 0; here they start there exactly,
# so that training starts at the linear probe. After training they are multiplied into the weights.

# %% name="ssf" tags=["hide-input"]
method("ssf", "SSF: scale and shift behind every layer.")

# %% [markdown]
# ## Added to the image or to the activations
#
# (method-vp)=
# ### VP (`vp`)
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
method("vp", "VP: a perturbation of the image, and its three templates.")

# %% [markdown]
# (method-ap)=
# ### AP (`ap`)
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
method("ap", "AP: a tensor added to what enters one block, and the three kinds.")

# %% [markdown]
# ## Prompt tokens
#
# (method-vpt-shallow)=
# ### VPT-Shallow (`vpt-shallow`)
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
method("vpt-shallow", "VPT-Shallow: prompts enter once and travel through all blocks.")

# %% [markdown]
# (method-vpt-deep)=
# ### VPT-Deep (`vpt-deep`)
#
# *SPT, Eq. 6; iVPT, Eq. 2; DA-VPT, Eq. 1:*
#
# $$ [\mathbf{x}_i, -, \mathbf{E}_i] = \mathbf{B}_i([\mathbf{x}_{i-1}, \mathbf{P}_{i-1}, \mathbf{E}_{i-1}]) $$
#
# Every block has its own prompts, and what comes out for them is dropped. So
# [they need no query](method-keys-and-values): here they are keys and values only, with the same result;
# `form="concatenate"` is the plain definition. `block` puts prompts at some blocks only, as AP's Figure A2 does.

# %% name="vpt-deep" tags=["hide-input"]
method("vpt-deep", "VPT-Deep: new prompts in front of every block, their outputs dropped.")

# %% [markdown]
# (method-gate-vpt)=
# ### Gate-VPT (`gate-vpt`)
#
# *No equation in the five papers; written from what they and the reference code say:*
#
# $$ \mathbf{P}_{\text{in}}^{l+1} = g_l \, \mathbf{P}_{\text{out}}^{l} + (1 - g_l) \, \mathbf{P}_{\text{in}}^{l},
# \qquad \mathrm{softmax}\!\left(\frac{Q K^\top}{T_l \sqrt{d}}\right) $$
#
# VPT-Shallow with a trained gate $g_l$, a sigmoid, at every border of two blocks, which decides how much of a block's
# output the prompts carry on, and a trained temperature in every block {cite}`yoo2023`. SPT and iVPT name it without
# details. Start and bounds follow the reference code: the gates start near "skip the block", temperatures at 1.

# %% name="gate-vpt" tags=["hide-input"]
method("gate-vpt", "Gate-VPT: a gate behind a block, a temperature inside it.")

# %% [markdown]
# (method-e2vpt)=
# ### E²VPT (`e2vpt`)
#
# *No equation in the five papers; written from what they and the reference code say:*
#
# $$ \mathrm{softmax}\!\left(\frac{Q \, [K, P_K]^\top}{\sqrt{d}}\right) [V, P_V], \qquad P_K = P_V $$
#
# Besides VPT-Deep's prompts, vectors are trained that join keys and values behind their projections {cite}`han2023`.
# After a first training the tokens and segments whose masks have the smallest gradients are dropped, and what is left
# is trained again from its start. The papers give neither numbers nor shares: `key_value_tokens`, `prune_tokens` and
# `prune_segments` do. The cost below is that of the first training, before anything is dropped.

# %% name="e2vpt" tags=["hide-input"]
method("e2vpt", "E²VPT: pruned prompts, and vectors that join keys and values.")

# %% [markdown]
# (method-provp)=
# ### ProVP (`provp`)
#
# *iVPT, Section 4.3 (B):*
#
# $$ \hat{\mathbf{P}}^l = \mathbf{P}^l + \mathcal{T}^{l-1}(\hat{\mathbf{P}}^{l-1}) $$
#
# Prompts travel as in VPT-Shallow, and every block adds new trained ones to those that came out of the block before
# {cite}`xu2023`. This is the structure that iVPT compares with; the original method has more parts, which are not
# here.

# %% name="provp" tags=["hide-input"]
method("provp", "ProVP: new prompts are added to those that come out.")

# %% [markdown]
# (method-express)=
# ### EXPRESS (`express`)
#
# *No equation in the five papers; written from what they and the reference code say:*
#
# $$ \mathrm{LN}(\mathbf{P} + \mathbf{r}_1), \qquad W_{QKV} (\mathrm{LN}(\cdot) + \mathbf{r}_2), \qquad
# \mathrm{MSA}([Q, K, V] + \mathbf{r}_3) $$
#
# Prompts travel as in VPT-Shallow; three trained residuals a block are added to them {cite}`das2023`. iVPT places
# them before LayerNorm, QKV projection and self-attention in Section 2.3 and in the caption of Figure 3, and after
# these in Section 4.3: `place` is `"before"` or `"after"`. The first enters the branch and not the skip connection,
# which the text leaves open. Residuals start at zero.

# %% name="express" tags=["hide-input"]
method("express", "EXPRESS: residuals for the prompts inside every block.")

# %% [markdown]
# ## Prompts connected across blocks (iVPT)
#
# (ivpt.figure-1)=
# ### iVPT, Figure 1: Three kinds of prompt tuning
#
# iVPT sorts the earlier methods by what passes from block to block. If outputs are dropped, nothing does. If they are
# kept, image content comes along. iVPT joins prompts before they enter, where no image has touched them.

# %% name="ivpt.figure-1" tags=["hide-input"]
counterpart("ivpt.figure-1", "ivpt.figure-1", "Three ways for prompts to meet those of another block, upwards.")

# %% [markdown]
# (ivpt.figure-3)=
# ### iVPT, Figure 3: Five prompt structures
#
# The structures of iVPT's ablation (Table 3), each of which is a method or a setting here: `vpt-deep`, `provp`,
# `express`, `cdc` with `cdc="all"`, and `cdc`.

# %% name="ivpt.figure-3" tags=["hide-input"]
counterpart("ivpt.figure-3", "ivpt.figure-3", "The five structures on three blocks; data flow upwards.")

# %% [markdown]
# (method-cdc)=
# ### CDC (`cdc`)
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
method("cdc", "CDC: a block's prompts and those of the block before.")

# %% [markdown]
# (ivpt.figure-2)=
# (method-ivpt)=
# ### iVPT (`ivpt`), Figure 2 of its paper
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
method("ivpt", "iVPT: weighted connections of prompts, and prompts for salient patches.", "ivpt.figure-2")

# %% [markdown]
# ## Prompts started from the task (SPT)
#
# (spt.figure-1)=
# (method-spt-shallow)=
# ### SPT-Shallow (`spt-shallow`), Figure 1 of its paper
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
method("spt-shallow", "SPT-Shallow: patch tokens of the task become the prompts' start.", "spt.figure-1")

# %% [markdown]
# (method-spt-deep)=
# ### SPT-Deep (`spt-deep`)
#
# *SPT, Eq. 13:*
#
# $$ [\mathbf{x}_i, -, \mathbf{E}_i] = \mathrm{B}_i([\mathbf{x}_{i-1}, \mathbf{C}_{i-1}, \mathbf{E}_{i-1}]) $$
#
# VPT-Deep whose prompts start as tokens that enter their own block, without the class token. `source` takes the first
# or the last level for all blocks instead (Table S2).

# %% name="spt-deep" tags=["hide-input"]
method("spt-deep", "SPT-Deep: each block's prompts start as tokens of its own level.", "spt.figure-1")

# %% [markdown]
# (spt.figure-s2)=
# ### SPT, Figure S2: Prompt initialisation strategies
#
# The settings are `start="uniform"` for (a), `source="first"` or `"last"` for (b), the default for (c) and
# `frozen=True` for (d).

# %% name="spt.figure-s2" tags=["hide-input"]
counterpart("spt.figure-s2", "spt.figure-s2", "Where prompts start: four strategies, three levels each.")

# %% [markdown]
# What Figures 1 and S2 assert holds for the methods as built: initial prompts are patch tokens of their own block, and
# nothing is trained beside prompts and head, or beside the head where prompts are frozen.

# %% name="spt-drawings" tags=["hide-input"]
tiny = vp.load_backbone("vit_micro_patch4_24", "pretrained")
held = recorded(
    "drawings",
    {"what": "starts of SPT-Deep", "backbone": tiny.name, "task": "position"},
    lambda: figure_claims.token_starts(tiny, vp.load_task("position")),
    weights=tiny.fingerprint,
    made=[tiny],
)
for claim, name in {
    "1.prompts-are-patches": "distance",
    "1.only-prompts-and-head": "outside",
    "s2.frozen-encoder": "encoder",
    "s2.only-head-trained": "frozen",
}.items():
    page.judge(
        f"spt.figure-{claim}",
        held.values[name],
        evidence="derived",
        records=[held],
        note=f"{tiny.name}, 64 images, ten prompts a block.",
    )

# %% [markdown]
# ## Prompts guided by classes (DA-VPT)
#
# (davpt.figure-1)=
# ### DA-VPT, Figure 1: DA-VPT against VPT-Deep, idea
#
# With the classification loss alone, nothing says which patches a prompt should gather from. DA-VPT gives each prompt
# classes to stand for, so that the class token can collect from the prompt of its own. This is the paper's idea,
# drawn; [](davpt.ipynb) measures whether trained prompts behave so.

# %% name="davpt.figure-1" tags=["hide-input"]
counterpart(
    "davpt.figure-1",
    "davpt.figure-1",
    "The idea of DA-VPT; markers are groups of classes.",
    how="A drawing made from code, of the paper's idea; nothing is measured.",
)

# %% [markdown]
# (davpt.figure-2)=
# (method-da-vpt)=
# ### DA-VPT (`da-vpt`), Figure 2 of its paper
#
# *DA-VPT, Eq. 4:*
#
# $$ \mathcal{L}_{\text{ML}}(\mathbf{x}, \mathbf{p}) = \frac{1}{|P^+|} \sum_{p_k \in P^+}
# \mathrm{LSE}_0^+\!\left(-\frac{\hat{p}_k \cdot \hat{x}_i - \delta}{\tau}\right) + \frac{1}{|P|} \sum_{p_k \in P}
# \mathrm{LSE}_0^+\!\left(\frac{\hat{p}_k \cdot \hat{x}_j + \delta}{\tau}\right) $$
#
# *DA-VPT, Eq. 5:*
#
# $$ \mathcal{L} = \mathcal{L}_{CE} + \beta \, \mathcal{L}_{\text{ML}}(\mathbf{x}, \mathbf{p}) + \lambda \,
# \mathcal{L}_{\text{ML}}(\mathbf{p}, \mathbf{x}_{cls}) $$
#
# VPT-Deep's prompts are trained with two more losses, proxy-anchor losses {cite}`kim2020`. k-means over class means
# gives each prompt of a guided block its classes; it is run again after every epoch, from the last centroids. The
# released code divides the first sum by $|P|$ instead of $|P^+|$ (`normaliser="all"`). What is compared is named too:
# the prompts' queries or the prompts (`projection`), and what attention gives or what enters the block (`patches`).
# The paper leaves open how losses of several guided blocks add up; here they are averaged. A ViT
# without a class token has the first loss alone. The released code also
# keeps prompts from attending to the class token and to each other; since Eq. 1 drops what prompts give, that changes
# no logit. A training step looks at the attention of all patches in the last block, which is counted below; inference
# costs what VPT-Deep's does.

# %% name="davpt.figure-2" tags=["hide-input"]
method("da-vpt", "DA-VPT: classes, their prompts, and the losses that tie them.", "davpt.figure-2")

# %% name="davpt-drawings" tags=["hide-input"]
kept_busy = recorded(
    "drawings",
    {"what": "clusters of DA-VPT", "backbone": tiny.name, "task": "flowers"},
    lambda: figure_claims.clusters(tiny, vp.load_task("flowers"), load_recipe("quick", "da-vpt", True)),
    weights=tiny.fingerprint,
    made=[tiny],
)
for claim, value in {"clusters": max(kept_busy.values["empty"]), "updates": kept_busy.values["updates"]}.items():
    page.judge(
        f"davpt.figure-2.{claim}",
        value,
        evidence="derived",
        records=[kept_busy],
        note="Ten prompts, 40 classes, five epochs, one seed.",
    )

# %% [markdown]
# (method-da-vpt-plus)=
# ### DA-VPT+ (`da-vpt-plus`)
#
# *No equation; DA-VPT, Section 2.5 and Table 4:*
#
# $$ [x_{cls} + \Delta, \mathbf{p}, \mathbf{x}], \qquad K + \Delta b_K, \qquad V + \Delta b_V $$
#
# DA-VPT, the shifts of key and value projections ("the most efficient part"), and the class token; `biases` takes
# other categories and `class_token=False` leaves that one out. The released code also trains the first LayerNorm,
# which the paper does not mention; it stays frozen here. [The key's shift does nothing](method-key-bias).

# %% name="da-vpt-plus" tags=["hide-input"]
method("da-vpt-plus", "DA-VPT+: DA-VPT's prompts, shifts of keys and values, and the class token.")

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
picture("keys-and-values", "Which rows of attention are needed when the outputs of prompts are dropped.")


def forms(tokens):
    """Records of VPT-Deep's cost in both forms."""
    plain = cost("vpt-deep", trims=False, prompt_tokens=tokens, form="concatenate")
    return plain, cost("vpt-deep", prompt_tokens=tokens)


def two_forms_differ():
    """Largest difference of two logits between both forms, on random weights, in float64."""
    frozen = vp.load_backbone("vit_small_patch16_224").double()
    images = torch.randn(2, 3, 224, 224, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        plain, fast = (
            vp.build_method("vpt-deep", frozen, CLASSES, form=form).double()(images)
            for form in ("concatenate", "keys and values")
        )
    return {"difference": (plain - fast).abs().max().item(), "largest": plain.abs().max().item()}


same = recorded(
    "check",
    {"what": "two forms of VPT-Deep", "backbone": "vit_small_patch16_224", "seed": 0},
    two_forms_differ,
)
rows, used = [], []
for tokens in (10, 50, 100):
    plain, fast = forms(tokens)
    used += [plain, fast]
    rows.append(
        {
            "prompts a block": tokens,
            "concatenated": over_bare(plain),
            "keys and values only": over_bare(fast),
            "fast over concatenated": f"{fast.values['macs'] / plain.values['macs']:.3f}",
        }
    )
table(rows, "Multiply-adds of VPT-Deep's forward pass over those of the bare network.", [bare, *used])
display(
    HTML(
        f"<p>On a ViT-S/16 with random weights, in float64, the logits of the two forms differ by at most "
        f"{same.values['difference']:.1e}; the largest logit is {same.values['largest']:.2f}.</p>"
    )
)

# %% [markdown]
# (method-key-bias)=
# ## A key bias does nothing
#
# A shift $b$ of all keys adds the same $q_i \cdot b$ to every score of query $i$, and softmax ignores what its inputs
# share:
#
# $$ \frac{\exp(q_i \cdot (k_j + b) / \sqrt{d})}{\sum_m \exp(q_i \cdot (k_m + b) / \sqrt{d})} =
# \frac{\exp(q_i \cdot k_j / \sqrt{d})}{\sum_m \exp(q_i \cdot k_m / \sqrt{d})}. $$
#
# So no training signal reaches it and it changes no output. It holds for BIAS and, because prompts pass the same
# projection, for DA-VPT+. DA-VPT names the biases of keys and values as the most efficient ones (Section 2.5): what
# it gains from them, it gains from the values. It would not hold where keys are normalised after the projection, nor
# for E²VPT's $P_K$, which carries no bias.


# %% name="key-bias" tags=["hide-input"]
def shifted(slug, category):
    """Change of the logits when one kind of bias gets random values, and the gradient that it receives."""
    frozen = vp.load_backbone("vit_small_patch16_224").double()
    settings = {"bias": {"categories": (category,)}, "da-vpt-plus": {"biases": (category,)}}[slug]
    model = vp.build_method(slug, frozen, CLASSES, **settings).double()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 3, 224, 224, dtype=torch.float64, generator=generator)
    before = model(images)
    shifts = list(model.method.shifts.parameters())
    gradients = torch.autograd.grad(torch.nn.functional.cross_entropy(before, torch.tensor([0, 1])), shifts)
    with torch.no_grad():
        for shift in shifts:
            shift.copy_(torch.randn(shift.shape, generator=generator))
        change = (model(images) - before).abs().max().item()
    return {"change": change, "gradient": max(gradient.abs().max().item() for gradient in gradients)}


def changes():
    found = [(slug, category) for slug in ("bias", "da-vpt-plus") for category in ("query", "key", "value")]
    return {"rows": [{"method": slug, "bias of": category, **shifted(slug, category)} for slug, category in found]}


measured = recorded(
    "check",
    {"what": "biases by kind", "backbone": "vit_small_patch16_224", "seed": 0},
    changes,
)
table(
    [
        {
            "method": row["method"],
            "bias of": row["bias of"],
            "largest change of a logit": f"{row['change']:.1e}",
            "largest entry of its gradient": f"{row['gradient']:.1e}",
        }
        for row in measured.values["rows"]
    ],
    "What random biases do to the logits.",
    [measured],
    "Biases of spread 1 in every block of a ViT-S/16 with random weights, two random images, float64.",
)
useless = costs["da-vpt-plus"].values["method"] - cost("da-vpt-plus", biases=("value",)).values["method"]
display(
    HTML(
        f"<p>On {BACKBONE}, {useless:,} of the {costs['da-vpt-plus'].values['method']:,} parameters that DA-VPT+ trains "
        "besides the head are key biases.</p>"
    )
)

# %% [markdown]
# ## All methods side by side
#
# Trained parameters are those of the method alone; the head comes on top. LoRA, SSF and BIAS can be merged into the
# weights after training and then cost nothing at inference.

# %% name="summary" tags=["hide-input"]
table(
    [
        {
            "method": f'<a href="#method-{slug}">{plots.NAMES[slug]}</a>',
            "slug": f"<code>{slug}</code>",
            "idea": idea,
            **line(slug),
        }
        for idea, slugs in IDEAS.items()
        for slug in slugs
    ],
    "All methods with their default settings.",
    list(costs.values()),
)

# %% [markdown]
# ## All settings and their reasons
#
# The table is read off the code: a setting's reason is the comment that stands behind it there. Methods that are not
# in it have nothing to choose. DA-VPT+ has all settings of DA-VPT as well.

# %% name="settings" tags=["hide-input"]
inherited = {row["setting"] for row in diagrams.settings_rows("da-vpt")}
table(
    [
        {key: f"<code>{html.escape(value)}</code>" if key != "reason" else html.escape(value) for key, value in row.items()}
        for slugs in IDEAS.values()
        for slug in slugs
        for row in diagrams.settings_rows(slug)
        if slug != "da-vpt-plus" or row["setting"] not in inherited
    ],
    "Settings of the methods.",
    how="Read off the code.",
)

# %% [markdown]
# (ivpt-reweighting)=
# ## Earlier prompts re-weight attention (iVPT, Eq. 7-13)
#
# Section 3.4 of iVPT reads CDC as a re-weighting. Let $w_i$ be the attention of a query $q$ to prompt $i$ of VPT.
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
def both_sides(aggregated, norm):
    """Attention over joined prompts and VPT's attention times the factors, for 20 random cases of 10 prompts."""
    pairs = [reweighting(draw(seed, aggregated=aggregated), norm) for seed in range(20)]
    direct, scaled = (torch.cat(side) for side in zip(*pairs, strict=True))
    return {"direct": direct.tolist(), "scaled": scaled.tolist(), "gap": (direct - scaled).abs().max().item()}


sides = recorded(
    "check",
    {"what": "re-weighting of attention", "seeds": 20, "prompts": 10, "width": 768, "head": 64},
    lambda: {f"{aggregated} {norm}": both_sides(aggregated, norm) for aggregated in (False, True) for norm in (False, True)},
)
fig, axes = plt.subplots(1, 2, figsize=(7, 3.5), sharex=True, sharey=True)
for ax, norm in zip(axes, (False, True), strict=True):
    for label, aggregated, color in (("CDC (Eq. 10)", False, "#0072b2"), ("CDC and DA (Eq. 13)", True, "#d55e00")):
        case = sides.values[f"{aggregated} {norm}"]
        ax.loglog(case["scaled"], case["direct"], ".", ms=5, color=color, label=label)
    ax.plot([1e-5, 1], [1e-5, 1], color="black", lw=0.8, zorder=0)
    ax.set(xlabel="VPT's attention × factors", title="with LayerNorm" if norm else "without LayerNorm")
    ax.set(xlim=(1e-4, 1.3), ylim=(1e-4, 1.3), aspect="equal")
axes[0].set_ylabel("attention over joined prompts")
axes[0].legend(loc="upper left")
largest = {norm: max(sides.values[f"{aggregated} {norm}"]["gap"] for aggregated in (False, True)) for norm in (False, True)}
page.present(
    fig,
    evidence="derived",
    records=[sides],
    cell="ivpt-reweighting",
    how="Random cases at ViT-B's sizes, 20 of each kind, 10 prompts, float64, normalised over the prompts.",
    caption=f"Both sides of the identity. Largest difference without LayerNorm {largest[False]:.1e}, with it "
    f"{largest[True]:.2f}.",
    alt="Without LayerNorm all points lie on the diagonal; with it they lie on a flatter band around it.",
)

# %% [markdown]
# (davpt.theorem-1)=
# ## DA-VPT, Theorem 1: First-order change of an attention weight
#
# The theorem says that a small change $\Delta p$ of a prompt changes its attention weight $a_i$ on patch $v_i$ by
#
# $$ \Delta a_i \approx a_i (1 - a_i) \, \Delta s_i, \qquad \Delta s_i = \Delta p^\top v_i / \sqrt{d}. $$
#
# The proof takes $\partial a_i / \partial s_i$, as if the score of that patch moved alone. But $s_j = p^\top v_j /
# \sqrt{d}$ for every patch, so moving $p$ moves all of them, and to first order
# $\Delta a_i = a_i \bigl(\Delta s_i - \sum_j a_j \, \Delta s_j\bigr)$. An approximation of first order leaves an error
# that shrinks with the square of the step. The theorem's does so for a score that moves alone; when the prompt moves,
# its error shrinks only in proportion to the step, as the change itself does. The conclusion that the paper draws,
# that a step towards a patch raises the weight on it, holds in the random cases tried. It need not hold always: a
# patch may lie so that others gain more.


# %% name="davpt.theorem-1" tags=["hide-input"]
STEPS = torch.logspace(-5, -2, 7, dtype=torch.float64)
SEEDS = range(10)


def errors_by_step():
    """Mean error by reading and seed, and how often the weight rises."""
    found = [attention_change(STEPS, seed) for seed in SEEDS]
    return {
        "steps": STEPS.tolist(),
        "errors": {name: [case[name].tolist() for case in found] for name in found[0]},
        "rises": [100 * rises(seed, 1e-4) for seed in SEEDS],
    }


theorem = recorded(
    "check",
    {"what": "Theorem 1 of DA-VPT", "seeds": len(SEEDS), "tokens": 196, "head": 64},
    errors_by_step,
)
fig, ax = plt.subplots(figsize=(7, 3.6))
LOOKS = {
    "the prompt moves": ("theorem's formula, the prompt moves", "#d55e00", "o-"),
    "one score moves": ("theorem's formula, one score moves", "#0072b2", "s-"),
    "all scores, whole derivative": ("whole derivative, the prompt moves", "#009e73", "^--"),
}
powers = {}
for name, (label, color, line_style) in LOOKS.items():
    cases = torch.tensor(theorem.values["errors"][name], dtype=torch.float64)
    powers[name] = [exponent(STEPS, case) for case in cases]
    size = {"ms": 9, "mfc": "none"} if name == "one score moves" else {"ms": 4}  # two lines nearly coincide
    ax.loglog(STEPS, cases.mean(0), line_style, color=color, label=label, **size)
ax.set(xlabel="length of the step", ylabel="mean error of the weight's change")
ax.legend()
page.show(
    "davpt.theorem-1",
    fig,
    evidence="derived",
    records=[theorem],
    how="Random prompts and 196 random patches of 64 dimensions, one head, float64; means over patches and 10 draws.",
    caption="Error of Theorem 1's formula against the step, and of the whole first-order formula.",
    alt="On log axes two lines fall with slope two; the theorem's formula with a moving prompt falls with slope one and "
    "lies far above them.",
)
for claim, name in {"exponent": "the prompt moves", "exponent-one-score": "one score moves"}.items():
    mean = sum(powers[name]) / len(powers[name])
    page.judge(
        f"davpt.theorem-1.{claim}",
        mean,
        min(powers[name]),
        max(powers[name]),
        evidence="derived",
        records=[theorem],
        note="The interval is the range over ten draws.",
    )
share = theorem.values["rises"]
page.judge(
    "davpt.theorem-1.sign",
    sum(share) / len(share),
    min(share),
    max(share),
    evidence="derived",
    records=[theorem],
    note="Random Gaussian patches and prompts; trained ones were not tried.",
)

# %% [markdown]
# (method-rates)=
# ## The quick recipe's learning rates
#
# Each method was tried with five rates of its prompts or weights on the task `position` with seed 0; the rate with the
# best validation accuracy is in the quick recipe. Test accuracies of these runs were not looked at. With one seed and
# 200 validation images two points are no difference: for most prompt methods any rate of the middle would do, and a
# best rate at the end of the range says that the search could go on.

# %% name="method-rates" tags=["hide-input"]
TRIED = {"weights": [0.001, 0.003, 0.01, 0.03, 0.1], "prompts": [0.01, 0.03, 0.1, 0.3, 1.0]}
OTHERS = [slug for slug in vp.METHODS if slug not in ("linear-probe", "full-finetune", "norm-tune", "vp", "ap")]
small, task = vp.load_backbone("vit_micro_patch4_24", "pretrained"), vp.load_task("position")
rows, searched = [], []
for slug in OTHERS:
    chosen, row = load_recipe("quick", slug, True).learning_rate, {"method": slug}
    for rate in TRIED["weights" if slug in ("bias", "lora", "adapter", "adaptformer", "ssf") else "prompts"]:
        recipe = load_recipe("quick", slug, True, learning_rate=rate)
        record = tune(vp.build_method(slug, small, task.classes), task, recipe, 0, run=False)
        if record is not None:
            searched.append(record)
            value = f"{record.values['val']:.1f}"
            row[rate] = f"<b>{value}</b>" if rate == chosen else value
    rows.append(row)
rates = sorted({rate for row in rows for rate in row if rate != "method"})
table(
    [{"method": f"<code>{row['method']}</code>", **{f"{rate:g}": row.get(rate, "") for rate in rates}} for row in rows],
    "Validation accuracy in percent by learning rate; bold: the recipe's.",
    searched,
    f"On {small.name}, task {task.name}, seed 0, 200 validation images.",
    "trend",
)

# %% tags=["remove-output", "remove-input"]
page.close()
