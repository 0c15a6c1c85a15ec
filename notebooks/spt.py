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
# # SPT: prompts that start as the task's own tokens
#
# *Revisiting the Power of Prompt for Visual Tuning* {cite}`spt` keeps VPT {cite}`jia2022visual` as it is and changes where
# the prompts start. VPT draws them from a uniform distribution. **Self-prompt tuning** (SPT) runs training images of the task through the frozen network. The prompts
# of block $i$ start as patch tokens that enter block $i$:
#
# $$ P_{i-1} \leftarrow C_{i-1} \subset \{ e^{j}_{i-1} \}, \qquad i = 1, \dots, L. $$
#
# The prototypes $C$ are cluster centres, pooled tokens or, what the paper uses after its ablation, tokens drawn at
# random.
#
# Starts, lengths, sizes and amounts of data are on [](spt_starts.ipynb), how long the starts take is on
# [](cost_papers.ipynb), and the drawings, {ref}`Figure 1 <spt.figure-1>` and {ref}`Figure S2 <spt.figure-s2>`, on
# [](methods_spt.ipynb). What follows from the printed cells is `derived`; accuracies come from small networks
# (`trend`). [The glossary](../glossary.md) says what these words allow.
#
# As in the paper, backbones of masked autoencoding (MAE) give the head the mean of the patches, since their class
# token was never trained; the others give it the class token.

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

from visbook.chapters import small_and_real as two_legs
from visbook.chapters import spt
from visbook.chapters.chapter import FULL, PARTS, Chapter
from visbook.studies import grids, insights, statistics
from visprompt.data.tasks import embedded_tasks

chapter = Chapter.opened(
    "spt", globals(), ["benchmark", "pretraining"], ["vpt-deep", "spt-deep", "full-finetune"]
)
page = chapter.page
VIT_B = "Needs ViT-B/16 of the paper's pre-trainings and its data sets."

# %% [markdown]
# ## How the runs were made
#
# Each run fits one method to one task with one seed and leaves a record; the table below is read off these records,
# and [](../recipes.md) has every field and its source. Every method has the same budget for its learning rate: three
# rates a cell, 0.2, 1 and 5 times the recipe's, judged on the validation images with seed 0; the best is kept for all
# seeds. In the paper profile what was chosen on the 200 validation images is trained again on all 1,000 images of a
# task of VTAB-1k, as Table S1 has it. A linear probe's rate is its head's; frozen prompts have none. Ablations take
# the rate of the main runs: other starts that of SPT-Deep, the uniform start that of VPT-Deep, other lengths and
# amounts of data that of the same method at the usual ones, and other sizes of the backbone that of the middle size.
#
# **What to keep in mind.** 200 validation images have a standard error of up to 3.5 points, so a search decides
# little between near rates; a single seed decides nothing. The quick profile's backbones are small and saw drawn
# pictures. The number of seeds stands below each table and figure.

# %% name="recipe" tags=["hide-input"]
tokens = " and ".join(map(str, chapter.scope.prompts.values()))
more = [("prompts, deep and shallow", tokens, "20 and 100")]
chapter.show_recipe(chapter.rows("benchmark", "pretraining"), more)

# %% [markdown]
# The rates that the search took say how far a start can matter: Adam moves an entry by up to about the rate in each
# step. Where a rate is as large as the tokens themselves, a few steps can undo any start.

# %% name="rates" tags=["hide-input"]
chapter.show_rates(chapter.rows("benchmark", "pretraining", variants=spt.PAIR))

# %% [markdown]
# (spt.figure-2)=
# ## Figure 2: Mutual information of prompts and patches
#
# Before it proposes anything, the paper watches VPT under MAE. It reads the sigmoid of all products of prompts and
# patches as a joint distribution, and takes the normalised mutual information (Eq. 7-8):
#
# $$ \pi_{kj} = \frac{\sigma(p_k \cdot e_j)}{\sum_{k,j} \sigma(p_k \cdot e_j)}, \qquad
#    \mathrm{NMI} = \frac{2\, I(P; E)}{H(P) + H(E)}. $$
#
# VPT's curves rise, and SPT's start high. One property of the measure should be known before reading either. A prompt
# of zeros makes $\pi$ constant, and then $I = 0$: the least value there is. VPT's prompts start small, so the curve
# can hardly do anything but rise as they grow; tokens of the network have larger norms, so prompts that are tokens start
# above. The measure answers to the norm of the prompts as well as to what they hold.


# %% name="spt.figure-2" tags=["hide-input"]
watched = chapter.measured("spt.figure-2", insights.prompts_and_patches)
caption = "NMI of prompts and patches by epoch, MAE: mean and range of the seeds."
alt = "Curves of NMI over epochs for VPT-Deep and SPT-Deep, one panel a task."
curves = lambda rows: spt.nmi_figure(spt.nmi(rows))
chapter.show("spt.figure-2", curves, watched, caption, alt)
spt.judge_nmi(chapter, watched)
spt.judge_convergence(chapter)
chapter.end(
    "spt.figure-2",
    "CUB-200-2011, Caltech-101, Patch Camelyon and Clevr/count with ViT-B/16 of MAE.",
)

# %% [markdown]
# Both claims can hold and still say nothing about accuracy, which the next table measures: a high NMI at the start is
# what the method puts there. And where validation picks a small rate for VPT (see the table of rates), its prompts
# hardly move and neither does its curve.

# %% [markdown]
# (spt.table-2)=
# ## Table 2: Self-supervised backbones
#
# The paper's main result: SPT-Deep has the best mean of every group of tasks under MAE and MoCo-v3, above full
# fine-tuning too, and its lead over VPT and Gate-VPT {cite}`yoo2023` is largest under MAE. A printed method that is
# missing below was left out for its cost.

# %% name="spt.table-2" tags=["hide-input"]
COLUMNS = [
    "Full fine-tuning",
    "VPT-Shallow",
    "VPT-Deep",
    "Gate-VPT",
    "SPT-Shallow",
    "SPT-Deep",
]
rivals = {"vpt": "VPT-Deep", "gate": "Gate-VPT", "full": "Full fine-tuning"}
for part in ("mae", "mocov3"):
    frame = chapter.rows("pretraining", variants=COLUMNS, part=part)
    caption = f"{PARTS[part]}: test accuracy in %, mean ± standard deviation over seeds."
    chapter.show("spt.table-2", statistics.group_table, frame, caption)
    about = {"on": "pretraining", "parts": [part]}
    for slug, rival in rivals.items():
        chapter.judge(f"spt.table-2.{part}-over-{slug}", frame, "SPT-Deep", rival, **about)
page.judge(
    "spt.table-2.wins-over-full",
    spt.wins_over_full(),
    evidence="derived",
    note="Counted in the printed cells.",
)
more = spt.mocov3_over_mae()
note = "By mean: " + ", ".join(f"{name} {value:.1f}" for name, value in more.mean().items())
below = [
    f"{method} on {name}" for name in more for method in more.index if more.loc[method, name] <= 0
]
note += f". Not above for {', '.join(below)}." if below else "."
page.judge("spt.table-2.mocov3-over-mae", more.to_numpy().mean(), evidence="derived", note=note)
page.printed("spt.table-2", "Table 2 as printed")
chapter.end("spt.table-2", f"{VIT_B} timm has no MoCo-v3 weights of ViT-B; give a file.")

# %% [markdown]
# **Why the lead may be missing here.** Beside the reasons at the head of this page, two more are possible.
#
# * *There may be less to gain.* The twelve blocks of a network that saw a million photographs may differ more from each
#   other than the eight of ours, trained on drawings.
# * *The epoch.* We report the last one; the paper does not say which one it reports.
#
# {ref}`Table 4 <spt.table-4>` shows the start by itself: there the prompts stay as they began.

# %% [markdown]
# (spt.table-3)=
# ## Table 3: FGVC against other methods, supervised
#
# With supervised pre-training on ImageNet-21k, SPT-Deep has the best mean over five fine-grained sets, with fewer
# trained parameters than most. Here one task, of many close classes, stands for the five. The prompts'
# parameters are counted on [](cost_papers.ipynb).

# %% name="spt.table-3" tags=["hide-input"]
LISTED = [
    "Full fine-tuning",
    "Linear probe",
    "BIAS",
    "VPT-Shallow",
    "VPT-Deep",
    "E2VPT",
    "SPT-Shallow",
    "SPT-Deep",
]
frame = chapter.rows("benchmark", variants=LISTED, tasks="fine", part="supervised")
names = ", ".join(frame.task.unique())
caption = f"{names}, supervised: test accuracy in %, mean ± standard deviation over seeds."
chapter.show("spt.table-3", spt.fine_table, frame, caption)
rivals = {"vpt-deep": "VPT-Deep", "e2vpt": "E2VPT", "full": FULL}
about = {"on": "fine", "parts": ["supervised"]}
for slug, rival in rivals.items():
    chapter.judge(f"spt.table-3.deep-over-{slug}", frame, "SPT-Deep", rival, **about)
page.printed("spt.table-3", "Table 3 as printed")
chapter.end("spt.table-3", "Needs ViT-B/16 of ImageNet-21k and the five FGVC sets.")

# %% [markdown]
# (spt.table-s1)=
# ## Table S1: Data sets
#
# Classes and split sizes of the 24 tasks. Nothing is run. Beside them are the tasks that stand for them in the quick
# profile; each has 800 training and 200 validation images unless said. The paper's final runs of VTAB-1k have both, and
# so have those of the paper profile here; the quick profile's have the 800.

# %% name="spt.table-s1" tags=["hide-input"]
parts = ("benchmark", "pretraining", "four", "ablation", "amount")
used = dict.fromkeys(name for part in parts for name in grids.scope_of("quick").tasks[part])
entries = [(name, embedded_tasks()[name]) for name in used]
table = pd.DataFrame(
    [
        (name, task["group"], task["nature"], len(task["classes"]), *task["splits"])
        for name, task in entries
    ],
    columns=["task", "group", "what", "classes", "train", "val", "test"],
)
page.show(
    "spt.table-s1",
    table,
    evidence="derived",
    how="From the description of the embedded tasks.",
    caption="The embedded tasks that stand for the paper's in the quick profile.",
)
off, starred = spt.val_shares_off()
page.judge(
    "spt.table-s1.val-share", off, evidence="derived", note=f"From the printed sizes of {starred}."
)
page.printed("spt.table-s1", "Table S1 as printed")

# %% [markdown]
# (spt.figure-s4)=
# ## Figure S4: Similarity of prompts and patches by layer
#
# The paper compares prompts with patches by centred kernel alignment (CKA, {cite}`kornblith2019`): SPT's prompts are
# most similar to the patches of their own layer, VPT's under self-supervised pre-training often to those of others.
#
# CKA needs as many samples on both sides, and there are fewer prompts than patches; the paper does not say what it
# takes as samples. **Our reading**: the channels. Prompts are then $N_p$ features and patches $N_e$ features of the
# same $D$ samples, image by image, and the mean over images is shown. We count the layers whose most similar patches
# are those that enter the same block.


# %% name="spt.figure-s4" tags=["hide-input"]
compared = chapter.measured("spt.figure-s4", insights.prompts_and_patches)
caption = "CKA of prompts and patches after the last epoch, mean over tasks and seeds. Dots: the most similar layer "
caption += "of each row; on the diagonal it is the prompts' own."
alt = "Matrices of CKA, prompts by block against patches by block, by method and pre-training."
matrices = lambda rows: spt.cka_figure(chapter, rows)
chapter.show("spt.figure-s4", matrices, compared, caption, alt)
caption = "Share of layers whose most similar patches are of their own layer."
chapter.show("spt.figure-s4", spt.own_layer_table, compared, caption)
spt.judge_cka(chapter, compared)
chapter.end(
    "spt.figure-s4", "ViT-B/16 of several pre-trainings; the data set is not named in the text."
)

# %% [markdown]
# Taken before the first step, SPT's prompts *are* tokens of their layer, so that this measure too starts in its
# favour; after training at a large rate little of that need be left. Neighbouring blocks of a residual network carry
# nearly the same tokens, which moves a maximum by one row without much meaning.

# %% [markdown]
# (spt.table-s3)=
# ## Table S3: Task by task, three pre-trainings
#
# Full fine-tuning, SPT-Shallow and SPT-Deep on each VTAB-1k task; here those that were run. With supervised
# pre-training SPT-Deep is above full fine-tuning on every printed task. The means of the groups in Tables 2 and S4 can
# be computed again from these cells.

# %% name="spt.table-s3" tags=["hide-input"]
frame = chapter.rows(
    "benchmark",
    "pretraining",
    variants=["Full fine-tuning", "SPT-Shallow", "SPT-Deep"],
    tasks="benchmark",
)
for part, name in PARTS.items():
    rows = frame[frame.backbone == chapter.scope.backbones.get(part)]
    caption = f"Pre-training {name}: test accuracy in %, mean over seeds."
    chapter.show("spt.table-s3", statistics.task_table, rows, caption)
over_full = (
    "spt.table-s3.supervised-over-full",
    frame,
    "SPT-Deep",
    "Full fine-tuning",
    "Without fine-grained.",
)
chapter.judge(*over_full, on="vtab", parts=["supervised"])
note = "A task that several backbones have counts as one, with their mean."
chapter.judge("spt.table-s3.deep-over-shallow", frame, "SPT-Deep", "SPT-Shallow", note, on="vtab")
off = spt.group_means_off()
note = f"{off.size} means of printed cells."
page.judge("spt.table-s3.group-means", off.abs().max(axis=None), evidence="derived", note=note)
page.printed("spt.table-s3", "Table S3 as printed")
chapter.end("spt.table-s3", f"{VIT_B} timm has no MoCo-v3 weights of ViT-B; give a file.")

# %% [markdown]
# (spt.table-s4)=
# ## Table S4: Groups of tasks against other methods, supervised
#
# Means over FGVC and VTAB-1k's groups. Of the methods that leave the backbone as it is, SPT-Deep has the best mean in
# every column; of those that change it, LoRA, SSF and SNF are each above it in some of VTAB-1k's groups. Adapter,
# LoRA, SSF and SNF are not part of this page's grid.

# %% name="spt.table-s4" tags=["hide-input"]
frame = chapter.rows("benchmark", variants=LISTED, part="supervised")
caption = "Supervised pre-training: test accuracy in %, mean ± standard deviation over seeds."
chapter.show("spt.table-s4", statistics.group_table, frame, caption)
pairs = {
    "deep-over-vpt-deep": ("SPT-Deep", "VPT-Deep"),
    "deep-over-e2vpt": ("SPT-Deep", "E2VPT"),
    "shallow-over-vpt-shallow": ("SPT-Shallow", "VPT-Shallow"),
}
for claim, pair in pairs.items():
    chapter.judge(f"spt.table-s4.{claim}", frame, *pair, on="benchmark")
page.printed("spt.table-s4", "Table S4 as printed")
chapter.end("spt.table-s4", "Needs ViT-B/16 of ImageNet-21k, FGVC and VTAB-1k.")

# %% [markdown]
# ## Photographs beside drawn pictures
#
# The same comparisons through a published ViT-Tiny; [](real_images.ipynb) has all runs and how they were made.

# %% name="real" tags=["hide-input"]
two_legs.show(chapter, "spt")
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# Change the number of prompts, or compare `"vpt-deep"`, whose prompts start at random. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("spt-deep", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
