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
# # AP: activation prompts
#
# *Visual Prompting Reimagined: the Power of Activation Prompts* {cite}`ap` adds one learned tensor $\delta^{(l)}$ to what
# enters block $l$ of a frozen network:
#
# $$ g(z^{(l)}, \delta^{(l)}) = z^{(l)} + \delta^{(l)}. $$
#
# With $l = 0$ it is the ordinary visual prompt (VP) on the pixels {cite}`bahng2022`.
#
# This page is about how well AP does. The others: [](ap_layers.ipynb); [](ap_others.ipynb); [](ap_cost.ipynb);
# [](ap_peft.ipynb); [](ap_theory.ipynb). Counts are made on the papers' architectures and hold exactly (`derived`);
# accuracies come from small networks (`trend`). [The glossary](../glossary.md) says what these words allow.
#
# The methods compared here: **linear probe** (the head alone), **full fine-tuning**, **NORM-TUNE** (scale and
# shift of every normalisation layer, {cite}`basu2023`), **VP** and **AP**. In all of them the head is trained too.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # in place of the profile's ViT or ResNet; no other is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # do the quick profile's search for learning rates too, where it has no records (about an hour)
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
import visprompt as vp
from visbook.chapters import ap
from visbook.chapters.chapter import Chapter
from visprompt import papers

OWN = ["ap-full", "ap-few", "ap-amount"]
chapter = Chapter.opened("ap", globals(), OWN, ap.METHODS, ["ap-full", "ap-few"])
page = chapter.page

# %% [markdown]
# (ap.figure-1)=
# ## Figure 1: Activation prompt against input prompt
#
# The paper's drawing shows where the perturbation enters. Here is the same idea, with the shapes of the two
# architectures of the paper; and a check that the statement behind it holds in code: VP is AP with the layer number
# set to 0, the image.

# %% name="ap.figure-1" tags=["hide-input"]
large = vp.load_backbone("vit_large_patch16_224", device="meta")
page.show(
    "ap.figure-1",
    ap.prompt_figure(large),
    evidence="derived",
    how="A drawing made from code; the shapes are read off the architectures.",
    caption="Where the learned perturbation enters: VP at the image, AP at the input of one block.",
    alt="Two rows of boxes from image to head. An arrow adds VP's perturbation at the image, another adds AP's in front of block 2.",
)
small = vp.load_backbone("vit_micro_patch4_24")
off = ap.vp_from_layer_0(small)
page.checked("VP is AP at layer 0, the image: largest difference of the logits", off, at_most=1e-5)

# %% [markdown]
# ## The runs
#
# Each run fits one method on one task with one seed and leaves a record. The seed decides the head's start, the
# order of the batches and, for a concatenated prompt, its start; the images of a task are the same for all seeds.
# The reported accuracy is that of the last epoch on the test split. AP and the linear probe keep the activations
# below their first trained block. In the quick profile the ViT on `position` with seed 0 is run here where it has no
# record; the other tasks and seeds, the ResNet, and the search for learning rates, are records that the project keeps
# (each names its commit, date and hardware).

# %% name="runs" tags=["hide-input", "remove-output"]
rows = chapter.planned("ap.table-1")

# %% [markdown]
# **How the quick profile's learning rates were chosen.** Five rates a method (of the head for the linear probe, which
# trains nothing else), on the task `position` with seed 0; the rate with the best validation accuracy was taken and
# used for all tasks and seeds (`data_manifests/recipes.yaml`). AP's rate was chosen so for every block, because a
# comparison of blocks at one rate compares the rate as well. 200 validation images give a standard error of up to 3.5
# points, so that neighbouring rates often cannot be told apart, and a rate that suits `position` need not suit
# another task. The runs shown use other random streams than those by which the rates were chosen; the last column
# says how far the recipe's rate is below the best of its row. A dash: the run at that rate is not kept.

# %% name="rates" tags=["hide-input"]
chapter.show_left_out()
ap.show_rates(chapter)

# %% [markdown]
# (ap.table-1)=
# ## Table 1: Full-data accuracy on 19 data sets
#
# In the paper AP has the best average of the four cheap methods on both backbones, over 4 points above VP on
# ResNet-101 and 1.6 on ViT-Large; full fine-tuning stays ahead of all. The trend here uses the whole training split
# of this run's tasks, with AP at the paper's place.
#
# Two things to know when reading it. The paper itself says (Section 6, limitations) that on compact models such as
# ResNet-18 and ViT-Tiny AP improves on VP but not on NORM-TUNE; the quick profile's networks are far smaller still,
# so that statement is judged here and "AP over NORM-TUNE" is not. And in the quick profile VP has one learning rate,
# chosen on `position`: where VP falls below the linear probe on another task, that rate is probably too high for it
# there; smaller ones were not tried on the other tasks.

# %% name="ap.table-1" tags=["hide-input"]
caption = f"Test accuracy in %, whole training split, {ap.shown_of(rows)}."
chapter.show("ap.table-1", ap.table, rows, caption)
ap.judge_gains(chapter, "ap.table-1", rows, on := chapter.of_study("ap-full"))
ap.judge_compact(chapter, rows, on)

# %% name="table-1-printed" tags=["hide-input"]
CELLS = "From the printed cells."
ap.judge_averages(page, "ap.table-1")
printed, cells = ap.printed_cells("ap.table-1")
best = ap.best_counts(printed, cells)
page.judge("ap.table-1.resnet-best-count", best["ResNet-101"], evidence="derived", note=CELLS)
page.judge("ap.table-1.vit-best-count", best["ViT-Large/16"], evidence="derived", note=CELLS)
over_vp = ap.printed_gains(printed, cells)
page.judge(
    "ap.table-1.ap-over-vp-everywhere",
    int((over_vp <= 0).to_numpy().sum()),
    evidence="derived",
    note=CELLS,
)
gains = over_vp.loc["ResNet-101", ["StanfordCars", "SVHN", "GTSRB"]]
page.judge(
    "ap.table-1.gain-range",
    ap.outside(gains, 7, 9),
    evidence="derived",
    note=f"Printed gains: {', '.join(f'{name} {gain:.2f}' for name, gain in gains.items())}.",
)
page.printed("ap.table-1", "Table 1 as printed")
page.not_run(
    "ap.table-1",
    why="The 19 data sets with ResNet-101 and ViT-Large/16 need the published weights and the data.",
)

# %% [markdown]
# (ap.table-3)=
# ## Table 3: Few-shot accuracy on VTAB-1k
#
# The paper repeats Table 1 with 1000 training images a task. In the quick profile "few" is a fifth of the training
# split.

# %% name="ap.table-3" tags=["hide-input"]
rows = chapter.planned("ap.table-3")
images = " or ".join(f"{size:,}" for size in sorted(set(rows.train_size)))
caption = f"Test accuracy in %, {images} training images, {ap.shown_of(rows)}."
chapter.show("ap.table-3", ap.table, rows, caption)
ap.judge_gains(chapter, "ap.table-3", rows, chapter.of_study("ap-few"), drawn=True)
ap.judge_averages(page, "ap.table-3")
page.printed("ap.table-3", "Table 3 as printed")
page.not_run(
    "ap.table-3",
    why="VTAB-1k with ResNet-101 and ViT-Large/16 needs the published weights and the data.",
)

# %% [markdown]
# (ap.figure-a3)=
# ## Figure A3: Share of training data (caption absent from the text)
#
# Accuracy of full fine-tuning, VP and AP with 10 to 100 % of the training data, on three large data sets. Here with
# the few images of Table 3 and with all of the tasks' training split.

# %% name="ap.figure-a3" tags=["hide-input"]
rows = ap.with_share(chapter.planned("ap.figure-a3"))
chapter.show(
    "ap.figure-a3",
    ap.share_figure,
    rows,
    f"Mean accuracy over {', '.join(dict.fromkeys(rows.task))}, {ap.seeds_of(rows)}.",
    "Mean accuracy of full fine-tuning, VP and AP over the share of the training images.",
)
ap.judge_shares(chapter, rows)
page.not_run(
    "ap.figure-a3",
    why="Camelyon, Food101 and CIFAR-10 need the data and the published weights.",
)

# %% [markdown]
# (ap.table-a1)=
# ## Table A1: Data set statistics
#
# Sizes, classes and batch sizes of the 19 full-data and the VTAB-1k tasks. Nothing is run; the printed cells can be
# held against each other: a data set that stands in both halves must have the same number of classes.

# %% name="ap.table-a1" tags=["hide-input"]
printed = papers.published("ap.table-a1")
page.show(
    "ap.table-a1",
    ap.shared_data_sets(printed),
    evidence="derived",
    how="The printed cells held against each other.",
    caption="Data sets that stand in both halves of the table. In the few-shot half, DTD's class number and test size are swapped.",
)
few = printed[printed.setting != "full-data"]
page.judge(
    "ap.table-a1.few-shot-training-size",
    int((few.train_size.astype(int) - 1000).abs().max()),
    evidence="derived",
    note=CELLS,
)
page.printed("ap.table-a1", "Table A1 as printed")

# %% [markdown]
# ## Try it
#
# Move the prompt with `block`, from 0 to 7, or take another task, such as `count`. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ap", block=2)

# %% tags=["remove-output", "remove-input"]
page.close()
