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
# # iVPT: prompts connected across blocks
#
# VPT-Deep {cite}`jia2022visual` learns the prompts of every block on their own. iVPT {cite}`ivpt` connects them, in
# three parts:
#
# - **CDC**, the cross-layer dynamic connection: what enters block $l$ are its own prompts plus those of the block
#   before. The prompts' outputs are thrown away, so nothing of the image passes through the connection.
# - **DA**, dynamic aggregation: $N \times N$ learned weights $\gamma$ mix the earlier prompts before they are added.
# - **AR**, attentive reinforcement: $k$ more learned tokens are added to the $k$ patches that the class token
#   attends to most.
#
# $$ \hat P^{l} = P^{l} + \gamma^{l-1} P^{l-1}, \qquad \tilde Z^{l+1}[\Omega^{l}] = Z^{l+1}[\Omega^{l}] + P_{re}^{l}. $$
#
# Where the paper is silent, this project chose: $\gamma$ starts at the identity and $P_{re}$ at zero, so that training
# starts as CDC; salience is the mean over heads. The three drawings of the paper are on
# [](methods_ivpt.ipynb), its Table 8 and all its counts of parameters on [](cost_papers.ipynb).
#
# The paper's own arithmetic is checked exactly (`derived`). Accuracies come from small networks (`trend`);
# [the glossary](../glossary.md) says what these words allow.
#
# Parts, structures, tokens, noise and attention are on [](ivpt_parts.ipynb), the appendix's tables on
# [](ivpt_appendix.ipynb).

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # in place of the profile's supervised ViT; no other backbone is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # search learning rates here
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
import pandas as pd

from visbook.auditing import counts
from visbook.chapters import ivpt, masks
from visbook.chapters import small_and_real as two_legs
from visbook.chapters.chapter import Chapter
from visbook.studies import statistics
from visprompt import papers

chapter = Chapter.opened(
    "ivpt", globals(), ["benchmark", "sizes", "sizes-swin", "pretraining"], ["vpt-deep", "ivpt"]
)
page = chapter.page

# %% [markdown]
# ## How the runs were made
#
# All methods share one recipe of `data_manifests/recipes.yaml`, except for the learning rate; the table below is
# read off the records of the runs. A **search** takes each cell, that is each method on each task and backbone, with
# the same budget: 0.2, 1 and 5 times the recipe's rate, with seed 0, and the best accuracy on the 200 validation
# images. The table says how many cells had one. Parts, structures and token numbers have searches of their own; other
# sizes of the backbone take the rate of the middle one. In the paper profile what was chosen so is trained again on
# all 1,000 images of a task of VTAB-1k. The reported accuracy is that of the last epoch on the test split.
#
# Two hundred validation images have a standard error of up to 3.5 points, so a search of three rates is coarse, and
# a method may owe a point or two to luck. The quick profile's backbones have eight blocks and 36 patches. Ten
# prompt tokens, and ten reinforced patches, are a far larger share here than on a ViT-B/16 with 196 patches. All this
# shows a trend, never a reproduction.
#
# The paper states no rates and no batch size; the paper profile searches around a rate of 1, with VPT's batch. The
# paper crops and flips the images of every task. That can change the answer on a structured task, so it is left out
# there. [](../recipes.md) has every field and its source.

# %% name="recipe" tags=["hide-input"]
more = [
    (
        "N and k",
        f"N = {chapter.scope.prompts['deep']}, k = 10, for every task",
        "per task, on validation (Tables 15, 16)",
    )
]
if profile == "paper":
    more = [("N and k", "those of Tables 15 and 16", "per task, on validation (Tables 15, 16)")]
chapter.show_recipe(chapter.rows("benchmark", "sizes", "pretraining"), more)

# %% [markdown]
# (ivpt.table-1)=
# ## Table 1: VTAB-1k per task against the state of the art
#
# The paper compares iVPT with sixteen other ways to adapt a ViT-B/16 and finds the highest mean of the three groups, at
# as many parameters as VPT. Its row "SPT" is sensitivity-aware tuning, not the Self-Prompt Tuning of this book.
# The table here has one task of each group and those of the listed methods that this package has, at one number of
# prompts. The parameter columns are counted on each model as it was trained; where the paper's own counts come from
# is on [](cost_papers.ipynb).

# %% name="ivpt.table-1" tags=["hide-input"]
LISTED = ["Full fine-tuning", "Linear probe", "BIAS", "VPT-Deep", "EXPRESS", "E2VPT", "iVPT"]
frame = chapter.rows("benchmark", variants=LISTED, tasks="benchmark", part="supervised")
frame = frame[frame.group != "fine"]
by_group = lambda rows: ivpt.with_parameters(statistics.group_table(rows), rows)
chapter.show("ivpt.table-1", by_group, frame, f"{ivpt.BY_GROUP} Trained parameters in thousands.")
caption = "The same by task: test accuracy in %, mean over seeds."
chapter.show("ivpt.table-1", statistics.task_table, frame, caption)
rivals = {
    "full": "Full fine-tuning",
    "vpt": "VPT-Deep",
    "express": "EXPRESS",
    "e2vpt": "E2VPT",
    "bias": "BIAS",
}
for word, worse in rivals.items():
    chapter.judge(f"ivpt.table-1.ivpt-over-{word}", frame, "iVPT", worse, on="vtab")
for group in ("natural", "specialized", "structured"):
    chapter.judge(
        f"ivpt.table-1.ivpt-over-vpt-{group}", frame, "iVPT", "VPT-Deep", on=chapter.of_group(group)
    )
chapter.judge("ivpt.table-1.full-over-linear", frame, "Full fine-tuning", "Linear probe", on="vtab")
ivpt.audit(chapter, "ivpt.table-1")
printed = papers.published("ivpt.table-1").set_index("method")["Group mean"].astype(float)
ivpt.derive(
    chapter, "ivpt.table-1.printed-best", int((printed.drop("iVPT") >= printed["iVPT"]).sum())
)
page.printed("ivpt.table-1", "Table 1 as printed")
chapter.end("ivpt.table-1", ivpt.SCALE)

# %% [markdown]
# Where full fine-tuning stands high in the quick profile, mind that its networks are small: training all of one on 800
# images is no great risk, whereas the paper's has some two hundred times as many weights for 1,000 images.

# %% [markdown]
# (ivpt.table-5)=
# ## Table 5: Other backbones
#
# The paper has iVPT above VPT on ViT-B, ViT-L, ViT-H and Swin-B, by the most on ViT-B. The trend has three widths of
# one ViT, and a Swin of four stages. A Swin has no class token whose attention AR could follow, and the paper does not
# say what AR does there, so CDC and DA run alone on it; on the small Swin both methods search a rate of their own.

# %% name="ivpt.table-5" tags=["hide-input"]
sizes = ivpt.of_sizes(chapter)
if sizes:
    table = ivpt.stacked(sizes, "backbone", statistics.group_table)
    chapter.show("ivpt.table-5", table, pd.concat(sizes.values()), ivpt.BY_GROUP)
if "larger" in sizes:
    claim, note = "ivpt.table-5.ivpt-over-vpt-larger", "Rates of the middle size."
    chapter.judge(claim, sizes["larger"], "iVPT", "VPT-Deep", on="sizes", note=note)
ivpt.audit(chapter, "ivpt.table-5")
ivpt.derive(chapter, "ivpt.table-5.gains-everywhere", len(ivpt.not_above_vpt()))
if {"ViT-H/14", "Swin"} <= set(sizes):
    compared = {"ViT-H/14": ("iVPT", "VPT-Deep"), "Swin": (ivpt.WITHOUT_AR, "VPT-Deep")}
    leads = {name: (sizes[name], *pair) for name, pair in compared.items()}
    chapter.judge_least(
        "ivpt.table-5.ivpt-over-vpt-huge", leads, "sizes", note="Rates of ViT-B/16."
    )
elif chapter.p.profile == "quick":
    why = "no small network stands for a ViT-H/14 or a Swin-B; the sizes that are filled are judged above"
    page.not_judged("ivpt.table-5.ivpt-over-vpt-huge", why)
page.printed("ivpt.table-5", "Table 5 as printed")
chapter.end("ivpt.table-5", ivpt.SIZES_WHY)

# %% [markdown]
# (ivpt.table-6)=
# ## Table 6: Other pre-trainings
#
# Backbones that were pretrained without labels: MoCo-v3 and MAE. The paper finds VPT weak there, Gate-VPT
# ("GaPT" in the paper, {cite}`yoo2023`), made for such backbones, better, and iVPT better still. The quick
# profile's backbones have one size for all three pre-trainings; the two without labels learned from pictures of things
# before things ([](small_world.ipynb)).

# %% name="ivpt.table-6" tags=["hide-input"]
pre = ivpt.of_pretrainings(chapter)
if pre:
    table = ivpt.stacked(pre, "pre-training", statistics.group_table)
    chapter.show("ivpt.table-6", table, pd.concat(pre.values()), ivpt.BY_GROUP)
for label, word in (("MoCo-v3", "mocov3"), ("MAE", "mae")):
    if label in pre:
        chapter.judge(
            f"ivpt.table-6.{word}-ivpt-over-vpt", pre[label], "iVPT", "VPT-Deep", on="pretraining"
        )
        chapter.judge(
            f"ivpt.table-6.{word}-ivpt-over-gate", pre[label], "iVPT", "Gate-VPT", on="pretraining"
        )
ivpt.audit(chapter, "ivpt.table-6")
page.printed("ivpt.table-6", "Table 6 as printed")
chapter.end("ivpt.table-6", ivpt.PRE_WHY)

# %% [markdown]
# Gate-VPT has prompts at the first block alone, with gates and temperatures; VPT-Deep and iVPT have prompts at every
# block. On the MAE backbone the head reads the mean of the patches, since the class token was not trained. AR still
# follows the class token's attention there, which is then a poor guide to what matters.

# %% [markdown]
# (ivpt.table-7)=
# ## Table 7: Semantic segmentation
#
# On ADE20K with SETR's decoder {cite}`zheng2021` the paper uses CDC and DA alone, and iVPT comes out above VPT at the
# same number of parameters, and higher still with a hundred prompts.
#
# **In the quick profile** the pictures are drawn scenes of two objects, whose painter knows the class of every pixel,
# and a linear head reads the patches: the hundred steps are too few for SETR-PUP's convolutions, and may be too few
# for what a method adds to pay off. "More prompts" are thirty, beside 36 patches. The column of parameters is counted
# with SETR-PUP as MMSegmentation builds it for ADE20K: a little less than printed in every row, and the same
# differences between the rows; [](cost_papers.ipynb) has them one by one.

# %% name="ivpt.table-7" tags=["hide-input"]
LARGE = "vit_large_patch16_224"
many, few = (
    counts.count(LARGE, "ivpt", (("prompt_tokens", n), ("ar", "none")), False) for n in (100, 10)
)
note = "Counted on a ViT-L/16, without AR."
ivpt.derive(chapter, "ivpt.table-7.parameters-of-prompts", (many - few) / 1e6, note)
page.show(
    "ivpt.table-7",
    masks.parameters(),
    evidence="derived",
    how="Counted on the shapes of both networks at 224 pixels, with 150 classes.",
    caption="Trained parameters with SETR-PUP and its three auxiliary heads, beside the printed column.",
)
segmented = masks.found(chapter)
masks.show(chapter, "ivpt.table-7", segmented, [*masks.PRINTED], printed=True)
for claim, better, worse in masks.IVPT_CLAIMS:
    masks.judge(chapter, f"ivpt.table-7.{claim}", segmented, better, worse)
page.printed("ivpt.table-7", "Table 7 as printed")
masks.end(chapter, "ivpt.table-7", "ade20k")

# %% [markdown]
# (ivpt.table-9)=
# ## Table 9: FGVC per data set
#
# Five fine-grained sets. iVPT has the best mean in the paper and, of the methods that train more than a head, the
# fewest parameters. The quick profile's task `flowers` has forty close classes with twenty training images each.

# %% name="ivpt.table-9" tags=["hide-input"]
FINE = ["Full fine-tuning", "Linear probe", "VPT-Deep", "EXPRESS", "E2VPT", "iVPT"]
frame = chapter.rows("benchmark", variants=FINE, tasks="fine", part="supervised")
means = lambda rows: ivpt.with_parameters(statistics.group_table(rows, groups=()), rows)
names = ", ".join(dict.fromkeys(frame.task))
caption = f"Test accuracy in % on {names}, mean ± standard deviation over seeds. Trained parameters in thousands."
chapter.show("ivpt.table-9", means, frame, caption)
for word, worse in (("vpt", "VPT-Deep"), ("e2vpt", "E2VPT"), ("full", "Full fine-tuning")):
    chapter.judge(f"ivpt.table-9.ivpt-over-{word}", frame, "iVPT", worse, on="fine")
FGVC = ["CUB-200", "NABirds", "Oxford Flowers", "Stanford Dogs", "Stanford Cars"]
ivpt.audit(chapter, "ivpt.table-9")
printed = papers.published("ivpt.table-9").set_index("method").params_m
printed = printed[printed != "-"].astype(float)
ivpt.derive(
    chapter,
    "ivpt.table-9.fewest-parameters",
    int((printed < printed["iVPT"]).drop("Linear Probing").sum()),
)
page.printed("ivpt.table-9", "Table 9 as printed")
why = "The five FGVC sets with a ViT-B/16 need the published weights and the data."
chapter.end("ivpt.table-9", why)

# %% [markdown]
# ## Photographs beside drawn pictures
#
# The same comparisons through a published ViT-Tiny; [](real_images.ipynb) has all runs and how they were made.

# %% name="real" tags=["hide-input"]
two_legs.show(chapter, "ivpt")
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# Change the number of prompts, or compare `"vpt-deep"` at the same number. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ivpt", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
