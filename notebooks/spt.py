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
# *Revisiting the Power of Prompt for Visual Tuning* {cite}`spt` keeps VPT {cite}`jia2022visual` as it is and changes
# one thing: where the prompts start. VPT draws them at random. **Self-prompt tuning** (SPT) runs training images of
# the task through the frozen network and lets the prompts of block $i$ start as patch tokens that enter block $i$:
#
# $$ P_{i-1} \leftarrow C_{i-1} \subset \{ e^{j}_{i-1} \}, \qquad i = 1, \dots, L. $$
#
# The prototypes $C$ are cluster centres, pooled tokens or, what the paper uses after its ablation, tokens drawn at
# random. Its claim is that this matters most after self-supervised pre-training, where VPT is weak.
#
# **What this page can settle.** In the quick profile accuracy is measured on small backbones and small tasks that
# this project made (see [](../data.md) and [](../backbones.md)): a `trend`, a direction, never a reproduction. What
# follows from the printed cells alone is `derived`. The paper's own scale says `not run`, with the command that runs
# it. How long the starts take is on the page about cost ({ref}`Table 1 <spt.table-1>`); {ref}`Figure 1 <spt.figure-1>`
# and {ref}`Figure S2 <spt.figure-s2>`, the drawings, are on the page about the methods.
#
# As in the paper, backbones of masked autoencoding (MAE) give the head the mean of the patches, since their class
# token was never trained; the others give it the class token.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # plays the supervised ViT in place of the profile's; no other backbone is then used
weights = "pretrained"  # or a weights file, or [NAME=FILE, ...] for several backbones
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # search learning rates here
data_dir = None  # folder of the tasks that are not embedded
epochs = None

# %% tags=["hide-input", "remove-output"]
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import LogLocator

from visprompt import papers
from visprompt.data.tasks import embedded_tasks
from visprompt.pages import plots
from visprompt.pages.chapters import Chapter, ChapterParameters
from visprompt.pages.page import Page
from visprompt.pages.parameters import read_parameters
from visprompt.studies import grids, insights, statistics, sweeps
from visprompt.studies.statistics import difference, interval
from visprompt.training.recipe import load_recipe

p = read_parameters(ChapterParameters, globals())
page = Page("spt", p)
plots.style()
chapter = Chapter(
    page,
    p,
    own=[
        "benchmark",
        "pretraining",
        "spt-starts",
        "spt-share",
        "spt-other-task",
        "spt-length",
        "spt-sizes",
        "sizes",
        "spt-amount",
    ],
    quick_methods=["vpt-deep", "spt-deep", "full-finetune"],
)

COLOURS = {
    "Full fine-tuning": plots.PALETTE["full-finetune"],
    **dict(zip(["VPT-Deep", "SPT-Deep"], sns.color_palette("colorblind"))),
}
PARTS = {"supervised": "supervised", "mae": "MAE", "mocov3": "MoCo-v3"}  # part of studies.yaml -> as printed
PAIR = ["VPT-Deep", "SPT-Deep"]


def spread(rows):
    """Mean over tasks and seeds with the standard deviation over seeds, as text."""
    by_seed = rows.groupby("seed").test.mean()
    return plots.spread(by_seed) if len(by_seed) else "–"


def judge_least(claim, leads, on, parts=(), note=""):
    """Hold the least certain of several leads against a claim; nothing where one has no answer.

    Args:
        leads: name of a lead -> (rows, better, worse).
        on, parts: the data sets and pre-trainings that the claim speaks of, as for `chapter.answers`.
    """
    rows = {}
    for name, (frame, *pair) in leads.items():
        rows[name] = chapter.answers(claim, frame, pair, on, parts)
        if not len(rows[name]):
            return
    gains = {name: statistics.gain(rows[name], *pair) for name, (_, *pair) in leads.items()}
    if not gains:
        return
    name, least = min(gains.items(), key=lambda item: (item[1].low, item[1].mean))
    told = f"Least certain of {len(gains)} leads: {name}" if len(gains) > 1 else name
    page.judge(
        claim,
        least.mean,
        least.low,
        least.high,
        evidence="trend",
        records=[record for one in gains.values() for record in one.records],
        note=f"{told}; {least.seeds} seeds. {note}".strip(),
    )


def show_table(artifact, table, frame, caption):
    """A table made of the rows of `frame`."""
    page.show(artifact, table, evidence="trend", how=chapter.how(frame), records=[*frame.record], caption=caption)


def show_figure(artifact, fig, frame, caption, alt):
    page.show(artifact, fig, evidence="trend", how=chapter.how(frame), records=[*frame.record], caption=caption, alt=alt)


def line(ax, frame, by, label, **style):
    """Mean over seeds along a column, with the range of the seeds."""
    by_seed = frame.groupby([by, "seed"]).test.mean().unstack()
    mean = by_seed.mean(axis=1)
    error = [mean - by_seed.min(axis=1), by_seed.max(axis=1) - mean]
    ax.errorbar(mean.index, mean, yerr=error, label=label, marker="o", ms=4, capsize=3, **style)


def end(artifact, why, study=None):
    """Say what of the paper's own scale was not run; in the paper profile only where nothing was shown."""
    chapter.paper_scale(artifact, why, *([study] if study else []))
    if not page.artifacts[artifact]["shows"] and p.profile != "quick":
        page.not_run(artifact, why=why, command=chapter.command(**({"studies": [study]} if study else {})))


VIT_B = "Needs ViT-B/16 of the paper's pre-trainings and its data sets."

# %% [markdown]
# ## How the runs were made
#
# Each run fits one method to one task with one seed and leaves a record. Every method has the same budget for its
# learning rate: three rates a cell, 0.2, 1 and 5 times the recipe's, judged on the validation images with seed 0; the
# best is kept for all seeds. A linear probe's rate is its head's; frozen prompts have none. Ablations take the rate of the
# main runs: other starts that of SPT-Deep, the uniform start that of VPT-Deep, other lengths and amounts of data that
# of the same method at the usual ones, and other sizes of the backbone that of the middle size.
#
# **What to keep in mind.** 200 validation images have a standard error of two to three points, so a search decides
# little between near rates; a single seed decides nothing. The quick profile's backbones are small and saw drawn
# pictures. The number of seeds stands below each table and figure.

# %% name="recipe" tags=["hide-input"]
recipe = load_recipe(p.profile, "spt-deep", True)
stated = {
    "backbones": (", ".join(chapter.cast.backbones.values()), "ViT-B/16 (also L and H): supervised, MAE, MoCo-v3"),
    "optimiser": ("AdamW" if recipe.optimizer == "adam" else recipe.optimizer, "AdamW"),
    "epochs": (p.epochs or recipe.epochs, "100"),
    "batch": (recipe.batch_size, "32"),
    "warm-up": (f"linear, {recipe.warmup:.0%} of the steps", "linear, 10 epochs"),
    "schedule": ("cosine to 0", "cosine to 1e-8"),
    "weight decay": (f"{recipe.weight_decay:g}", "not stated"),
    "augmentation": (recipe.augmentation, "FGVC: random resized crop and flip; VTAB-1k: none"),
    "prompts, deep and shallow": (" and ".join(map(str, chapter.cast.prompts.values())), "20 and 100"),
    "learning rates": (
        f"{' / '.join(f'{f:g}' for f in sweeps.FACTORS)} times the recipe's, on val",
        "on val; not stated which",
    ),
    "features before the head": ("standardised" if recipe.standardise else "as they are", "not stated"),
    "epoch that is reported": (recipe.selection, "not stated"),
    "seeds": ("as each caption says", "three runs"),
}
table = pd.DataFrame([{"": name, "here": here, "paper": paper} for name, (here, paper) in stated.items()])
page.present(
    table,
    evidence="derived",
    how="This profile's recipe beside Section 4.1 of the paper.",
    caption="How the runs are made, here and there.",
    cell="recipe",
)

# %% [markdown]
# The rates that the search took say how far a start can matter: Adam moves an entry by up to about the rate in each
# step. Where a rate is as large as the tokens themselves, a few steps can undo any start.

# %% name="rates" tags=["hide-input"]
frame = chapter.rows("benchmark", "pretraining", variants=PAIR)
if len(frame):
    rates = frame.groupby(["backbone", "variant", "task"]).rate.first().unstack()
    rates = rates.map(lambda rate: "–" if np.isnan(rate) else f"{rate:g}").rename_axis(None, axis=1).reset_index()
    page.present(
        rates,
        evidence="trend",
        how="The rate of each record; the recipe's where its search is not whole.",
        records=[*frame.record],
        caption="Learning rates of the prompts, by task.",
        cell="rates",
    )

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
# can hardly do anything but rise as they grow; tokens of the network are longer, so prompts that are tokens start
# above. The measure answers to the length of prompts at least as much as to what they hold.


# %% name="spt.figure-2" tags=["hide-input"]
WATCHED = [name for name in chapter.cast.tasks["pretraining"] if name in chapter.cast.tasks["four"]]


def prompt_records(study, part):
    """Records of prompts and patches of a study's VPT-Deep and SPT-Deep: variant, task, seed and record."""
    cast = chapter.cast
    tasks = [*WATCHED, *cast.foreign]
    tasks = [name for name in tasks if not cast.only_tasks or name in cast.only_tasks]
    slugs = [slug for slug in ("vpt-deep", "spt-deep") if not cast.only_methods or slug in cast.only_methods]
    if not tasks or not slugs or part not in cast.backbones:
        return pd.DataFrame(columns=["variant", "task", "seed", "backbone", "record"])
    narrow = replace(cast, only_tasks=tuple(tasks), only_methods=tuple(slugs))
    here, found = p.studies is None or study in p.studies, []
    for variant, run in grids.with_rates(study, narrow, chapter.lab, False):
        if run.backbone != cast.backbones[part]:
            continue
        for seed in sorted({*p.seeds, *p.kept_seeds}):
            ready = replace(run, seed=seed)
            record = chapter.look(insights.prompts_and_patches, ready, compute=here and seed in p.seeds)
            found += [(variant, run.task, seed, run.backbone, record)] if record is not None else []
    return pd.DataFrame(found, columns=["variant", "task", "seed", "backbone", "record"])


def nmi(frame):
    """One row an epoch of each record: variant, task, seed, epoch and the NMI, meaned over blocks."""
    return pd.DataFrame(
        [
            {"variant": row.variant, "task": row.task, "seed": row.seed, "epoch": epoch, "nmi": float(np.mean(blocks))}
            for row in frame.itertuples()
            for epoch, blocks in enumerate(row.record.values["nmi"])
        ]
    )


def show_nmi(frame):
    """The curves, and the two claims, a value a seed."""
    curves = nmi(frame)
    tasks = list(dict.fromkeys(curves.task))
    fig, axes = plt.subplots(1, len(tasks), figsize=(7, 3.2), sharey=True, squeeze=False)
    for ax, task in zip(axes[0], tasks, strict=True):
        for variant in PAIR:
            part = curves[(curves.task == task) & (curves.variant == variant)]
            part = part.groupby("epoch").nmi.agg(["mean", "min", "max"])
            ax.plot(part.index, part["mean"], "o-", ms=4, color=COLOURS[variant], label=variant)
            ax.fill_between(part.index, part["min"], part["max"], color=COLOURS[variant], alpha=0.2)
        ax.set(title=task, xlabel="finished epochs", xticks=range(0, curves.epoch.max() + 1, 2))
        if (curves.nmi > 0).all():
            ax.set_yscale("log", subs=[])
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter("{x:g}")
    axes[0][0].set_ylabel("NMI, mean over blocks")
    fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    show_figure(
        "spt.figure-2",
        fig,
        frame,
        "NMI of prompts and patches by epoch, MAE: mean and range of the seeds.",
        "Curves of NMI over epochs for VPT-Deep and SPT-Deep, one panel a task.",
    )
    rows = chapter.answers("spt.figure-2.vpt-nmi-rises", frame, ["VPT-Deep"], WATCHED, ["mae"])
    if len(rows):
        ends = nmi(rows).groupby(["seed", "epoch"]).nmi.mean().unstack("epoch")
        rise = (ends.iloc[:, -1] - ends[0]).dropna()
        page.judge(
            "spt.figure-2.vpt-nmi-rises", *interval(rise), evidence="trend", records=[*rows.record], note=f"{len(rise)} seeds."
        )
    rows = chapter.answers("spt.figure-2.spt-starts-above-vpt", frame, PAIR, WATCHED, ["mae"])
    if len(rows):
        starts = nmi(rows).query("epoch == 0").groupby(["seed", "variant"]).nmi.mean().unstack()
        page.judge(
            "spt.figure-2.spt-starts-above-vpt",
            *interval(starts["SPT-Deep"] - starts["VPT-Deep"]),
            evidence="trend",
            records=[*rows.record],
            note=f"{len(starts)} seeds.",
        )


watched = prompt_records("pretraining", "mae")
if len(watched):
    show_nmi(watched)
end("spt.figure-2", "CUB-200-2011, Caltech-101, Patch Camelyon and Clevr/count with ViT-B/16 of MAE.", "pretraining")

# %% [markdown]
# Both claims can hold and still say nothing about accuracy, which the next table measures: a high NMI at the start is
# what the method puts there. And where validation picks a small rate for VPT (see the table of rates), its prompts
# hardly move and neither does its curve.

# %% [markdown]
# (spt.table-2)=
# ## Table 2: Self-supervised backbones
#
# The paper's main result: under MAE and MoCo-v3, SPT-Deep is far above VPT and GateVPT {cite}`yoo2023`, and above
# full fine-tuning on most means. A printed method that is missing below was left out for its cost.

# %% name="spt.table-2" tags=["hide-input"]
COLUMNS = ["Linear probe", "Full fine-tuning", "VPT-Shallow", "VPT-Deep", "Gate-VPT", "SPT-Shallow", "SPT-Deep"]
rivals = {"vpt": "VPT-Deep", "gate": "Gate-VPT", "full": "Full fine-tuning"}
for part in ("mae", "mocov3"):
    frame = chapter.rows("pretraining", variants=COLUMNS, part=part)
    if len(frame):
        show_table(
            "spt.table-2",
            statistics.group_table(frame),
            frame,
            f"{PARTS[part]}: test accuracy in %, mean ± standard deviation over seeds.",
        )
        for slug, rival in rivals.items():
            chapter.judge(f"spt.table-2.{part}-over-{slug}", frame, "SPT-Deep", rival, on="pretraining", parts=[part])
cells = papers.published("spt.table-2").set_index(["pretraining", "method"]).loc["MAE"]
of_vtab = papers.published("spt.table-s3").set_index(["pretraining", "method"]).loc["MAE"]
VTAB = [name for name in of_vtab.columns if name not in ("bold", "doubt")]
FGVC = ["CUB-200-2011", "NABirds", "Oxford Flowers", "Stanford Dogs", "Stanford Cars"]
wins = sum(
    int((t.loc["SPT-Deep", names].astype(float) > t.loc["Full", names].astype(float)).sum())
    for t, names in ((cells, FGVC), (of_vtab, VTAB))
)
page.judge("spt.table-2.wins-over-full", wins, evidence="derived", note="Counted in the printed cells.")
page.printed("spt.table-2", "Table 2 as printed")
end("spt.table-2", f"{VIT_B} timm has no MoCo-v3 weights of ViT-B; give a file.", "pretraining")

# %% [markdown]
# **Why the lead may be missing here.** At this scale SPT's lead over VPT need not appear, and these things could be
# behind it; none of them is tested on its own.
#
# * *VPT is tuned as well as SPT.* LayerNorm takes the length of a prompt out, so a step of a given size turns a short
#   prompt far and a token little: the length of a start acts as a learning rate. Without a search for each method, a
#   comparison of starts compares rates as well. Here both have the same search for every task and pre-training, and
#   the head sees standardised features at a rate of its own.
# * *The start is forgotten.* If the rate that validation picks is large beside the tokens (see the table of rates), the
#   prompts soon stand elsewhere. Table 4 shows the start by itself: there the prompts stay as they began.
# * *The tokens hold little.* An image of the quick profile has 36 patches, and a drawn picture is mostly ground. Tokens
#   drawn at random are then near copies of each other, and as keys and values they give attention nothing new.
# * *There is less to gain.* The prompts' own level of detail matters across twelve blocks of a network that saw a
#   million photographs; the quick profile's eight blocks trained on drawings differ less from each other.
# * *The count differs.* The last epoch is reported here, and the paper does not say which epoch is. A best epoch on
#   test images favours whatever fluctuates.

# %% [markdown]
# (spt.table-3)=
# ## Table 3: FGVC against other methods, supervised
#
# With supervised pre-training on ImageNet-21k, SPT-Deep has the best mean over five fine-grained sets, with fewer
# trained parameters than most. Here one task, of many close classes, stands for the five. Prompt parameters are
# counted on {ref}`the page about cost <spt.table-1>`.

# %% name="spt.table-3" tags=["hide-input"]
METHODS = ["Full fine-tuning", "Linear probe", "BIAS", "VPT-Shallow", "VPT-Deep", "E2VPT", "SPT-Shallow", "SPT-Deep"]
frame = chapter.rows("benchmark", variants=METHODS, tasks="fine", part="supervised")
if len(frame):
    table = statistics.group_table(frame).drop(columns="mean")
    trained = frame.groupby("variant").parameters.first()
    table.insert(1, "parameters without head", [f"{trained[name]:,}" for name in table.method])
    show_table(
        "spt.table-3",
        table,
        frame,
        f"{', '.join(frame.task.unique())}, supervised: test accuracy in %, mean ± standard deviation over seeds.",
    )
    for slug, rival in {"vpt-deep": "VPT-Deep", "e2vpt": "E2VPT", "full": "Full fine-tuning"}.items():
        chapter.judge(f"spt.table-3.deep-over-{slug}", frame, "SPT-Deep", rival, on="fine", parts=["supervised"])
page.printed("spt.table-3", "Table 3 as printed")
end("spt.table-3", "Needs ViT-B/16 of ImageNet-21k and the five FGVC sets.", "benchmark")

# %% [markdown]
# (spt.table-4)=
# ## Table 4: Ways to sample the prompts, frozen and learned
#
# (a) With the prompts frozen and only the head trained, every start from tokens beats VPT's uniform one, and k-means
# does best. (b) With the prompts trained, the text says the same of all starts. Only one block of printed cells is
# left. It must be (a), for its baselines are far below VPT-Deep elsewhere in the paper; **the cells of (b) are lost**.
#
# Learned, all starts but the uniform one share the rate that was searched for the random one, which if anything
# favours that. Frozen, the linear probe is beside them: it says whether frozen prompts help at all.

# %% name="spt.table-4" tags=["hide-input"]
STARTS = {
    "uniform (VPT)": "uniform (VPT)",
    "k-means": "k-means",
    "mean": "mean pooling",
    "max": "max pooling",
    "random": "random sample",
}
SAMPLED = [name for name in STARTS if name != "uniform (VPT)"]


def starts_table(frame, probes):
    """A row a start, a column a pre-training and kind; the probe has no prompts."""
    rows = []
    for name in [None, *STARTS]:
        row = {"start": STARTS.get(name, "no prompts (linear probe)")}
        for part in ("supervised", "mae"):
            mine = frame[frame.backbone == chapter.cast.backbones.get(part)]
            probe = probes[probes.backbone == chapter.cast.backbones.get(part)]
            row[f"{PARTS[part]}, frozen"] = spread(probe if name is None else mine[mine.variant == f"{name}, frozen"])
            row[f"{PARTS[part]}, learned"] = "" if name is None else spread(mine[mine.variant == name])
        rows.append(row)
    return pd.DataFrame(rows)


frame = chapter.rows("spt-starts", tasks="ablation")
frame = frame[frame.variant.isin([*STARTS, *(f"{name}, frozen" for name in STARTS)])]
probes = chapter.rows("benchmark", "pretraining", variants=["Linear probe"], tasks="ablation")
if len(frame):
    show_table(
        "spt.table-4",
        starts_table(frame, probes),
        frame,
        "SPT-Deep by the prompts' start, task "
        f"{', '.join(frame.task.unique())}: test accuracy in %, mean ± standard deviation over seeds.",
    )
    for claim, tail in (("frozen", ", frozen"), ("learned", "")):
        judge_least(
            f"spt.table-4.{claim}-over-uniform",
            {STARTS[name]: (frame, name + tail, "uniform (VPT)" + tail) for name in SAMPLED},
            "ablation",
            ["supervised", "mae"],
        )
    judge_least(
        "spt.table-4.frozen-k-means-best",
        {f"over {STARTS[name]}": (frame, "k-means, frozen", f"{name}, frozen") for name in SAMPLED if name != "k-means"},
        "ablation",
        ["supervised", "mae"],
    )
page.printed("spt.table-4", "Table 4 (a) as printed")
end("spt.table-4", "CUB-200-2011 and Caltech-101 with ViT-B/16 of ImageNet-21k and of MAE.", "spt-starts")

# %% [markdown]
# A frozen prompt is a fixed key and value beside every image's own. It can shift attention, but it cannot learn where
# to. Uniform prompts are directions that the frozen keys and values were never fitted to; tokens are what they know.
# Whether either helps shows in the distance to the probe's row, more than in the distance of one start to another.

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
def share_plot(artifact):
    """(a) Accuracy by the share of the images that k-means saw, with the seconds of the fit."""
    frame = chapter.rows("spt-share", part="mae")
    if not len(frame):
        return
    frame = frame.assign(share=frame.variant.str.removesuffix(" %").astype(float))
    plain = chapter.rows("pretraining", variants=["SPT-Deep"], tasks="ablation", part="mae")
    fig, ax = plt.subplots(figsize=(7, 3))
    line(ax, frame, "share", "k-means", color=COLOURS["SPT-Deep"])
    for share, rows in frame.groupby("share"):
        seconds = f"{rows.fit_seconds.median():.0f} s"
        ax.annotate(seconds, (share, rows.test.mean()), xytext=(5, 7), textcoords="offset points")
    if len(plain):
        ax.axhline(plain.test.mean(), ls="--", color="#7f7f7f", label="random sample")
    ax.set(xlabel="training images used by k-means, %", ylabel="test accuracy, %")
    ax.margins(0.1, 0.25)
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    also = f" A fit from a random sample took {plain.fit_seconds.median():.0f} s." if len(plain) else ""
    caption = f"(a) Mean and range of the seeds. Seconds: median of the whole fit, start and epochs.{also}"
    show_figure(artifact, fig, frame, caption, "Accuracy by share of the images, each point with its seconds.")
    chapter.judge("spt.figure-3.more-images-better", frame, "100 %", "10 %", on="ablation", parts=["mae"])


def matrix_plot(artifact, part, letter):
    """Accuracy with frozen prompts started on each task, over the best of its column."""
    frame = chapter.rows("spt-other-task", part=part)
    if not len(frame):
        return
    frame = frame.assign(other=[run.prepared_on for run in frame.run])
    if frame.other.nunique() < 2:
        return
    tasks = [name for name in chapter.cast.playing("four") if name in set(frame.task) | set(frame.other)]
    means = frame.groupby(["other", "task"]).test.mean().unstack().reindex(index=tasks, columns=tasks)
    fig, ax = plt.subplots(figsize=(7, 3.2))
    shown = {"annot": True, "fmt": ".1f", "cmap": "viridis", "cbar_kws": {"label": "% of the best"}}
    sns.heatmap(100 * means / means.max(), ax=ax, **shown)
    ax.set(xlabel="task that is learned", ylabel="task of the prompts")
    ax.tick_params(axis="y", rotation=0)
    show_figure(
        artifact,
        fig,
        frame,
        f"({letter}) Prompts frozen as they started; each column is divided by its best.",
        "A matrix of relative accuracies, task of the prompts by task that is learned.",
    )
    four = chapter.cast.tasks["four"]
    rows = chapter.answers(f"{artifact}.own-task-best", frame.assign(variant=frame.other), four, four, [part])
    if len(rows):
        own, other = (
            rows[same].groupby(["seed", "task"]).test.mean() for same in (rows.other == rows.task, rows.other != rows.task)
        )
        gaps = (own - other).groupby("seed").mean()
        page.judge(
            f"{artifact}.own-task-best",
            *interval(gaps),
            evidence="trend",
            records=[*rows.record],
            note=f"{len(four)} tasks, {len(gaps)} seeds; prompts frozen.",
        )


def length_plot(artifact, part, letter):
    """Accuracy of VPT-Deep and SPT-Deep by the number of prompts a block."""
    frame = chapter.rows("spt-length", part=part)
    if not len(frame):
        return
    split = frame.variant.str.split(", ", expand=True)
    frame = frame.assign(family=split[0], length=split[1].astype(int))
    if frame.length.nunique() < 2:
        return
    fig, ax = plt.subplots(figsize=(7, 3))
    for family, rows in frame.groupby("family", sort=False):
        line(ax, rows, "length", family, color=COLOURS[family])
    ax.set_xscale("log")
    ax.set_xticks(sorted(frame.length.unique()), [f"{n}" for n in sorted(frame.length.unique())], minor=False)
    ax.minorticks_off()
    ax.set(xlabel="prompts a block", ylabel="test accuracy, %")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    show_figure(
        artifact,
        fig,
        frame,
        f"({letter}) Prompt length: mean and range of the seeds.",
        "Accuracy over the number of prompts for VPT-Deep and SPT-Deep.",
    )
    if frame.length.nunique() > 2 and set(PAIR) <= set(frame.family):
        every = [f"{family}, {length}" for family in PAIR for length in frame.length.unique()]
        rows = chapter.answers(f"{artifact}.length-matters-less", frame, every, "ablation", [part])
        if len(rows):
            by_length = rows.groupby(["seed", "family", "length"]).test.mean().unstack()
            ranges = (by_length.max(axis=1) - by_length.min(axis=1)).unstack("family")
            page.judge(
                f"{artifact}.length-matters-less",
                *interval(ranges["SPT-Deep"] - ranges["VPT-Deep"]),
                evidence="trend",
                records=[*rows.record],
                note=f"Range over {frame.length.nunique()} lengths in each of {len(ranges)} seeds.",
            )


def size_plot(artifact, frame, parts, letter, on):
    """Accuracy of VPT-Deep and SPT-Deep by the size of the backbone, and the claim on a list of tasks."""
    names = [chapter.cast.backbones[part] for part in parts if part in chapter.cast.backbones]
    frame = frame[frame.variant.isin(PAIR) & frame.backbone.isin(names)]
    if frame.backbone.nunique() < 2:
        return
    frame = frame.assign(place=frame.backbone.map(names.index) + 0.05 * (frame.variant == "SPT-Deep"))
    fig, ax = plt.subplots(figsize=(7, 3))
    for variant, rows in frame.groupby("variant", sort=False):
        line(ax, rows, "place", variant, color=COLOURS[variant])
    ax.set_xticks(range(len(names)), [name.split("_")[1] if "_" in name else name for name in names])
    ax.set(xlabel="size of the ViT", ylabel="test accuracy, %")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    tasks = ", ".join(dict.fromkeys(frame.task))
    show_figure(
        artifact,
        fig,
        frame,
        f"({letter}) Size of the backbone, {tasks}: mean and range of the seeds.",
        "Accuracy by backbone size for VPT-Deep and SPT-Deep.",
    )
    if set(names) == set(frame.backbone):
        leads = {name: (frame[frame.backbone == name], "SPT-Deep", "VPT-Deep") for name in names}
        judge_least(f"{artifact}.over-vpt-at-every-size", leads, on)


share_plot("spt.figure-3")
matrix_plot("spt.figure-3", "mae", "b")
length_plot("spt.figure-3", "mae", "c")
sized = chapter.rows("spt-sizes", "pretraining", variants=PAIR, tasks="ablation")
size_plot("spt.figure-3", sized, ["smaller-mae", "mae", "larger-mae"], "d", "ablation")
end("spt.figure-3", "CUB-200-2011, all of FGVC for (b), with ViT-B, ViT-L and ViT-H of MAE.", "spt-length")

# %% [markdown]
# (a) k-means ends when nothing moves, so its seconds need not grow in proportion; runs shared the machine two by two.
# (b) Tasks drawn by one program share grounds and colours: their tokens are nearer to each other than those of birds
# and cars. (c) One rate, searched at the usual length, serves all lengths. More prompts take more of a fixed
# attention, so that a length far above the number of patches is another regime than the paper's 100 beside 196.
# (d) Only the middle size had a search; the others use its rates.

# %% [markdown]
# (spt.figure-4)=
# ## Figure 4: Amount of training data
#
# On ImageNet-1K, the paper trains with a growing share of the images. With few, prompts win; with many, full
# fine-tuning does. Supervised pre-training is the better choice when there is little data. Here a drawn task
# gives a tenth of its usual training images up to twice as many; the axis shows which of these were run. A run has as many epochs whatever the amount, so few
# images also mean few steps; the rate is the one searched at the usual amount.


# %% name="spt.figure-4" tags=["hide-input"]
def show_amounts(artifact, task, prompts, on):
    """Accuracy by training images and pre-training, and the claims at both ends, which speak of the tasks `on`."""
    whole = chapter.rows("spt-amount", variants=["Full fine-tuning", *PAIR])
    whole = whole[whole.task == task]
    parts = [part for part in ("mae", "supervised") if chapter.cast.backbones.get(part) in set(whole.backbone)]
    if whole.train_size.nunique() < 2:
        return
    fig, axes = plt.subplots(1, len(parts), figsize=(7, 3.3), sharey=True, squeeze=False)
    for ax, part in zip(axes[0], parts, strict=True):
        frame = whole[whole.backbone == chapter.cast.backbones[part]]
        for variant, rows in frame.groupby("variant", sort=False):
            line(ax, rows, "train_size", variant, color=COLOURS[variant])
        sizes = sorted(frame.train_size.unique())
        ax.set_xscale("log")
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
        ax.minorticks_off()
        ax.set(title=PARTS[part], xlabel="training images", ylabel="test accuracy, %")
    handles = {label: handle for ax in axes[0] for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    show_figure(
        artifact,
        fig,
        whole,
        f"Task {task} by number of training images: mean and range of the seeds.",
        "Accuracy over training images for full fine-tuning, VPT-Deep and SPT-Deep, one panel a pre-training.",
    )
    for part in parts:
        frame = whole[whole.backbone == chapter.cast.backbones[part]]
        if frame.train_size.nunique() < 2:
            continue
        few, many = (frame[frame.train_size == size] for size in (frame.train_size.min(), frame.train_size.max()))
        full = "Full fine-tuning"
        judge_least(
            f"{artifact}.{part}-few-images",
            {f"{name} over {full}": (few, name, full) for name in prompts},
            on,
            [part],
            f"{few.train_size.iloc[0]} images.",
        )
        judge_least(
            f"{artifact}.{part}-many-images",
            {f"{full} over {name}": (many, full, name) for name in prompts},
            on,
            [part],
            f"{many.train_size.iloc[0]} images.",
        )


amounts = list(dict.fromkeys(chapter.frames["spt-amount"].task))
first, second = chapter.cast.tasks["amount"][:1], chapter.cast.tasks["amount"][1:]
for task in [name for name in amounts if name not in second][:1]:
    show_amounts("spt.figure-4", task, ["VPT-Deep", "SPT-Deep"], first)
    rows = chapter.rows("spt-amount", variants=["SPT-Deep"])
    rows = rows[(rows.task == task) & (rows.train_size == rows.train_size.min())]
    rows = chapter.answers("spt.figure-4.supervised-better-with-few", rows, ["SPT-Deep"], first, ["supervised", "mae"])
    if len(rows):
        by_part = [rows[rows.backbone == chapter.cast.backbones[part]] for part in ("supervised", "mae")]
        page.judge(
            "spt.figure-4.supervised-better-with-few",
            *difference(*by_part),
            evidence="trend",
            records=[*rows.record],
            note=f"SPT-Deep with {rows.train_size.iloc[0]} images.",
        )
end("spt.figure-4", "ImageNet-1K, 1 % to all of its 1.28 million images, ViT-B/16 of two pre-trainings.", "spt-amount")

# %% [markdown]
# The paper's largest amount has over a thousand images a class, the quick profile's a few dozen: where full fine-tuning
# does not take over at the right end, the axis may simply be too short. The pre-training differs as well: the quick
# profile's supervised backbones were taught classes of drawn shapes, which these tasks need more or less by their
# nature.

# %% [markdown]
# (spt.table-s1)=
# ## Table S1: Data sets
#
# Classes and split sizes of the 24 tasks. Nothing is run. Beside them are the tasks that stand for them in the quick
# profile; all have 800 training images unless said, as VTAB-1k has.

# %% name="spt.table-s1" tags=["hide-input"]
entries = embedded_tasks()
used = [name for part in ("benchmark", "pretraining", "four", "ablation", "amount") for name in grids.cast("quick").tasks[part]]
used = list(dict.fromkeys(used))
table = pd.DataFrame(
    [
        {
            "task": name,
            "group": entries[name]["group"],
            "what": entries[name]["nature"],
            "classes": len(entries[name]["classes"]),
            **dict(zip(["train", "val", "test"], entries[name]["splits"])),
        }
        for name in used
    ]
)
page.show(
    "spt.table-s1",
    table,
    evidence="derived",
    how="From the description of the embedded tasks.",
    caption="The embedded tasks that this page uses in the quick profile.",
)
starred = papers.published("spt.table-s1")
starred = starred[starred.val.str.endswith("*")]
train, val = (starred[name].str.strip("*").str.replace(",", "").astype(int) for name in ("train", "val"))
page.judge(
    "spt.table-s1.val-share",
    (100 * val / (train + val) - 10).abs().max(),
    evidence="derived",
    note=f"From the printed sizes of {', '.join(starred.dataset)}.",
)
page.printed("spt.table-s1", "Table S1 as printed")

# %% [markdown]
# (spt.figure-s1)=
# ## Figure S1: The ablations with supervised pre-training
#
# Figure 3 (b) to (d) again, with backbones that were taught classes. The paper sees the same three things. The same
# reservations hold: in (a) the prompts stay frozen.

# %% name="spt.figure-s1" tags=["hide-input"]
matrix_plot("spt.figure-s1", "supervised", "a")
length_plot("spt.figure-s1", "supervised", "b")
both = [name for name in chapter.cast.tasks["sizes"] if name in chapter.cast.tasks["benchmark"]]
sized = chapter.rows("sizes", "benchmark", variants=PAIR, tasks="sizes")
size_plot("spt.figure-s1", sized, ["smaller", "supervised", "larger"], "c", both)
end("spt.figure-s1", "CUB-200-2011, all of FGVC for (a), with supervised ViT-B and larger.", "spt-length")

# %% [markdown]
# (spt.table-s2)=
# ## Table S2: From which level the prompts start
#
# VPT's random start, tokens of one level for all blocks (those that enter the first block, or those that leave the
# last), and SPT's tokens of the prompt's own level. The paper finds its own level best, most so under MAE. A shallow
# prompt has only the first level, so SPT-Shallow is both; the last level was not run for it, and a column without runs
# is left out.

# %% name="spt.table-s2" tags=["hide-input"]
LEVELS = {
    "uniform (VPT)": "(a) random",
    "tokens of block 0": "(b) first",
    "tokens behind the last block": "(b) last",
    "random": "(c) own level (SPT)",
}
frame = chapter.rows("spt-starts", variants=[*LEVELS], tasks="ablation")
shallow = chapter.rows("benchmark", "pretraining", variants=["VPT-Shallow", "SPT-Shallow"], tasks="ablation")
if len(frame):
    rows, of_shallow = [], ["VPT-Shallow", "SPT-Shallow", None, "SPT-Shallow"]
    for (name, label), plain in zip(LEVELS.items(), of_shallow, strict=True):
        row = {"start": label}
        for part in ("supervised", "mae"):
            one, other = (t[t.backbone == chapter.cast.backbones.get(part)] for t in (shallow, frame))
            row[f"{PARTS[part]}, shallow"] = spread(one[one.variant == plain])
            row[f"{PARTS[part]}, deep"] = spread(other[other.variant == name])
        rows.append(row)
    table = pd.DataFrame(rows)
    show_table(
        "spt.table-s2",
        table.loc[:, (table != "–").any()],
        frame,
        f"Task {', '.join(frame.task.unique())} by the "
        "level that prompts start from: test accuracy in %, mean ± standard deviation over seeds.",
    )
    for claim, rival in zip(["uniform", "first", "last"], LEVELS):
        chapter.judge(f"spt.table-s2.over-{claim}", frame, "random", rival, on="ablation", parts=["supervised", "mae"])
page.printed("spt.table-s2", "Table S2 as printed")
end("spt.table-s2", "CUB-200-2011 with ViT-B/16 of ImageNet-21k and of MAE.", "spt-starts")

# %% [markdown]
# Levels differ in length as well as in content: the tokens of a residual stream grow from block to block. LayerNorm,
# which comes first in every block, takes the length out again, so a wrong level enters at the right scale; what is
# left to differ is the direction.

# %% [markdown]
# (spt.figure-s3)=
# ## Figure S3: Amount of training data on a second set
#
# Figure 4 again, on iNaturalist 2018 with its long tail of classes. Here a second drawn task stands for it where one
# was run, with as many images of every class: **the long tail is not imitated**.

# %% name="spt.figure-s3" tags=["hide-input"]
for task in [name for name in amounts if name in second][:1]:
    show_amounts("spt.figure-s3", task, ["SPT-Deep"], second)
end("spt.figure-s3", "iNaturalist 2018: 437,000 images of 8,142 classes, ViT-B/16 of two pre-trainings.", "spt-amount")

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
def own_layer(frame):
    """Share of layers whose most similar patches are of their own layer, by variant, backbone and seed."""
    found = [np.asarray(record.values["cka"]) for record in frame.record]
    shares = [(matrix.argmax(1) == np.arange(len(matrix))).mean() for matrix in found]
    return frame.assign(share=shares).groupby(["variant", "backbone", "seed"]).share.mean()


def show_cka(frame):
    """One matrix a method and pre-training; a dot is on the layer whose patches are most similar."""
    parts = [part for part in ("supervised", "mae") if chapter.cast.backbones.get(part) in set(frame.backbone)]
    fig, axes = plt.subplots(len(parts), 2, figsize=(7, 3.1 * len(parts)), squeeze=False)
    for i, part in enumerate(parts):
        for ax, variant in zip(axes[i], PAIR, strict=True):
            mine = frame[(frame.variant == variant) & (frame.backbone == chapter.cast.backbones[part])]
            ax.set(title=f"{variant}, {PARTS[part]}", xlabel="patches that enter block", ylabel="prompts of block")
            ax.grid(False)
            if not len(mine):
                continue
            mean = np.mean([record.values["cka"] for record in mine.record], 0)
            fig.colorbar(ax.imshow(mean, cmap="viridis", vmin=0), ax=ax, label="CKA")
            ax.plot(mean.argmax(1), range(len(mean)), "o", color="#d55e00", mec="white", ms=5)
    show_figure(
        "spt.figure-s4",
        fig,
        frame,
        "CKA of prompts and patches after the last epoch, mean over tasks and "
        "seeds. Dots: the most similar layer of each row; on the diagonal it is the prompts' own.",
        "Matrices of CKA, prompts by block against patches by block, by method and pre-training.",
    )
    shares = own_layer(frame)
    table = shares.groupby(["variant", "backbone"]).agg(["mean", "count"]).reset_index()
    table["mean"] = (100 * table["mean"]).map("{:.0f} %".format)
    table.columns = ["method", "backbone", "layers most similar to their own", "seeds"]
    show_table("spt.figure-s4", table, frame, "Share of layers whose most similar patches are of their own layer.")
    rows = chapter.answers("spt.figure-s4.spt-own-layer", frame, ["SPT-Deep"], WATCHED, ["supervised", "mae"])
    if len(rows):
        mean = own_layer(rows).groupby("seed").mean()
        page.judge(
            "spt.figure-s4.spt-own-layer", *interval(mean), evidence="trend", note=f"{len(mean)} seeds.", records=[*rows.record]
        )
    rows = chapter.answers("spt.figure-s4.own-layer-over-vpt", frame, PAIR, WATCHED, ["mae"])
    if len(rows):
        share = own_layer(rows).unstack("variant")
        page.judge(
            "spt.figure-s4.own-layer-over-vpt",
            *interval(share["SPT-Deep"] - share["VPT-Deep"]),
            evidence="trend",
            note=f"{len(share)} seeds.",
            records=[*rows.record],
        )


compared = pd.concat([part for part in (prompt_records("benchmark", "supervised"), watched) if len(part)] or [watched])
if len(compared):
    show_cka(compared)
end("spt.figure-s4", "ViT-B/16 of several pre-trainings; the data set is not named in the text.", "benchmark")

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
frame = chapter.rows("benchmark", "pretraining", variants=["Full fine-tuning", "SPT-Shallow", "SPT-Deep"])
for part, name in PARTS.items():
    rows = frame[frame.backbone == chapter.cast.backbones.get(part)]
    if len(rows):
        show_table(
            "spt.table-s3", statistics.task_table(rows), rows, f"Pre-training {name}: test accuracy in %, mean over seeds."
        )
chapter.judge(
    "spt.table-s3.supervised-over-full",
    frame,
    "SPT-Deep",
    "Full fine-tuning",
    note="Without fine-grained.",
    on="vtab",
    parts=["supervised"],
)
chapter.judge(
    "spt.table-s3.deep-over-shallow",
    frame,
    "SPT-Deep",
    "SPT-Shallow",
    on="vtab",
    note="A task that several backbones have counts as one, with their mean.",
)
printed = papers.published("spt.table-s3").set_index(["pretraining", "method"])
GROUPS = {"Natural": VTAB[:7], "Specialized": VTAB[7:11], "Structured": VTAB[11:]}
means = pd.DataFrame({group: printed[names].astype(float).mean(axis=1) for group, names in GROUPS.items()})
two = papers.published("spt.table-2").set_index(["pretraining", "method"])[[*GROUPS]].astype(float)
four = papers.published("spt.table-s4").set_index("method")[[*GROUPS]].astype(float)
four.index = pd.MultiIndex.from_product([["supervised"], four.index])
again = pd.concat([two, four]).rename_axis(means.index.names)
off = means - again.loc[means.index]
page.judge("spt.table-s3.group-means", off.abs().max(axis=None), evidence="derived", note=f"{off.size} means of printed cells.")
page.printed("spt.table-s3", "Table S3 as printed")
end("spt.table-s3", f"{VIT_B} timm has no MoCo-v3 weights of ViT-B; give a file.", "benchmark")

# %% [markdown]
# (spt.table-s4)=
# ## Table S4: Groups of tasks against other methods, supervised
#
# Means over FGVC and VTAB-1k's groups. SPT is at or near the top of the methods that leave the backbone as it is, and
# below some that change it. Adapter, LoRA, SSF and SNF are not part of this page's grid.

# %% name="spt.table-s4" tags=["hide-input"]
frame = chapter.rows("benchmark", variants=METHODS, part="supervised")
if len(frame):
    show_table(
        "spt.table-s4",
        statistics.group_table(frame),
        frame,
        "Supervised pre-training: test accuracy in %, mean ± standard deviation over seeds.",
    )
    chapter.judge("spt.table-s4.deep-over-vpt-deep", frame, "SPT-Deep", "VPT-Deep", on="benchmark")
    chapter.judge("spt.table-s4.shallow-over-vpt-shallow", frame, "SPT-Shallow", "VPT-Shallow", on="benchmark")
    chapter.judge("spt.table-s4.deep-over-e2vpt", frame, "SPT-Deep", "E2VPT", on="benchmark")
page.printed("spt.table-s4", "Table S4 as printed")
end("spt.table-s4", "Needs ViT-B/16 of ImageNet-21k, FGVC and VTAB-1k.", "benchmark")

# %% [markdown]
# ## Real weights, real images
#
# A ViT-Tiny with published ImageNet weights on real photographs, where such runs are kept. A record knows its data by
# name, number of images and fingerprint, and not whose split it is: no number of VTAB-1k may stand beside these. The
# prompt methods took the best of three rates on validation with seed 0, as in the small world; four epochs are few.

# %% name="real" tags=["hide-input"]
chapter.real_images()
chapter.show_left_out()

# %% tags=["remove-output", "remove-input"]
page.close()
