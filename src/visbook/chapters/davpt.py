"""What the pages on DA-VPT share: the methods it is compared with, differences by seed, and sums of
printed numbers."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt import manifests, papers, paths
from visprompt.methods import build_method
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import load_backbone

from ..auditing.counts import group_counts
from ..pages import plots
from ..pages.friendly import signed
from ..studies import bench, effects, statistics
from .chapter import PARTS, Chapter

SHOWN = {  # variant of studies.yaml -> method
    "Linear probe": "linear-probe",
    "Full fine-tuning": "full-finetune",
    "BIAS": "bias",
    "VPT-Shallow": "vpt-shallow",
    "Gate-VPT": "gate-vpt",
    "VPT-Deep": "vpt-deep",
    "E2VPT": "e2vpt",
    "DA-VPT": "da-vpt",
    "DA-VPT+": "da-vpt-plus",
}
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#7f7f7f"
POINTS = "test accuracy, %"
AGAINST = ["VPT-Deep", "E2VPT", "Full fine-tuning"]  # of the figure of differences


def prose() -> pd.Series:
    """The numbers that DA-VPT's running text prints, by id; its tables have lost their cells."""
    return manifests.read_table(paths.MANIFESTS / "papers/davpt/prose.csv").set_index("id").value


def fine(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows on fine-grained tasks."""
    return rows[rows.group == "fine"]


def vtab(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows on tasks of VTAB's groups."""
    return rows[rows.group.isin(["natural", "specialized", "structured"])]


def methods_on(chapter: Chapter, part: str) -> pd.DataFrame:
    """The rows of the methods of Table 1 on one pre-training, in the order of `SHOWN`."""
    rows = chapter.planned("davpt.table-1")
    rows = rows[rows.backbone == chapter.scope.backbones.get(part)]
    return rows.sort_values("variant", key=lambda names: names.map([*SHOWN].index), kind="stable")


def over(frame: pd.DataFrame, one: str, others: str | Sequence[str]) -> pd.Series:
    """Accuracy of one variant minus the mean of others, in points, by seed; empty where a run is
    missing."""
    others = [others] if isinstance(others, str) else list(others)
    if not others or one in others or not {one, *others} <= set(frame.variant):
        return pd.Series(dtype=float)
    wide = frame.assign(test=frame.test.astype(float)).pivot_table(
        index=["seed", "backbone", "task"], columns="variant", values="test"
    )
    wide = wide[[one, *others]].dropna()
    by_task = (wide[one] - wide[others].mean(axis=1)).unstack(["backbone", "task"])
    # a seed counts only with all tasks
    return (by_task.dropna() if len(by_task.dropna()) else by_task).mean(axis=1)


def judge_over_mean(
    chapter: Chapter, claim: str, frame: pd.DataFrame, one: str, others: Sequence[str], on, note=""
) -> None:
    """Hold one variant's accuracy above the mean of others against a claim on the data sets that it
    speaks of."""
    used = chapter.answers(claim, frame, [one, *others], on)
    if len(used):
        pair = (one, "mean of the others")
        sides = used.assign(variant=np.where(used.variant == one, *pair))
        chapter.judge(claim, sides, *pair, note, on=on, drawn=True)


def judge_highest(chapter: Chapter, rows: pd.DataFrame) -> None:
    """Judge whether DA-VPT+ is above the strongest of the other methods on fine-grained tasks."""
    means = rows[rows.variant != "DA-VPT+"].groupby("variant").test.mean().astype(float)
    if len(means) and len(over(rows, "DA-VPT+", strongest := means.idxmax())):
        note = "Compared with the strongest of the methods shown."
        chapter.judge("davpt.table-3.highest", rows, "DA-VPT+", strongest, note, on="fine")


def judge_most_tasks(chapter: Chapter, rows: pd.DataFrame) -> None:
    """Judge on which share of VTAB's tasks DA-VPT+ is above VPT-Deep."""
    both = chapter.answers("davpt.table-7.most-tasks", rows, ["DA-VPT+", "VPT-Deep"], "vtab")
    if len(both):
        wide = both.pivot_table(index="seed", columns=["variant", "task"], values="test")
        gain = wide["DA-VPT+"] - wide["VPT-Deep"]
        share = 100 * (gain > 0).mean(axis=1)
        chapter.judge_values("davpt.table-7.most-tasks", share, [*both.record])


def dots(
    ax, named: dict[str, pd.Series], color: str, shift: float = 0.0, label: str | None = None
) -> None:
    """A row for each series of differences: the mean, and its seeds as small dots."""
    for y, values in enumerate(named.values()):
        if len(values):
            ax.plot(values, [y + shift] * len(values), "o", ms=4, color=color, alpha=0.4)
            ax.plot(values.mean(), y + shift, "D", ms=7, color=color, label=label)
            label = None
    ax.axvline(0, color=GREY, lw=1)
    ax.set_yticks(range(len(named)), [name.replace("E2VPT", "E²VPT") for name in named])
    ax.set_ylim(len(named) - 0.5, -0.5)


def added_up() -> pd.DataFrame:
    """DA-VPT+'s means as the printed gains over three baselines make them, with the means that SPT
    prints for these."""
    cells, printed, rows = papers.published("spt.table-s4").set_index("method"), prose(), []
    for name, slug in {"Full": "full", "VPT-Deep": "vpt-deep", "E2VPT": "e2vpt"}.items():
        # of FGVC the least, of VTAB the most is supervised
        ends = ("-least", "-most") if slug == "full" else ("", "")
        fgvc, gain = float(cells.fgvc_mean[name]), float(printed[f"fgvc-over-{slug}{ends[0]}"])
        groups = cells.loc[name, ["Natural", "Specialized", "Structured"]].astype(float).mean()
        more = float(printed[f"vtab-over-{slug}{ends[1]}"])
        rows.append(
            (
                name,
                f"{fgvc:.2f}",
                f"{gain:.2f}",
                fgvc + gain,
                f"{groups:.2f}",
                f"{more:.2f}",
                groups + more,
            )
        )
    columns = ["baseline", "FGVC, SPT Table S4", "printed gain", "DA-VPT+, FGVC"]
    columns += ["VTAB-1k, SPT Table S4", "printed gain", "DA-VPT+, VTAB-1k"]
    return pd.DataFrame(rows, columns=columns)


def means_table(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy by pre-training, method and group; `found` is rows by part."""
    table = pd.concat(
        [statistics.group_table(rows).assign(on=PARTS[part]) for part, rows in found.items()]
    ).fillna("–")
    groups = [name for name in table if name not in ("on", "method", "mean", "seeds")]
    table = table[["on", "method", *groups, "mean", "seeds"]]
    return table.rename(columns={"on": "pre-training"}).reset_index(drop=True)


def differences_told(shown: dict[str, pd.DataFrame]) -> str:
    """The means of `differences_figure` as text."""
    told = [
        f"{PARTS[part]}, {name} tasks, DA-VPT+ minus {other}: {signed(values.mean())}"
        for part, rows in shown.items()
        for name, some in (("fine-grained", fine), ("VTAB-like", vtab))
        for other in AGAINST
        if len(values := over(some(rows), "DA-VPT+", other))
    ]
    return f"{'; '.join(told)}."


def differences_figure(shown: dict[str, pd.DataFrame]):
    """DA-VPT+ minus three other methods, one panel per pre-training; `shown` is rows by part."""
    fig, axes = plt.subplots(
        1, len(shown), figsize=(7, 3.2), sharex=True, sharey=True, squeeze=False
    )
    for ax, (part, rows) in zip(axes[0], shown.items(), strict=True):
        for name, some, color, shift in (
            ("fine-grained", fine, ORANGE, -0.12),
            ("VTAB's groups", vtab, BLUE, 0.12),
        ):
            dots(
                ax,
                {other: over(some(rows), "DA-VPT+", other) for other in AGAINST},
                color,
                shift,
                name,
            )
        ax.set(title=PARTS[part], xlabel="points")
    gaps = [
        values.mean()
        for rows in shown.values()
        for some in (fine, vtab)
        for other in AGAINST
        if len(values := over(some(rows), "DA-VPT+", other))
    ]
    ahead = sum(gap > 0 for gap in gaps)
    fig.suptitle(f"DA-VPT+ is ahead on average in {ahead} of {len(gaps)} comparisons", fontsize=12)
    plots.legend_below(fig, axes[0])
    return fig


def printed_counts(source: str, prompts: Sequence[int] = ()) -> list[dict]:
    """The counts of papers/counts.yaml for an artifact, then the same for other numbers of
    prompts."""
    for group in manifests.load_yaml(paths.MANIFESTS / "papers/counts.yaml"):
        if source in group["sources"]:
            found = group_counts(group, source)
            for count in prompts:
                changed = {"settings": {"prompt_tokens": count}}
                entries = {name: {**entry, **changed} for name, entry in group["rows"].items()}
                found += group_counts({**group, "rows": entries}, source)
    return found


def segmentation_shares() -> tuple[pd.DataFrame, list[float], str]:
    """Table 2's trained share by prompts a block, the shares with 20 prompts first, and the reading
    behind them."""
    numbers = (20, 5, 10, 50, 100)
    counted = printed_counts("davpt.table-2", numbers[1:])
    rows = sorted(zip(numbers, counted, strict=True), key=lambda pair: pair[0])
    columns = ["prompts per block", "trained, % of full fine-tuning", "printed"]
    table = pd.DataFrame(
        [(n, f"{row['computed']:.2f}", f"{row['printed']:g}") for n, row in rows], columns=columns
    )
    return table, [row["computed"] for row in counted], counted[0]["reading"]


def fine_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on fine-grained tasks, with each method's trained parameters here and on
    ViT-Base/16."""
    base = load_backbone(bench.BASE, device="meta")
    own = {
        name: count_parameters(build_method(slug, base, 200))["method"]
        for name, slug in SHOWN.items()
    }
    table = statistics.group_table(rows, ["fine"]).drop(columns="mean")
    table = table.rename(columns={"fine": ", ".join(rows.task.unique())})
    table["trained here"] = [
        f"{rows[rows.variant == name].parameters.iloc[0]:,}" for name in table.method
    ]
    table["trained, ViT-Base/16"] = [
        f"{own[name] / 1e6:.3f} M" if own[name] else "0" for name in table.method
    ]
    return table


def judge_even_more(chapter: Chapter, part: str, supervised: pd.DataFrame) -> None:
    """Whether DA-VPT+ gains over VPT-Deep on a self-supervised backbone, and more than on the
    supervised one: the smaller of the two has to be above 0."""
    claim, pair = f"davpt.table-1.{part}-over-vpt-deep", ["DA-VPT+", "VPT-Deep"]
    sides = [
        chapter.answers(claim, rows, pair, "pretraining")
        for rows in (methods_on(chapter, part), supervised)
    ]
    if not all(map(len, sides)):
        return
    tables = (rows.set_index(["seed", "task", "variant"]).test.unstack() for rows in sides)
    here, there = (table[pair[0]] - table[pair[1]] for table in tables)
    more = (here - there).dropna().unstack().dropna()
    note = (
        f"DA-VPT+ − VPT-Deep: {signed(here.mean())} points here, {signed(there.mean())} "
        f"supervised; {more.shape[1]} tasks, {len(more)} seeds."
    )
    gained = statistics.gain(sides[0], *pair).here
    chapter.page.judge(
        claim,
        *map(min, gained, effects.of_table(more).interval),
        evidence="trend",
        records=[record for rows in sides for record in rows.record],
        note=f"{note} {chapter.without(claim)}".strip(),
    )
