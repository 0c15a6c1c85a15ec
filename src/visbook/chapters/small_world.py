"""What the page on the small world draws: how its backbones were trained, and what its tasks
ask."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt.data.drawing import SOURCE_CLASSES
from visprompt.data.tasks import embedded_tasks
from visprompt.models.embedded import networks, weights_file

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


def losses_figure(found: dict[str, dict]):
    """Training losses by stage; painted plain pixels, whose loss is on another scale, are left
    out."""
    fig, axes = plt.subplots(2, 2, figsize=(7.4, 5.6))
    for ax, (stage, title) in zip(axes.flat, STAGES.items(), strict=True):
        for name, log in found.items():
            curve = [row for row in log["curve"] if row["stage"] == stage]
            if curve and not (stage == "masked" and not log["recipe"].get("mae_normalised", False)):
                ax.plot(
                    [row["step"] for row in curve],
                    [row["loss"] for row in curve],
                    label=name,
                    lw=1.2,
                )
        ax.set(title=title, xlabel="step", ylabel="training loss", xscale="log")
        ax.legend(fontsize=5.5, loc="upper right")
    return fig


def backbones_table(found: dict[str, dict]) -> pd.DataFrame:
    """How each backbone was trained and how much of the source it knows."""

    def percent(value: float | None) -> str:
        return "–" if value is None else f"{100 * value:.1f}"

    rows = [
        {
            "backbone": name,
            "epochs: painting / MoCo / captions / labels": " / ".join(
                str(log["recipe"].get(key, 0))
                for key in ("mae_epochs", "moco_epochs", "caption_epochs", "epochs")
            ),
            "own head, %": percent(log["source_accuracy"]),
            "linear probe, %": percent(log.get("probe_accuracy")),
            "1,000 labels / scratch, %": " / ".join(
                percent(log.get(f"{key}_accuracy")) for key in ("few_labels", "scratch")
            ),
            "minutes": round(log["seconds"] / 60),
        }
        for name, log in found.items()
    ]
    return pd.DataFrame(rows)


def bars(found: dict[str, dict]) -> str:
    """Which of the networks that saw no labels are over both bars, over one, or over none, in a
    sentence."""
    over = {
        name: (log["probe_accuracy"] >= PROBE_BAR)
        + (log["few_labels_accuracy"] - log["scratch_accuracy"] >= START_BAR)
        for name, log in found.items()
        if "few_labels_accuracy" in log
    }
    said = "; ".join(
        f"over {bars}: {listed([name for name, passed in over.items() if passed == count], 20)}"
        for count, bars in ((2, "both bars"), (1, "one"), (0, "none"))
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


def tasks_figure(frame: pd.DataFrame):
    """What pretraining gives and fine-tuning can add, a row a task, with chance."""
    classes = in_order(frame)
    means = frame.groupby(["task", "variant"]).test.mean().unstack().reindex([*classes])
    fig, ax = plt.subplots(figsize=(7, 3.8))
    places = np.arange(len(classes))
    for variant, (mark, color) in MARKS.items():
        if variant in means:
            ax.plot(means[variant], places, mark, color=color, label=variant, ls="none")
    chance = [100 / count if count else np.nan for count in classes.values()]
    ax.plot(chance, places, "|", color="#d55e00", ms=12, label="chance", ls="none")
    ax.set_yticks(places, [f"{name} ({grids.group_of(name)})" for name in classes])
    ax.set(xlabel="test accuracy, %", xlim=(0, 100))
    ax.invert_yaxis()
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


def separation_table(tuned: pd.DataFrame) -> pd.DataFrame:
    """How far apart the methods are on each task, beside the spread of the seeds."""
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
        rows.append(
            {**row, "deviation of seeds": f"{deviations.mean():.1f}" if len(deviations) else "–"}
        )
    return pd.DataFrame(rows)
