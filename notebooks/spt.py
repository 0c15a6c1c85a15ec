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
# *Revisiting the Power of Prompt for Visual Tuning* {cite}`spt` changes only the initialisation of VPT
# {cite}`jia2022visual`. VPT draws its initial prompts from a uniform distribution. **Self-prompt tuning** (SPT) passes
# training images of the task through the frozen network and initialises the prompts of block $i$ with patch tokens that
# enter block $i$:
#
# $$ P_{i-1} \leftarrow C_{i-1} \subset \{ e^{j}_{i-1} \}, \qquad i = 1, \dots, L. $$
#
# The prototypes $C$ are cluster centres, pooled tokens, or randomly sampled tokens. After its ablation, the paper uses
# random ones.
#
# Ablations of initialisation, length, size and amount of data are on [](spt_starts.ipynb). The time that initialisation
# takes is on [](cost_papers.ipynb), the drawings, {ref}`Figure 1 <spt.figure-1>` and
# {ref}`Figure S2 <spt.figure-s2>`, are on [](methods_spt.ipynb). What follows from printed cells is `derived`; accuracies
# come from small networks (`trend`). [The glossary](../glossary.md) explains these words.
#
# As in the paper, the head reads the mean of the patches on masked autoencoders (MAE), whose class token was never
# trained, and the class token on all other backbones.

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
# Each run trains one method on one task with one seed. The table below is read from the records of these runs;
# [](../recipes.md) has every field and its source. Every method has the same {ref}`search <our-search>` for its learning
# rate, and what it takes is used for all seeds. In the paper profile the final model is trained on all 1,000 images of a
# VTAB-1k task, as in Table S1. Ablations reuse learning rates:
#
# | ablation | learning rate of |
# |---|---|
# | other initialisations and levels, learned (Tables 4, S2) | a search of its own |
# | share of the images (Figure 3a) | SPT-Deep |
# | other numbers of prompts, other amounts of data | the same method at the usual setting |
# | other backbone sizes | the middle size |
#
# **What to keep in mind.** With 200 validation images the standard error is up to 3.5 points, so the search hardly
# distinguishes neighbouring learning rates, and a single seed decides nothing. Our backbones are small and were trained on
# drawings. The number of seeds is given below each table and figure.

# %% name="recipe" tags=["hide-input"]
tokens = " and ".join(map(str, chapter.scope.prompts.values()))
more = [("prompts, deep and shallow", tokens, "20 and 100")]
chapter.show_recipe(chapter.rows("benchmark", "pretraining"), more)

# %% [markdown]
# (spt-rates)=
# The chosen learning rates tell how much the initialisation can matter. Adam changes each entry by at most roughly the
# learning rate per step. If the learning rate is as large as the tokens themselves, a few steps can undo any
# initialisation.

# %% name="rates" tags=["hide-input"]
chapter.show_rates(chapter.rows("benchmark", "pretraining", variants=spt.PAIR))

# %% [markdown]
# (spt.figure-2)=
# ## Figure 2: Mutual information of prompts and patches
#
# Before it proposes SPT, the paper analyses VPT with an MAE backbone. It treats the sigmoids of all products of prompts and
# patches as a joint distribution and computes the normalised mutual information (Eq. 7 and 8):
#
# $$ \pi_{kj} = \frac{\sigma(p_k \cdot e_j)}{\sum_{k,j} \sigma(p_k \cdot e_j)}, \qquad
#    \mathrm{NMI} = \frac{2\, I(P; E)}{H(P) + H(E)}. $$
#
# VPT's curves rise, and SPT's start high. Before you read them, note one property of this measure. If all prompts are
# zero, $\pi$ is constant and $I = 0$, the lowest possible value. VPT's prompts start small, so its curve must rise as they
# grow. Tokens of the network are larger, so prompts that are tokens start higher. The measure depends on the size of the
# prompts as well as on their content.


# %% name="spt.figure-2" tags=["hide-input"]
watched = chapter.measured("spt.figure-2", insights.prompts_and_patches)
caption = "NMI of prompts and patches by epoch, MAE: mean and range over seeds, logarithmic axis; factors: last over first."
alt = f"NMI by epoch, first and last. {spt.nmi_told(spt.nmi(watched))}" if len(watched) else None
curves = lambda rows: spt.nmi_figure(spt.nmi(rows))
chapter.show("spt.figure-2", curves, watched, caption, alt)
spt.judge_nmi(chapter, watched)
spt.judge_convergence(chapter)
chapter.end(
    "spt.figure-2",
    "CUB-200-2011, Caltech-101, Patch Camelyon and Clevr/count with ViT-B/16 of MAE.",
)

# %% [markdown]
# The two claims on NMI can hold without saying anything about accuracy, which the next table measures: the method itself puts the
# high NMI there. And where validation chose a small learning rate for VPT (see {ref}`the learning rates <spt-rates>`), its
# prompts hardly move and neither does its curve.

# %% [markdown]
# (spt.table-2)=
# ## Table 2: Self-supervised backbones (MAE and MoCo-v3)
#
# This is the paper's main result. With MAE and MoCo-v3, SPT-Deep has the best mean in every group of tasks, even above full
# fine-tuning. Its lead over VPT and Gate-VPT {cite}`yoo2023` is largest with MAE. We left out the printed methods that were
# too expensive to run.

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
# **Why the lead may be missing here.** The top of this page has three possible reasons. Here are two more.
#
# * *There may be less to gain.* The twelve blocks of a network trained on a million photographs may differ more from each
#   other than our eight blocks, trained on drawings.
# * *The epoch.* We report the last epoch; the paper does not say which one it reports.
#
# {ref}`Table 4 <spt.table-4>` isolates the initialisation: half of its prompts are frozen and stay as they were initialised.

# %% [markdown]
# (spt.table-3)=
# ## Table 3: FGVC against other methods, supervised
#
# With supervised pre-training on ImageNet-21k, SPT-Deep has the best mean over five fine-grained data sets, with fewer
# trained parameters than most methods. We use one task with many similar classes in place of the five. The parameters are
# counted on [](cost_papers.ipynb).

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
chapter.end("spt.table-3", "Needs ViT-B/16 of ImageNet-21k and the five FGVC data sets.")

# %% [markdown]
# (spt.table-s1)=
# ## Table S1: Data sets
#
# Classes and split sizes of the paper's 24 tasks, and of the tasks that take their place in the quick profile. These have
# 800 training and 200 validation images. The paper's final runs on VTAB-1k train on both, and so does our paper profile;
# the quick profile trains on the 800.

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
    how="From data_manifests/tasks.yaml.",
    caption="The embedded tasks that take the place of the paper's in the quick profile.",
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
# The paper compares prompts with patches by centred kernel alignment (CKA, {cite}`kornblith2019`). SPT's prompts are most
# similar to the patches of their own layer. VPT's, after self-supervised pre-training, are often more similar to those of
# other layers.
#
# CKA needs equally many samples on both sides, but there are fewer prompts than patches, and the paper does not say what
# its samples are. **Our reading**: the channels. Prompts are then $N_p$ features and patches $N_e$ features of the same
# $D$ samples; we compute CKA for each image and average. We count the layers whose most similar patches are those that
# enter the same block.


# %% name="spt.figure-s4" tags=["hide-input"]
compared = chapter.measured("spt.figure-s4", insights.prompts_and_patches)
caption = "CKA of prompts and patches after the last epoch, mean over tasks and seeds. A dot marks the most similar layer of "
caption += "each row; on the diagonal, that is the prompts' own layer."
alt = (
    f"CKA of the prompts of each block with the patches of each block. {spt.own_layer_told(compared)}"
    if len(compared)
    else None
)
matrices = lambda rows: spt.cka_figure(chapter, rows)
chapter.show("spt.figure-s4", matrices, compared, caption, alt)
caption = "Share of layers whose prompts are most similar to the patches of their own layer."
chapter.show("spt.figure-s4", spt.own_layer_table, compared, caption)
spt.judge_cka(chapter, compared)
chapter.end(
    "spt.figure-s4", "ViT-B/16 of several pre-trainings; the data set is not named in the text."
)

# %% [markdown]
# Before the first step, SPT's prompts *are* tokens of their layer, so this measure also starts in its favour. After
# training with a large learning rate, little of that may be left. Neighbouring blocks of a residual network carry nearly
# the same tokens, so a maximum that is off by one block means little.

# %% [markdown]
# (spt.table-s3)=
# ## Table S3: Task by task, three pre-trainings
#
# Full fine-tuning, SPT-Shallow and SPT-Deep on each VTAB-1k task; ours on the tasks that we ran. With supervised
# pre-training, the paper prints SPT-Deep above full fine-tuning on every task. These cells also allow us to recompute the
# group means of Tables 2 and S4.

# %% name="spt.table-s3" tags=["hide-input"]
frame = chapter.rows(
    "benchmark",
    "pretraining",
    variants=["Full fine-tuning", "SPT-Shallow", "SPT-Deep"],
    tasks="benchmark",
)
by_task = lambda rows: statistics.task_table(rows).reset_index(names="method")
for part, name in PARTS.items():
    rows = frame[frame.backbone == chapter.scope.backbones.get(part)]
    caption = f"{name[:1].upper()}{name[1:]} pre-training: test accuracy in %, mean over seeds."
    chapter.show("spt.table-s3", by_task, rows, caption)
over_full = (
    "spt.table-s3.supervised-over-full",
    frame,
    "SPT-Deep",
    "Full fine-tuning",
    "Without fine-grained tasks.",
)
chapter.judge(*over_full, on="vtab", parts=["supervised"])
note = "A task with several backbones counts once, with their mean."
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
# Means over FGVC and VTAB-1k's groups. Among the methods that do not change the backbone, SPT-Deep has the best mean in every
# column. Among those that do, LoRA, SSF and SNF each beat it in some group of VTAB-1k. We did not run Adapter, LoRA, SSF
# and SNF for this page.

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
# ## Photographs beside embedded tasks
#
# The same comparisons with a published ViT-Tiny on photographs; [](real_images.ipynb) has all runs.

# %% name="real" tags=["hide-input"]
two_legs.show(chapter, "spt")
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# Change the number of prompts, or compare `"vpt-deep"`, whose prompts are initialised at random. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("spt-deep", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
