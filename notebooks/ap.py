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
# This page shows how accurate AP is. Further pages: [](ap_layers.ipynb), [](ap_others.ipynb), [](ap_cost.ipynb),
# [](ap_peft.ipynb) and [](ap_theory.ipynb). Counts are made on the paper's architectures and are exact (`derived`);
# accuracies come from small networks (`trend`). [The glossary](../glossary.md) defines these words.
#
# We compare five methods. A **linear probe** trains the head alone, and **full fine-tuning** trains everything.
# **NORM-TUNE** trains scale and shift of every normalisation layer {cite}`basu2023`. **VP** and **AP** train one tensor.
# All of them train the head as well.

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
from visbook.chapters import ap, small_and_real
from visbook.chapters.chapter import Chapter
from visprompt import papers

OWN = ["ap-full", "ap-few", "ap-amount"]
chapter = Chapter.opened("ap", globals(), OWN, ap.METHODS, ["ap-full", "ap-few"])
page = chapter.page

# %% [markdown]
# (ap.figure-1)=
# ## Figure 1: Activation prompt against input prompt
#
# The paper's figure shows where the perturbation enters. We draw the same with the shapes of ViT-Large/16, and check in
# code that VP is AP at layer 0, the image.

# %% name="ap.figure-1" tags=["hide-input"]
large = vp.load_backbone("vit_large_patch16_224", device="meta")
page.show(
    "ap.figure-1",
    ap.prompt_figure(large),
    evidence="derived",
    how="Drawn by code; the shapes are those of the architecture.",
    caption="VP enters at the image, AP at the input of one block.",
    alt="Two rows of boxes from image to head. An arrow adds VP's perturbation at the image, another adds AP's in front of block 2.",
)
small = vp.load_backbone("vit_micro_patch4_24")
off = ap.vp_from_layer_0(small)
page.checked("VP is AP at layer 0, the image: largest difference of the logits", off, at_most=1e-5)

# %% [markdown]
# ## The runs
#
# Each run fits one method to one task with one seed and leaves a record. The seed sets the initialisation of the head,
# the order of the batches and, for a concatenated prompt, the prompt's initialisation. All seeds see the same images.
# We report the test accuracy after the last epoch. The page shows runs that the project keeps; each record names its
# commit, date and hardware.

# %% name="runs" tags=["hide-input", "remove-output"]
rows = chapter.planned("ap.table-1")

# %% [markdown]
# (ap-rates)=
# ### Learning rates
#
# For the drawings we tried up to five learning rates per method, on the task `position` with seed 0. The one with the
# best validation accuracy is used for all tasks and seeds (`data_manifests/recipes.yaml`). For the linear probe it is
# the head's learning rate. For AP we searched every block separately, because a single learning rate would suit some
# blocks better than others.
#
# The table repeats this search with other random numbers, so a chosen learning rate need not be the best of its row.
# The last column says by how many points it is below the best; a dash means that we keep no run at that learning rate.
#
# Two limits. With 200 validation images the standard error is up to 3.5 points, so neighbouring learning rates often
# cannot be told apart. And what suits `position` need not suit another task.

# %% name="rates" tags=["hide-input"]
chapter.show_left_out()
ap.show_rates(chapter)

# %% [markdown]
# (ap.table-1)=
# ## Table 1: Full-data accuracy on 19 data sets
#
# In the paper, AP has the best average of the four cheap methods on both backbones: more than 4 points above VP on
# ResNet-101 and 1.6 on ViT-Large/16. Full fine-tuning is ahead of all. The runs below use three tasks of drawings
# (`position`, `count` and `texture`) with their whole training splits, and AP at the paper's block. They judge the ResNet;
# the ViT is judged by photographs, where every method has its own search.
#
# Two limits. The paper says (Section 6, limitations) that on compact models such as ResNet-18 and ViT-Tiny AP improves
# on VP but not on NORM-TUNE. Our networks are a ViT-Tiny and smaller ones, so we test this caveat and not "AP over NORM-TUNE". And on
# drawings VP has {ref}`one learning rate <ap-rates>`, chosen on `position`, which may be too high for other tasks. That VP
# is below the linear probe does not show it: on photographs of textures, Caltech-101 and UC Merced it is below at its own
# best rate.

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
# The paper repeats Table 1 with 1,000 training images per task. For the drawings we take a fifth of the training split.

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
# The paper trains full fine-tuning, VP and AP on 10 to 100 % of three large data sets. We have two shares: the few
# images of Table 3 and the whole training split.

# %% name="ap.figure-a3" tags=["hide-input"]
rows = ap.with_share(chapter.planned("ap.figure-a3"))
chapter.show(
    "ap.figure-a3",
    ap.share_figure,
    rows,
    f"Mean accuracy over {', '.join(dict.fromkeys(rows.task))}, {ap.seeds_of(rows)}.",
    ap.share_alt,
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
# The table lists sizes, classes and batch sizes of the 19 full-data tasks and of the VTAB-1k tasks. We compare the two
# halves: a data set that appears in both must have the same number of classes.

# %% name="ap.table-a1" tags=["hide-input"]
printed = papers.published("ap.table-a1")
page.show(
    "ap.table-a1",
    ap.shared_data_sets(printed),
    evidence="derived",
    how="The printed cells, compared with each other.",
    caption="Data sets in both halves of the table. In the few-shot half, DTD's number of classes and test size are swapped.",
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
# ## Photographs beside embedded tasks
#
# The comparisons of Table 1 with a published ViT-Tiny on photographs. [](real_images.ipynb) has all runs, also with AP at
# every block.

# %% name="real" tags=["hide-input"]
small_and_real.show(chapter, "ap")

# %% [markdown]
# ## Try it
#
# `block` moves the prompt, from 0 (the first block) to 7; `task="count"` takes another task. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ap", block=2)

# %% tags=["remove-output", "remove-input"]
page.close()
