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
# # SPT: which initialisation, and where it matters
#
# The ablations of *Revisiting the Power of Prompt for Visual Tuning* {cite}`spt`: ways to obtain initial prompts from the
# task's own tokens, the level that these tokens come from, and how the gain changes with more prompts, larger networks
# and more images. The method, its main tables and how the runs were made are on [](spt.ipynb).
#
# Accuracies come from small networks (`trend`; see [the glossary](../glossary.md)).

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
# (a) With frozen prompts and only the head trained, every initialisation from tokens beats VPT's uniform one, and k-means is
# best. (b) With trained prompts, according to the text, every initialisation from tokens still beats the uniform one. Only
# one block of printed cells survives. It must be (a), because its baselines are far below VPT-Deep elsewhere in the paper;
# **the cells of (b) are missing**.
#
# In our runs with learned prompts, every initialisation has a learning rate of its own {ref}`search <our-search>`. We add a
# linear probe below the table, to show whether frozen prompts help at all. With MAE they do not: every initialisation is
# below the probe. The row `uniform (VPT)` is SPT's code with a uniform initialisation and its own search, so its accuracy
# differs from VPT-Deep's in [](spt.ipynb).

# %% name="spt.table-4" tags=["hide-input"]
frame = chapter.planned("spt.table-4")
caption = f"SPT-Deep by initialisation of the prompts, on {', '.join(frame.task.unique())}: test accuracy in %, mean ± "
caption += "standard deviation over seeds."
starts = lambda rows: spt_starts.starts_table(chapter, rows)
chapter.show("spt.table-4", starts, frame, caption)
spt_starts.judge_starts(chapter, frame)
page.printed("spt.table-4", "Table 4 (a) as printed")
chapter.end("spt.table-4", "CUB-200-2011 and Caltech-101 with ViT-B/16 of ImageNet-21k and of MAE.")

# %% [markdown]
# A frozen prompt adds a fixed key and value to those of every image. It can shift attention but cannot learn where to.
# The network never saw anything like uniform prompts in pre-training; tokens are its usual input. To see whether either
# helps, compare with the linear probe, which has no prompts, rather than one initialisation with another. The comparison
# is not quite fair: we tuned the head's learning rate for the linear probe but not for the frozen prompts.

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
# Four ablations on CUB-200-2011 with MAE. (a) k-means over more images gives better accuracy and takes far longer. (b) The
# task's own images give the best prompts. (c) Prompt length hardly matters for SPT, but does for VPT. (d) SPT stays ahead
# of VPT as the backbone grows.
#
# In (b) the paper initialises the prompts on another task and then trains them. **Here they stay frozen**, which needs only
# one cheap run per cell. This isolates the initialisation but exaggerates its effect: training might close the gap. We
# compare the task's own prompts with the mean over those of the other tasks. A single other task can still be better: with
# MAE, the prompts of `position` are best, or tied, for all four tasks.


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
# (a) The paper prints the time next to each point. Our runs shared a machine, so their times would mislead;
# [](cost_papers.ipynb) has the initialisation alone, timed in alternation. (b) Tasks drawn by one program share
# backgrounds and colours, so their tokens are more alike than those of birds and cars. (c) All lengths use the learning
# rate that was searched at the usual length. More prompts take a larger share of attention. Our longest prompts outnumber
# the 36 patches, while the paper has at most 100 next to 196. (d) Only the middle size was searched; the others use its
# learning rates. The smallest network was pre-trained for three times as many epochs, so that it learns enough
# ([](small_world.ipynb)).

# %% [markdown]
# (spt.figure-4)=
# ## Figure 4: Amount of training data
#
# On ImageNet-1K, the paper trains with an increasing share of the images. With few images prompts win, with many full
# fine-tuning wins. With little data, supervised pre-training is the better choice. We use a drawn task with a tenth of its
# usual training images up to twice as many. All runs have equally many epochs, so fewer images also mean fewer steps. The
# learning rate is the one searched at the usual amount.


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
        why = "our two networks were trained on different images: the supervised one learned classes of similar drawn shapes"
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
# The paper's largest amount has over a thousand images per class, ours a few dozen. Where full fine-tuning does not overtake
# at the right end, our axis may simply be too short. Pre-training differs too: our supervised backbones learned classes of
# drawn shapes, which these tasks need by their nature.

# %% [markdown]
# (spt.figure-s1)=
# ## Figure S1: The ablations with supervised pre-training
#
# Figure 3 (b) to (d) again, with supervised backbones. The paper finds the same three results. The same reservations hold;
# in (a) the prompts stay frozen.

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
# The paper compares VPT's uniform initialisation (its "random"), tokens of one level for all blocks (those that enter the
# first block, or those that leave the last), and SPT's tokens of each prompt's own level, which enter the same block as the
# prompt. In the paper the own level is best, most clearly with MAE. For a shallow prompt the own level is the first, so SPT-Shallow appears in both rows. We did not run the
# last level for it.

# %% name="spt.table-s2" tags=["hide-input"]
frame = chapter.rows("spt-starts", variants=[*spt_starts.LEVELS], tasks="ablation")
shallow = chapter.rows("benchmark", "pretraining", variants=spt_starts.SHALLOW, tasks="ablation")
frame = pd.concat([frame, shallow[shallow.task.isin(frame.task)]])
caption = f"Level whose tokens initialise the prompts, on {', '.join(frame.task.unique())}: test accuracy in %, mean ± "
caption += "standard deviation over seeds."
levels = lambda rows: spt_starts.levels_table(chapter, rows)
chapter.show("spt.table-s2", levels, frame, caption)
about = {"on": "ablation", "parts": ["supervised", "mae"]}
*rivals, own = spt_starts.LEVELS.values()
named = frame.assign(variant=frame.variant.replace(spt_starts.LEVELS))
for claim, rival in zip(["uniform", "first", "last"], rivals):
    chapter.judge(f"spt.table-s2.over-{claim}", named, own, rival, **about)
page.printed("spt.table-s2", "Table S2 as printed")
chapter.end("spt.table-s2", "CUB-200-2011 with ViT-B/16 of ImageNet-21k and of MAE.")

# %% [markdown]
# Levels differ in size as well as in content: the tokens of a residual stream grow from block to block. But LayerNorm,
# which comes first in every block, discards the size. Tokens of a wrong level therefore enter at the right scale and
# differ only in direction.

# %% [markdown]
# (spt.figure-s3)=
# ## Figure S3: Amount of training data on a second set
#
# Figure 4 again, on iNaturalist 2018 with its long tail of classes. We use a second drawn task with equally many images per
# class: **the long tail is not imitated**.

# %% name="spt.figure-s3" tags=["hide-input"]
for task in [name for name in amounts if name in second][:1]:
    spt_starts.amount_plot(chapter, "spt.figure-s3", task, ["SPT-Deep"], second)
why = "iNaturalist 2018: 437,000 images of 8,142 classes, ViT-B/16 of two pre-trainings."
chapter.end("spt.figure-s3", why)
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# `start` can also be `"random"`, `"mean"`, `"max"` or `"uniform"`; `frozen=True` trains only the head.
# {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("spt-deep", prompt_tokens=10, start="k-means")

# %% tags=["remove-output", "remove-input"]
page.close()
