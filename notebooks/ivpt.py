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
# VPT-Deep {cite}`jia2022visual` learns the prompts of every block independently. iVPT {cite}`ivpt` connects them. It has
# three parts:
#
# - **CDC**, the cross-layer dynamic connection: block $l$ receives its own prompts plus those of the block before. The
#   prompts' outputs are discarded, so no information about the image passes through the connection.
# - **DA**, dynamic aggregation: $N \times N$ learned weights $\gamma$ mix the earlier prompts before they are added.
# - **AR**, attentive reinforcement: $k$ further learned tokens are added to the $k$ patches that the class token
#   attends to most.
#
# $$ \hat P^{l} = P^{l} + \gamma^{l-1} P^{l-1}, \qquad \tilde Z^{l+1}[\Omega^{l}] = Z^{l+1}[\Omega^{l}] + P_{re}^{l}. $$
#
# The paper does not say how $\gamma$ and $P_{re}$ are initialised. We use the identity and zero, so that training begins
# as CDC. Attention is averaged over heads to find the $k$ patches.
#
# The paper's three drawings are on [](methods_ivpt.ipynb). Parts, structures, tokens, noise and attention are on
# [](ivpt_parts.ipynb), the appendix's tables on [](ivpt_appendix.ipynb), Table 8 and all counts of parameters on
# [](cost_papers.ipynb). The paper's arithmetic is checked exactly (`derived`); accuracies come from small networks
# (`trend`). [The glossary](../glossary.md) explains these words.

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
# All methods share one recipe of `data_manifests/recipes.yaml`, except for the learning rate. The table below is read
# from the records of the runs. Each method has {ref}`our search <our-search>` for the learning rate on each task and pre-training of the
# middle-sized backbone; the table says for how many cells it was run. Parts, structures and numbers of tokens have their
# own searches; other sizes of the backbone use the learning rates of the middle size. In the paper profile the final model is trained on
# all 1,000 images of a VTAB-1k task. We report the test accuracy of the last epoch.
#
# With 200 validation images the standard error is up to 3.5 points. A search is therefore coarse, and luck can be worth a
# point or two. Our backbones have eight blocks and 36 patches, so ten prompts and ten reinforced patches are a far larger
# share than on a ViT-B/16 with 196 patches. All this shows a trend, never a reproduction.
#
# The paper states neither learning rates nor the batch size. The paper profile searches around a learning rate of 1, with
# VPT's batch size. The paper crops and flips the images of every task. On structured tasks that can change the correct
# answer, so we leave it out there. [](../recipes.md) has every field and its source.

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
chapter.show_recipe(chapter.rows("benchmark", "sizes", "sizes-swin", "pretraining"), more)

# %% [markdown]
# (ivpt.table-1)=
# ## Table 1: VTAB-1k per task against the state of the art
#
# The paper compares iVPT with sixteen other ways to adapt a ViT-B/16. iVPT has the highest mean over the three groups, with
# as many parameters as VPT. The paper's row "SPT" is sensitivity-aware tuning, not the Self-Prompt Tuning of this book.
# Our table has one task per group and those of the methods that this package implements, with one number of prompts.
# Parameters are counted on the trained models; the paper's counts are checked on [](cost_papers.ipynb).

# %% name="ivpt.table-1" tags=["hide-input"]
LISTED = ["Full fine-tuning", "Linear probe", "BIAS", "VPT-Deep", "EXPRESS", "E2VPT", "iVPT"]
frame = chapter.rows("benchmark", variants=LISTED, tasks="benchmark", part="supervised")
frame = frame[frame.group != "fine"]
by_group = lambda rows: ivpt.with_parameters(statistics.group_table(rows), rows)
chapter.show("ivpt.table-1", by_group, frame, f"{ivpt.BY_GROUP} Trained parameters in thousands.")
caption = "The same by task: test accuracy in %, mean over seeds."
by_task = lambda rows: statistics.task_table(rows).reset_index(names="method")
chapter.show("ivpt.table-1", by_task, frame, caption)
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
# Full fine-tuning is strong here because our networks are small: training all weights on 800 images carries little risk
# of overfitting. The paper's network has some two hundred times as many weights, for 1,000 images.

# %% [markdown]
# (ivpt.table-5)=
# ## Table 5: Other backbones
#
# In the paper iVPT beats VPT on ViT-B, ViT-L, ViT-H and Swin-B, most clearly on ViT-B. We use three widths of one ViT, and
# a Swin with four stages. A Swin has no class token whose attention AR could follow, and the paper does not say what AR
# does there. We therefore run CDC and DA alone on it. On the small Swin the learning rate is searched for both methods.

# %% name="ivpt.table-5" tags=["hide-input"]
sizes = ivpt.of_sizes(chapter)
if sizes:
    table = ivpt.stacked(sizes, "backbone", statistics.group_table)
    chapter.show("ivpt.table-5", table, pd.concat(sizes.values()), ivpt.BY_GROUP)
if "larger" in sizes:
    claim, note = "ivpt.table-5.ivpt-over-vpt-larger", "Learning rates of the middle size."
    chapter.judge(claim, sizes["larger"], "iVPT", "VPT-Deep", on="sizes", note=note)
ivpt.audit(chapter, "ivpt.table-5")
ivpt.derive(chapter, "ivpt.table-5.gains-everywhere", len(ivpt.not_above_vpt()))
if {"ViT-H/14", "Swin"} <= set(sizes):
    compared = {"ViT-H/14": ("iVPT", "VPT-Deep"), "Swin": (ivpt.WITHOUT_AR, "VPT-Deep")}
    leads = {name: (sizes[name], *pair) for name, pair in compared.items()}
    chapter.judge_least(
        "ivpt.table-5.ivpt-over-vpt-huge", leads, "sizes", note="Learning rates of ViT-B/16."
    )
elif chapter.p.profile == "quick":
    why = (
        "it is about a ViT-H/14 and a Swin-B together, and no small network can represent the first"
    )
    page.not_judged("ivpt.table-5.ivpt-over-vpt-huge", why)
page.printed("ivpt.table-5", "Table 5 as printed")
chapter.end("ivpt.table-5", ivpt.SIZES_WHY)

# %% [markdown]
# (ivpt.table-6)=
# ## Table 6: Other pre-trainings
#
# MoCo-v3 and MAE are pre-trained without labels. In the paper VPT is weak on them, Gate-VPT (called "GaPT" there,
# {cite}`yoo2023`), designed for such backbones, is better, and iVPT is better still. Our backbones have the same size for
# all three pre-trainings. The two without labels were trained on drawings of overlapping shapes ("leaves";
# [](small_world.ipynb)).

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
# Gate-VPT has prompts in the first block only, with gates and temperatures; VPT-Deep and iVPT have prompts in every block.
# On the MAE backbone the head reads the mean of the patches, because the class token was not trained. AR still follows
# the class token's attention, which is then a poor guide to what matters.

# %% [markdown]
# (ivpt.table-7)=
# ## Table 7: Semantic segmentation
#
# On ADE20K with SETR's decoder {cite}`zheng2021` the paper uses only CDC and DA. iVPT beats VPT with the same number of
# parameters, and is better still with a hundred prompts.
#
# **In the quick profile** the images are drawn scenes of two objects, so the class of every pixel is known. A linear head
# reads the patches, because our hundred training steps are too few for SETR-PUP's convolutions. They may also be too few
# for a method's extra parameters to pay off. "More prompts" means thirty, next to 36 patches. Parameters are counted with
# SETR-PUP as MMSegmentation builds it for ADE20K. Every row has slightly fewer than printed; the differences between rows
# agree. [](cost_papers.ipynb) has them one by one.

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
    caption="Trained parameters with SETR-PUP and its three auxiliary heads, and as printed.",
)
segmented = masks.found(chapter)
masks.show(chapter, "ivpt.table-7", segmented, [*masks.PRINTED], printed=True)
for claim, better, worse in masks.IVPT_CLAIMS:
    masks.judge(chapter, f"ivpt.table-7.{claim}", segmented, better, worse)
page.printed("ivpt.table-7", "Table 7 as printed")
masks.end(chapter, "ivpt.table-7", "ADE20K")

# %% [markdown]
# (ivpt.table-9)=
# ## Table 9: FGVC per data set
#
# Five fine-grained data sets. In the paper iVPT has the best mean and, among the methods that train more than a head, the
# fewest parameters. Our task `flowers` has forty similar classes with twenty training images each.

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
why = "The five FGVC data sets with a ViT-B/16 need the published weights and the data."
chapter.end("ivpt.table-9", why)

# %% [markdown]
# ## Photographs beside embedded tasks
#
# The same comparisons with a published ViT-Tiny on photographs; [](real_images.ipynb) has all runs.

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
