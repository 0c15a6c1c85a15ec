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
# # SPT: which start, and where it matters
#
# The ablations of *Revisiting the Power of Prompt for Visual Tuning* {cite}`spt`: ways to draw the first prompts from
# the task's own tokens, the level they come from, and what becomes of their lead with more prompts, larger networks
# and more images. The method, its main tables and how the runs were made are on [](spt.ipynb).
#
# Accuracies come from small networks (`trend`); [the glossary](../glossary.md) says what that allows.

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

from visbook.chapters import spt, spt_starts
from visbook.chapters.chapter import Chapter
from visbook.studies.effects import effect
from visprompt.models.embedded import networks

STUDIES = [
    "benchmark",
    "pretraining",
    "spt-starts",
    "spt-share",
    "spt-other-task",
    "spt-length",
    "spt-sizes",
    "sizes",
]
chapter = Chapter.opened("spt_starts", globals(), [*STUDIES, "spt-amount"])
page = chapter.page

# %% [markdown]
# (spt.table-4)=
# ## Table 4: Ways to sample the prompts, frozen and learned
#
# (a) With the prompts frozen and only the head trained, every start from tokens beats VPT's uniform one, and k-means
# does best. (b) With the prompts trained, the text says that every start from tokens still beats
# the uniform one. Only one block of printed cells is
# left. It must be (a), for its baselines are far below VPT-Deep elsewhere in the paper; **the cells of (b) are lost**.
#
# Learned, all starts from tokens share the rate that was searched for the random sample, which if anything favours
# the random sample. The linear probe below the table is ours: it says whether frozen prompts help at all.

# %% name="spt.table-4" tags=["hide-input"]
frame = chapter.planned("spt.table-4")
caption = f"SPT-Deep by the prompts' start, task {', '.join(frame.task.unique())}: test accuracy in %, mean ± standard "
caption += "deviation over seeds."
starts = lambda rows: spt_starts.starts_table(chapter, rows)
chapter.show("spt.table-4", starts, frame, caption)
spt_starts.judge_starts(chapter, frame)
page.printed("spt.table-4", "Table 4 (a) as printed")
chapter.end("spt.table-4", "CUB-200-2011 and Caltech-101 with ViT-B/16 of ImageNet-21k and of MAE.")

# %% [markdown]
# A frozen prompt is a fixed key and value beside every image's own. It can shift attention, but it cannot learn where
# to. Uniform prompts are directions that the frozen keys and values were never fitted to; tokens are what they know.
# Whether either helps shows in the distance to the linear probe, which has no prompts, more than in the distance of one
# start to another. But that distance holds one of rates too: the probe's head has a searched rate, those beside frozen
# prompts the recipe's.

# %% name="probe" tags=["hide-input"]
probes = chapter.rows("benchmark", "pretraining", variants=[spt_starts.PROBE])
beside = probes.task.isin(frame.task) & probes.backbone.isin(frame.backbone)
caption = (
    "A linear probe on the same tasks: test accuracy in %, mean ± standard deviation over seeds."
)
table = lambda rows: spt_starts.probe_table(chapter, pd.concat([frame, rows]))
chapter.present(table, probes[beside], caption, cell="probe")

# %% [markdown]
# (spt.figure-3)=
# ## Figure 3: Share of the data, task of the prompts, length, size (MAE)
#
# Four ablations on CUB-200-2011 under MAE. (a) k-means over more images does better and takes far longer. (b) The
# task's own images make the best prompts. (c) Length hardly matters to SPT and matters to VPT. (d) SPT stays ahead of
# VPT as the backbone grows.
#
# In (b) the paper trains the prompts on the task after starting them on another. **Here they stay frozen**, which
# takes one cheap fit a cell: this shows the start alone, and a difference that training would close counts in full.


# %% name="spt.figure-3" tags=["hide-input"]
spt_starts.share_plot(chapter, "spt.figure-3")
spt_starts.matrix_plot(chapter, "spt.figure-3", "mae", "b")
spt_starts.length_plot(chapter, "spt.figure-3", "mae", "c")
sized = chapter.rows("spt-sizes", "pretraining", variants=spt.PAIR, tasks="ablation")
spt_starts.size_plot(
    chapter,
    "spt.figure-3",
    sized,
    ["smaller-mae", "mae", "larger-mae", "huge-mae"],
    "d",
    "ablation",
)
chapter.end(
    "spt.figure-3", "CUB-200-2011, all of FGVC for (b), with ViT-B, ViT-L and ViT-H of MAE."
)

# %% [markdown]
# (a) The paper writes beside each point how long it took. These runs shared a machine with others, so their seconds
# would mislead; [](cost_papers.ipynb) has the starts alone, timed in turns.
# (b) Tasks drawn by one program share grounds and colours: their tokens are nearer to each other than those of birds
# and cars. (c) One rate, searched at the usual length, serves all lengths. More prompts take more of a fixed
# attention, so that a length far above the number of patches is another regime than the paper's 100 beside 196.
# (d) Only the middle size had a search; the others use its rates. The smallest was pretrained for three times as
# many epochs as the others, to know enough of its pictures ([](small_world.ipynb)).

# %% [markdown]
# (spt.figure-4)=
# ## Figure 4: Amount of training data
#
# On ImageNet-1K, the paper trains with a growing share of the images. With few, prompts win; with many, full
# fine-tuning does. Supervised pre-training is the better choice when there is little data. Here a drawn task
# gives a tenth of its usual training images up to twice as many; the axis shows which of these were run. A run has as
# many epochs whatever the amount, so few images also mean few steps; the rate is the one searched at the usual amount.


# %% name="spt.figure-4" tags=["hide-input"]
amounts = list(dict.fromkeys(chapter.frames["spt-amount"].task))
first, second = chapter.scope.tasks["amount"][:1], chapter.scope.tasks["amount"][1:]
for task in [name for name in amounts if name not in second][:1]:
    spt_starts.amount_plot(chapter, "spt.figure-4", task, ["VPT-Deep", "SPT-Deep"], first)
    rows = chapter.rows("spt-amount", variants=["SPT-Deep"])
    rows = rows[(rows.task == task) & (rows.train_size == rows.train_size.min())]
    claim, parts = "spt.figure-4.supervised-better-with-few", ["supervised", "mae"]
    rows = chapter.answers(claim, rows, ["SPT-Deep"], first, parts)
    if len(rows) and set(rows.backbone) <= set(networks()):
        why = "this project's two networks differ by what they were shown: the supervised one learned classes of such drawn shapes"
        page.not_judged(claim, why)
    elif len(rows):
        two = [
            rows[rows.backbone == chapter.scope.backbones[part]].assign(backbone="")
            for part in parts
        ]
        note = f"SPT-Deep with {rows.train_size.iloc[0]} images."
        page.judge(
            claim, *effect(*two).interval, evidence="trend", records=[*rows.record], note=note
        )
why = "ImageNet-1K, 1 % to all of its 1.28 million images, ViT-B/16 of two pre-trainings."
chapter.end("spt.figure-4", why)

# %% [markdown]
# The paper's largest amount has over a thousand images a class, the quick profile's a few dozen: where full fine-tuning
# does not take over at the right end, the axis may simply be too short. The pre-training differs as well: the quick
# profile's supervised backbones were taught classes of drawn shapes, which these tasks need more or less by their
# nature.

# %% [markdown]
# (spt.figure-s1)=
# ## Figure S1: The ablations with supervised pre-training
#
# Figure 3 (b) to (d) again, with backbones that were taught classes. The paper sees the same three things. The same
# reservations hold: in (a) the prompts stay frozen.

# %% name="spt.figure-s1" tags=["hide-input"]
spt_starts.matrix_plot(chapter, "spt.figure-s1", "supervised", "a")
spt_starts.length_plot(chapter, "spt.figure-s1", "supervised", "b")
both = [name for name in chapter.scope.tasks["scaling"] if name in chapter.of_study("benchmark")]
sized = chapter.rows("sizes", "benchmark", variants=spt.PAIR, tasks="scaling")
spt_starts.size_plot(
    chapter, "spt.figure-s1", sized, ["smaller", "supervised", "larger", "huge"], "c", both
)
chapter.end("spt.figure-s1", "CUB-200-2011, all of FGVC for (a), with supervised ViT-B and larger.")

# %% [markdown]
# (spt.table-s2)=
# ## Table S2: From which level the prompts start
#
# VPT's uniform start ("random" in the paper), tokens of one level for all blocks (those that enter the first block,
# or those that leave the last), and SPT's tokens of the prompt's own level. The paper finds the prompt's own level
# best, most so under MAE. A shallow prompt's own level is the first, so SPT-Shallow stands in both rows; the last
# level was not run for it, and a column without runs is left out.

# %% name="spt.table-s2" tags=["hide-input"]
frame = chapter.rows("spt-starts", variants=[*spt_starts.LEVELS], tasks="ablation")
shallow = chapter.rows("benchmark", "pretraining", variants=spt_starts.SHALLOW, tasks="ablation")
frame = pd.concat([frame, shallow[shallow.task.isin(frame.task)]])
caption = f"Task {', '.join(frame.task.unique())} by the level that prompts start from: test accuracy in %, mean ± "
caption += "standard deviation over seeds."
levels = lambda rows: spt_starts.levels_table(chapter, rows)
chapter.show("spt.table-s2", levels, frame, caption)
about = {"on": "ablation", "parts": ["supervised", "mae"]}
for claim, rival in zip(["uniform", "first", "last"], spt_starts.LEVELS):
    chapter.judge(f"spt.table-s2.over-{claim}", frame, "random", rival, **about)
page.printed("spt.table-s2", "Table S2 as printed")
chapter.end("spt.table-s2", "CUB-200-2011 with ViT-B/16 of ImageNet-21k and of MAE.")

# %% [markdown]
# Levels differ in norm as well as in content: the tokens of a residual stream grow from block to block. LayerNorm,
# which comes first in every block, takes the norm out again, so a wrong level enters at the right scale; what is
# left to differ is the direction.

# %% [markdown]
# (spt.figure-s3)=
# ## Figure S3: Amount of training data on a second set
#
# Figure 4 again, on iNaturalist 2018 with its long tail of classes. Here a second drawn task stands for it where one
# was run, with as many images of every class: **the long tail is not imitated**.

# %% name="spt.figure-s3" tags=["hide-input"]
for task in [name for name in amounts if name in second][:1]:
    spt_starts.amount_plot(chapter, "spt.figure-s3", task, ["SPT-Deep"], second)
why = "iNaturalist 2018: 437,000 images of 8,142 classes, ViT-B/16 of two pre-trainings."
chapter.end("spt.figure-s3", why)
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# `start` may also be `"random"`, `"mean"`, `"max"` or `"uniform"`; `frozen=True` trains the head alone.
# {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("spt-deep", prompt_tokens=10, start="k-means")

# %% tags=["remove-output", "remove-input"]
page.close()
