"""What the page on the small world draws: how its backbones were trained, and what its tasks
ask."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt.data.drawing import SOURCE_CLASSES
from visprompt.data.tasks import embedded_tasks
from visprompt.models.embedded import networks, weights_file

from ..pages import plots
from ..pages.friendly import named
from ..studies import grids, statistics
from ..studies.comparable import listed

STAGES = {
    "masked": "masked autoencoding",
    "contrastive": "MoCo-v3",
    "captions": "captions (CLIP)",
    "supervised": "supervised",
}
# five times chance: what a network without labels should know, fixed beforehand
PROBE_BAR = 5 / SOURCE_CLASSES
START_BAR = 0.10  # and what it should be worth above a random start, with few labels
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
MARKS = {
    "From scratch": ("x", "#7f7f7f"),
    "Linear probe": ("o", "#0072b2"),
    "Full fine-tuning": ("s", "#222222"),
}


def logs() -> dict[str, dict]:
    """The log of each embedded backbone's training, as it lies beside the weights."""
    return {
        name: json.loads(weights_file(name).with_suffix(".json").read_text()) for name in networks()
    }


def curves(found: dict[str, dict]) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """Stage -> network -> (step, loss); raw pixels, whose loss is on another scale, are left
    out."""
    shown: dict[str, dict] = {stage: {} for stage in STAGES}
    for name, log in found.items():
        for stage in STAGES:
            curve = [(row["step"], row["loss"]) for row in log["curve"] if row["stage"] == stage]
            if curve and (stage != "masked" or log["recipe"].get("mae_normalised", False)):
                shown[stage][named(name)] = curve
    return shown


def losses_told(found: dict[str, dict]) -> str:
    """The ends of the curves of `losses_figure` as text."""
    told = [
        f"{STAGES[stage]}, "
        + ", ".join(f"{name} {c[0][1]:.2f} to {c[-1][1]:.2f}" for name, c in each.items())
        for stage, each in curves(found).items()
    ]
    return "; ".join(told) + "."


def losses_figure(found: dict[str, dict]):
    """Training losses by stage, one colour per network in all of them."""
    shown = curves(found)
    every = list(dict.fromkeys(name for each in shown.values() for name in each))
    colours = dict(zip(every, [*COLOURS * 2], strict=False))
    fig, axes = plt.subplots(2, 2, figsize=(7.4, 6.2))
    for ax, (stage, title) in zip(axes.flat, STAGES.items(), strict=True):
        for name, curve in shown[stage].items():
            dashed = "--" if every.index(name) >= len(COLOURS) else "-"
            look = {"color": colours[name], "ls": dashed, "lw": 1.4}
            ax.plot(*zip(*curve, strict=True), label=name, **look)
        ax.set(title=title, xlabel="step", ylabel="training loss", xscale="log")
    plots.legend_below(fig, axes.flat, columns=3)
    return fig


def backbones_table(found: dict[str, dict]) -> pd.DataFrame:
    """How each backbone was trained and how much of the source it knows."""

    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    rows = [
        {
            "backbone": name,
            "epochs: masked / MoCo-v3 / captions / labels": " / ".join(
                str(log["recipe"].get(key, 0))
                for key in ("mae_epochs", "moco_epochs", "caption_epochs", "epochs")
            ),
            "own head, %": percent(log["source_accuracy"]),
            "linear probe, %": percent(log.get("probe_accuracy")),
            "1,000 labels, pre-trained / from scratch, %": " / ".join(
                percent(log.get(f"{key}_accuracy")) for key in ("few_labels", "scratch")
            ),
            "minutes": round(log["seconds"] / 60),
        }
        for name, log in found.items()
    ]
    return pd.DataFrame(rows)


def bars(found: dict[str, dict]) -> str:
    """Which of the networks that saw no labels are above both thresholds, one, or none, in a
    sentence."""
    over = {
        name: (log["probe_accuracy"] >= PROBE_BAR)
        + (log["few_labels_accuracy"] - log["scratch_accuracy"] >= START_BAR)
        for name, log in found.items()
        if "few_labels_accuracy" in log
    }
    said = "; ".join(
        f"above {bars}: {listed([name for name, passed in over.items() if passed == count], 20)}"
        for count, bars in ((2, "both thresholds"), (1, "one"), (0, "none"))
        if count in over.values()
    )
    return f"{said[:1].upper()}{said[1:]}."


def in_order(frame: pd.DataFrame) -> dict[str, int | None]:
    """The tasks of some runs, embedded ones first, each with its number of classes where that is
    known."""
    known = embedded_tasks()
    names = [name for name in known if (frame.task == name).any()]
    names += [name for name in dict.fromkeys(frame.task) if name not in names]
    return {name: len(known[name]["classes"]) if name in known else None for name in names}


def tasks_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by task and variant, with group and number of classes."""
    classes = in_order(frame)
    spread = frame.groupby(["task", "variant"]).test.agg(statistics.spread)
    table = spread.unstack().reindex([*classes]).fillna("–")
    table.insert(0, "group", [grids.group_of(name) for name in classes])
    table.insert(1, "classes", ["–" if count is None else f"{count}" for count in classes.values()])
    return table.rename_axis(None).rename_axis(None, axis=1)


def tasks_told(frame: pd.DataFrame) -> str:
    """The means of `tasks_figure` as text."""
    means = frame.groupby(["variant", "task"], sort=False).test.mean().unstack()
    return " ".join(
        f"{variant}: "
        + ", ".join(f"{task} {mean:.0f}" for task, mean in row.dropna().items())
        + "."
        for variant, row in means.iterrows()
    )


def tasks_figure(frame: pd.DataFrame):
    """What pre-training gives and fine-tuning can add, one row per task, with chance."""
    classes = in_order(frame)
    means = frame.groupby(["task", "variant"]).test.mean().unstack().reindex([*classes])
    fig, ax = plt.subplots(figsize=(7, 3.8))
    places = np.arange(len(classes))
    for variant, (mark, color) in MARKS.items():
        if variant in means:
            ax.plot(means[variant], places, mark, color=color, label=variant, ls="none")
    chance = [100 / count if count else np.nan for count in classes.values()]
    ax.plot(chance, places, "|", color="#d55e00", ms=12, label="chance", ls="none")
    ax.set_yticks(places, [f"{named(name)} ({grids.group_of(name)})" for name in classes])
    ax.set(xlabel="test accuracy, %", xlim=(0, 100))
    ax.invert_yaxis()
    if {"Linear probe", "Full fine-tuning"} <= {*means}:
        more = (means["Full fine-tuning"] - means["Linear probe"]).dropna()
        told = f"{more.max():.0f} points on {named(more.idxmax())}"
        ax.set_title(f"Full fine-tuning adds up to {told}", fontsize=11)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


def separation_table(tuned: pd.DataFrame) -> pd.DataFrame:
    """How far apart the methods are on each task, and the spread of the seeds."""
    rows = []
    for task, part in tuned.groupby("task", sort=False):
        means = part.groupby("variant").test.mean()
        deviations = part.groupby("variant").test.std(ddof=1).dropna()
        row = {"task": task, "group": grids.group_of(task)}
        row |= {
            "lowest": f"{means.min():.1f} ({means.idxmin()})",
            "highest": f"{means.max():.1f} ({means.idxmax()})",
        }
        row["range"] = f"{means.max() - means.min():.1f}"
        rows.append({**row, "std of seeds": f"{deviations.mean():.1f}" if len(deviations) else "–"})
    return pd.DataFrame(rows)
