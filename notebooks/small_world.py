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
# # The small world: what the embedded backbones and tasks can show
#
# Everything in the quick profile happens in a small world of 24 x 24 pixels: backbones that this project pretrained
# on drawn pictures ([](../backbones.md)), and eleven tasks, drawn or cut from real pictures ([](../data.md)), sorted
# into VTAB's groups and a fine-grained one. This page says how good the backbones are and what the tasks ask of
# them. A task on which the linear probe is as good as full fine-tuning cannot tell methods apart, and one that can
# be learned from scratch does not need a backbone.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None
weights = "pretrained"
tasks = None
methods = None
studies = None
seeds = None
kept_seeds = None
search = None
data_dir = None
epochs = None

# %% tags=["hide-input", "remove-output"]
import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt.data.tasks import embedded_tasks
from visprompt.models.embedded import networks, weights_file
from visprompt.pages import plots
from visprompt.chapters.chapter import Chapter
from visprompt.chapters.parameters import ChapterParameters
from visprompt.pages.page import Page
from visprompt.pages.parameters import read_parameters
from visprompt.studies import grids

p = read_parameters(ChapterParameters, globals())
page = Page("small_world", p)
plots.style()
chapter = Chapter(page, p, own=["tasks", "benchmark"], quick_methods=["linear-probe"])

# %% [markdown]
# ## How the backbones were trained
#
# All saw the same 60,000 drawn pictures. The masked autoencoders come first: supervised training and MoCo-v3 hardly
# begin on such small ViTs from a random start, so both start from painted patches, the supervised ones to name 112
# shapes, MoCo-v3 to tell pictures apart without a label. Their curves, from the logs beside the weights (`python -m visprompt.models.pretraining NAME` makes both
# again):

# %% name="curves" tags=["hide-input"]
logs = {name: json.loads(weights_file(name).with_suffix(".json").read_text()) for name in networks()}
STAGES = {"masked": "masked autoencoding", "contrastive": "MoCo-v3", "supervised": "supervised"}
fig, axes = plt.subplots(1, 3, figsize=(7.4, 3.6))
for ax, (stage, title) in zip(axes, STAGES.items(), strict=True):
    for name, log in logs.items():
        curve = [row for row in log["curve"] if row["stage"] == stage]
        if curve and not (stage == "masked" and not log["recipe"].get("mae_normalised", False)):
            ax.plot([row["step"] for row in curve], [row["loss"] for row in curve], label=name, lw=1.2)
    ax.set(title=title, xlabel="step", ylabel="training loss" if stage == "masked" else "")
    ax.legend(fontsize=5.5, loc="upper right")
page.present(
    fig,
    evidence="trend",
    cell="curves",
    how="From the logs of the pretraining runs, one run each.",
    caption="Training losses by stage. Supervised: cross-entropy with two extra heads. The supervised micro ViT's first "
    "stage painted plain pixels, whose loss is on another scale, and is left out.",
    alt="Three panels of falling training losses: masked autoencoding, MoCo-v3, and supervised training.",
)

# %% [markdown]
# How much of the source a backbone knows: the share of 4,000 new pictures that its own head names right, and that a
# linear probe on its frozen features names right (trained on 6,000 pictures). The self-supervised features know
# little of the 112 shapes in a linear way: minutes on one CPU thread are no substitute for ImageNet and days. What
# the chapters say of "MAE" and "MoCo-v3" is said of such backbones.


# %% name="backbones" tags=["hide-input"]
def percent(value):
    return "–" if value is None else f"{100 * value:.1f}"


rows = [
    {
        "backbone": name,
        "width": networks()[name]["timm_kwargs"].get("embed_dim", "–"),
        "epochs: MAE / MoCo / labels": " / ".join(
            str(log["recipe"].get(k, 0)) for k in ("mae_epochs", "moco_epochs", "epochs")
        ),
        "start": "MAE" if log["recipe"].get("init") else "random",
        "own head, %": percent(log["source_accuracy"]),
        "linear probe, %": percent(log.get("probe_accuracy")),
        "minutes": round(log["seconds"] / 60),
    }
    for name, log in logs.items()
]
page.present(
    pd.DataFrame(rows),
    evidence="trend",
    cell="backbones",
    how="From the logs beside the weights.",
    caption="The embedded backbones on 4,000 held-out pictures of their source; chance is 0.9 %.",
)

# %% [markdown]
# ## What the tasks ask
#
# Linear probe, full fine-tuning, and the same network trained from a random start. The last has the best of three
# learning rates on validation; so has full fine-tuning on the tasks of the benchmark, and the recipe's rate on the
# others; linear probes have one rate. The distance between the first two is what fine-tuning methods can win; the
# distance to the third is what pretraining gives.
#
# How hard the drawn tasks are, how MoCo-v3 was trained, and which tasks serve which experiment was decided after a look
# at first runs, their test accuracies among them. No method was preferred by that look, but the tasks are not blind.

# %% name="tasks" tags=["hide-input"]
frame = chapter.rows("tasks", "benchmark", variants=["Linear probe", "Full fine-tuning", "From scratch"])
if len(frame):
    frame = frame.drop_duplicates(["variant", "task", "seed"])
    order = [name for name in embedded_tasks() if (frame.task == name).any()]
    order += [name for name in dict.fromkeys(frame.task) if name not in order]
    classes = [len(embedded_tasks()[name]["classes"]) if name in embedded_tasks() else np.nan for name in order]
    means = frame.groupby(["task", "variant"]).test.mean().unstack().reindex(order)
    spread = frame.groupby(["task", "variant"]).test.agg(plots.spread)
    table = spread.unstack().reindex(order).fillna("–")
    table.insert(0, "group", [grids.group_of(name) for name in order])
    table.insert(1, "classes", ["–" if np.isnan(count) else f"{count}" for count in classes])
    page.present(
        table.rename_axis(None).rename_axis(None, axis=1),
        evidence="trend",
        cell="tasks",
        how=chapter.how(frame),
        records=[*frame.record],
        caption="Test accuracy in %, mean and standard deviation over the seeds that there are.",
    )
    fig, ax = plt.subplots(figsize=(7, 3.8))
    for variant, mark, color in (
        ("From scratch", "x", "#7f7f7f"),
        ("Linear probe", "o", "#0072b2"),
        ("Full fine-tuning", "s", "#222222"),
    ):
        if variant in means:
            ax.plot(means[variant], np.arange(len(order)), mark, color=color, label=variant, ls="none")
    ax.plot(100 / np.array(classes), np.arange(len(order)), "|", color="#d55e00", ms=12, label="chance", ls="none")
    ax.set_yticks(np.arange(len(order)), [f"{name} ({grids.group_of(name)})" for name in order])
    ax.set(xlabel="test accuracy, %", xlim=(0, 100))
    ax.invert_yaxis()
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    page.present(
        fig,
        evidence="trend",
        cell="tasks",
        how=chapter.how(frame),
        records=[*frame.record],
        caption="The same, to compare: what pretraining gives, and what fine-tuning can add.",
        alt="For each task three marks on a line from 0 to 100 percent: from scratch, linear probe and full fine-tuning, beside chance.",
    )

# %% [markdown]
# ## Between the methods
#
# How far apart the methods of the benchmark are on each task, beside the spread of the seeds. Where the range over
# methods is not much wider than that of the seeds, the task says little about methods.

# %% name="separation" tags=["hide-input"]
bench = chapter.rows("benchmark")
if len(bench):
    tuned = bench[bench.variant != "Linear probe"]
    rows = []
    for task, part in tuned.groupby("task", sort=False):
        means = part.groupby("variant").test.mean()
        deviations = part.groupby("variant").test.std(ddof=1).dropna()
        rows.append(
            {
                "task": task,
                "group": grids.group_of(task),
                "lowest": f"{means.min():.1f} ({means.idxmin()})",
                "highest": f"{means.max():.1f} ({means.idxmax()})",
                "range": f"{means.max() - means.min():.1f}",
                "deviation of seeds": f"{deviations.mean():.1f}" if len(deviations) else "–",
            }
        )
    page.present(
        pd.DataFrame(rows),
        evidence="trend",
        cell="separation",
        how=chapter.how(tuned),
        records=[*tuned.record],
        caption="Methods of the benchmark without the linear probe: mean test accuracy, in %.",
    )
chapter.show_left_out()
page.close()
