"""What the page on costs shows: the bench, growth with the prompts, memory by method, time of one
task."""

import html
import statistics

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from visprompt.progress import progress
from visprompt.records import Record

from ..pages import plots
from ..pages.page import Page, boxed
from ..pages.parameters import Parameters
from ..studies import bench, bench_table
from ..timing.clock import Side
from . import card_costs

NAMES = {**plots.NAMES, bench.PLAIN: "VPT-Deep, concatenated"}
BLUE, ORANGE, GREY = plots.PALETTE["norm-tune"], plots.PALETTE["ap"], plots.PALETTE["linear-probe"]
LINES = [BLUE, plots.PALETTE["vp"], "#009e73", "#cc79a7"]
RATIOS = ["A / B", "batch", "ratio", "range", "by operations"]
UNSEEN = ["model", "precision", "aim"]  # columns of the bench that the page leaves out
COUNTS = [10, 20, 50, 100, 150, 200]  # prompts per block
BATCH = 64  # images, of counted operations


class CostPage(Page):
    """A page on costs, and the records of the bench that there are. Opening it times nothing."""

    def __init__(self, name: str, settings: Parameters):
        super().__init__(name, settings)
        plots.style()
        self.timed = bench_table.kept_records()
        self.whole = card_costs.whole_runs()
        self.machines = list(dict.fromkeys(record.settings["machine"] for record in self.timed))

    def not_timed(self, what: str, command: str = "make bench") -> None:
        """Say that a measurement is not there, and what would make it."""
        display(
            HTML(
                f'<div class="vp-notrun"><span class="vp-badge vp-not-run">not run</span> '
                f"{html.escape(what)} has not been "
                f"timed. This would do it:<pre>{html.escape(command)}</pre></div>"
            )
        )

    def of(self, machine: str, name: str | None = None, model: str | None = None) -> list[Record]:
        """The bench records of one machine, of one name and model where these are given."""
        return [
            r
            for r in self.timed
            if r.settings["machine"] == machine
            and name in (None, r.settings["name"])
            and model in (None, r.settings.get("backbone"))
        ]

    def best(self, name: str) -> Record | None:
        """A record at the papers' ViT-Base/16, from a GPU where there is one; None where nothing
        was timed."""
        found = [
            r
            for r in self.timed
            if r.settings["name"] == name and r.settings.get("backbone") == bench.BASE
        ]
        return max(found, key=lambda r: r.settings["device"] == "cuda", default=None)

    def folded(self, summary: str, table: pd.DataFrame, note: str = "") -> None:
        """A table behind its summary."""
        body = boxed(table.to_html(border=0, index=False)) + note
        display(
            HTML(
                f'<div class="vp-printed"><details><summary>{summary}</summary>'
                f"{body}</details></div>"
            )
        )

    def show_bench(self, machine: str) -> None:
        """The ratios that one machine measured, a table a model, and folded what they are made
        of."""
        shown = [r for r in self.of(machine) if r.settings["what"] != "methods"]
        table = bench_table.rows(shown).rename(columns={"pair": "A / B"})
        table = table.assign(**{"A / B": table["A / B"].map(compared_as)} if len(table) else {})
        for model, part in table.groupby("model", sort=False):
            records = [r for r in shown if bench_table.model_of(r) == model]
            rounds = sorted({r.settings["repeats"] for r in records})
            told = (
                f"Median and range of {' or '.join(map(str, rounds))} rounds"
                if rounds != [1]
                else "One round"
            )
            # what has no other side is in the folded table alone
            compared = part[part["ratio"] != ""].reset_index(drop=True)
            precisions = [name for name in part["precision"].unique() if name]
            columns = RATIOS if len(precisions) < 2 else [*RATIOS[:1], "precision", *RATIOS[1:]]
            rest = [
                "A / B",
                *(name for name in part.columns if name not in (*columns, *UNSEEN)),
            ]
            other = [
                word for word in ("counted", "peak memory") if word in {*compared.get("range", ())}
            ]
            self.present(
                compared[
                    [name for name in columns if name in part and (compared[name] != "").any()]
                ],  # of a part of the bench
                evidence="measured",
                records=records,
                caption=f"Time of A divided by time of B, {model} on {machine}."
                + "".join(f" Not a time: the rows marked “{word}”." for word in other),
                how=f"{told}, {' and '.join(precisions)}.",
            )
            part = part[rest].loc[:, (part[rest] != "").any()]
            if len(part.columns) > 1:
                note = "<p>Parameters, operations and memory are counted, memory in float32.</p>"
                self.folded(f"Seconds, parameters, operations and memory, {model}", part, note)

    def show_whole_runs(self) -> None:
        """One run of VTAB's size on each GPU that ran one, by part, and its step in some ways."""
        for record in self.whole:
            of = dict(evidence="measured", records=[record])
            machine, network = record.settings["machine"], record.settings["backbone"]
            for what, table, said in (
                ("Seconds of a run", card_costs.parts(record), card_costs.said(record)),
                ("A training step", card_costs.steps(record), card_costs.steps_said(record)),
            ):
                caption = f"{what}, VPT-Deep, {network}, on {machine}. {said}".strip()
                self.present(table, **of, caption=caption, how="Random weights, drawn pictures.")
        if not self.whole:
            self.not_timed("One run on a GPU", "make card")

    def show_growth(self, counted: dict[str, list[Record]]) -> None:
        """VPT-Deep's two forms by the number of prompts: operations as counted, and step times as
        measured."""
        fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4))
        draw_counted(left, counted)
        used = self.draw_measured(right)
        machines = dict.fromkeys(r.settings["machine"] for r in used)
        on = f", on {'; '.join(machines)}" if used else ""
        bare, trimmed = counted["concatenated"][0], counted["keys and values"][0]
        forms = [*counted["concatenated"][1:], *counted["keys and values"][1:]]
        self.present(
            fig,
            evidence="measured" if used else "derived",
            records=[bare, trimmed, *forms, *used],
            caption="VPT-Deep with prompts as keys and values, or concatenated to the tokens: "
            "operations (left) and ratio of step times (right), by number of prompts.",
            how=f"Left: counted, {bench.BASE}, batch {BATCH}; the fast form's last block "
            f"computes only the class token. "
            f"Right: timed in alternation, median and range over rounds{on}.",
            alt=f"Billions of multiply-adds per image from {COUNTS[0]} to {COUNTS[-1]} prompts: "
            f"{growth_told(counted)}.",
        )
        if not used:
            self.not_timed("The step time by number of prompts", "OMP_NUM_THREADS=2 make bench")

    def draw_measured(self, ax: Axes) -> list[Record]:
        """Step times of the fast form over the plain one, a line a machine and model; returns their
        records."""
        used, last = [], []
        pairs = [
            r
            for r in self.timed
            if r.settings["name"] in {f"vpt-deep-{count}" for count in bench.AIMS}
        ]
        groups = dict.fromkeys((r.settings["machine"], r.settings["backbone"]) for r in pairs)
        for number, (machine, model) in enumerate(groups):
            records = [
                r for name in bench.AIMS for r in self.of(machine, f"vpt-deep-{name}", model)
            ]
            x = [r.settings["first"]["settings"]["prompt_tokens"] for r in records]
            ratios = [bench_table.ratios(r) for r in records]
            y = [statistics.median(values) for values in ratios]
            low, high = ([abs(edge(v) - m) for v, m in zip(ratios, y)] for edge in (min, max))
            size = {"small": "ViT-S", "base": "ViT-B", "large": "ViT-L"}.get(
                model.split("_")[1], model
            )
            kind = "GPU" if records[0].settings["device"] == "cuda" else "CPU"
            look = {"fmt": "o-", "ms": 4, "lw": 1.2, "capsize": 2, "color": LINES[number % 4]}
            ax.errorbar(x, y, [low, high], label=f"{size}, {kind}", **look)
            used += records
            last.append(y[x.index(most := max(x))])
        told = f"{most} prompts: {min(last):.2f} to {max(last):.2f} of the time" if last else ""
        ax.set_title(told or "not measured yet", fontsize=11)
        ax.axhline(1, color=GREY, ls="--", lw=1.2)
        ax.set(
            xlabel="prompts per block",
            ylabel="step time, fast form / plain form",
            ylim=(0, 1.1),
            xlim=(0, None),
        )
        ax.legend(loc="lower left")
        return used

    def show_task(self, record: Record) -> None:
        """The time of one VTAB-sized task by method, on the machine of a record."""
        chosen, machine = record.settings, record.settings["machine"]
        seconds = {slug: bench_table.task_seconds(slug, record) for slug in record.values}
        order = sorted(seconds, key=seconds.get, reverse=True)
        slow, quick = order[0], order[-1]
        size = (
            f"{bench_table.TASK_IMAGES} images and {bench_table.TASK_EPOCHS} epochs at {bench.BASE}"
        )
        self.present(
            draw_times(seconds, order),
            evidence="measured",
            records=[record],
            caption=f"Time for one task of {size}, on {machine}.",
            how=f"Computed from measured steps (median of {chosen['repeats']} rounds, "
            f"batch {chosen['batch_size']}). "
            "Activations below the first trained block are cached, except in the concatenated "
            "form.",
            alt=f"Time for one task by method, from {NAMES[slow]} with {readable(seconds[slow])} "
            f"down to {NAMES[quick]} with {readable(seconds[quick])}: "
            f"{', '.join(f'{NAMES[slug]} {readable(seconds[slug])}' for slug in order)}.",
        )


def where(record: Record) -> str:
    """Machine and batch of a record, for a caption."""
    chosen = record.settings
    return f"On {chosen['machine']}, batch {chosen['batch_size']}, {chosen['repeats']} rounds."


def macs(side: Side) -> Record:
    """Record of the operations of ViT-Base/16 with a method."""
    return bench.forward_macs(bench.BASE, side, BATCH)


def growth() -> dict[str, list[Record]]:
    """Records of VPT-Deep's operations by form, with no prompt and with COUNTS of them."""
    bare, trimmed = macs(Side("linear-probe", trims=False)), macs(Side("linear-probe"))
    plain, fast = [], []
    for count in progress(COUNTS, "counting prompts"):
        plain.append(
            macs(Side("vpt-deep", {"prompt_tokens": count, "form": "concatenate"}, trims=False))
        )
        fast.append(macs(Side("vpt-deep", {"prompt_tokens": count})))
    return {"concatenated": [bare, *plain], "keys and values": [trimmed, *fast]}


def compared_as(label: str) -> str:
    """The two things that a row of the bench compares, as "A / B"."""
    label = label.replace("cached over not", "cached / not cached").replace(
        "random start", "random"
    )
    return label.replace(", over ", " / ").replace(" over ", " / ")


def growth_told(counted: dict[str, list[Record]]) -> str:
    """The ends of the lines of `draw_counted` as text."""
    return "; ".join(
        f"{label} {found[1].values['macs'] / 1e9:.1f} to {found[-1].values['macs'] / 1e9:.1f}"
        for label, found in counted.items()
    )


def memory_told(memory: dict[str, Record], order: list[str]) -> str:
    """The memory and trained parameters of each method as text."""
    return "; ".join(
        f"{NAMES[slug]} {memory[slug].values['memory']['total'] / 2**30:.2f} with "
        f"{memory[slug].values['parameters'] / 1e6:.3f} million trained"
        for slug in order
    )


def draw_counted(ax: Axes, counted: dict[str, list[Record]]) -> None:
    """Operations by the number of prompts, a line a form."""
    for (label, records), color in zip(counted.items(), (ORANGE, BLUE), strict=True):
        ax.plot(
            [0, *COUNTS],
            [r.values["macs"] / 1e9 for r in records],
            "o-",
            color=color,
            label=label,
            ms=4,
        )
    bare = counted["concatenated"][0]
    ax.axhline(bare.values["macs"] / 1e9, color=GREY, ls="--", lw=1.2, label="bare network")
    ax.set(
        xlabel="prompts per block",
        ylabel="billion multiply-adds per image",
        ylim=(0, None),
        title=f"{COUNTS[-1]} prompts: "
        + " against ".join(f"{forms[-1].values['macs'] / 1e9:.1f}" for forms in counted.values()),
    )
    ax.legend(loc="lower right")


def draw_memory(memory: dict[str, Record], order: list[str]) -> Figure:
    """Bars of what a step must hold, and beside them the trained parameters as dots on a
    logarithmic axis."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 6.4), sharey=True, width_ratios=[3, 2])
    edge = [0.0] * len(order)
    for parts, color, label in (
        (["weights"], GREY, "weights"),
        (["gradients", "optimizer"], ORANGE, "gradients, Adam"),
        (["activations"], BLUE, "activations"),
    ):
        width = [
            sum(memory[slug].values["memory"][part] for part in parts) / 2**30 for slug in order
        ]
        left.barh([spelled(slug) for slug in order], width, left=edge, color=color, label=label)
        edge = [a + b for a, b in zip(edge, width)]
    left.set(xlabel="GiB, counted", xlim=(0, 1.12 * max(edge)))
    for y, total in enumerate(edge):
        left.text(total, y, f" {total:.2f}", va="center", fontsize=8)
    left.legend(loc="upper right", fontsize=8)
    fig.suptitle(f"{spelled(order[0])} needs least memory, {spelled(order[-1])} most", fontsize=12)
    trained = [memory[slug].values["parameters"] / 1e6 for slug in order]
    for y, value in enumerate(trained):
        right.plot([value] * bool(value), [y] * bool(value), "o", color=ORANGE, ms=6)
        right.text(
            1.4 * value or 0.012,
            y,
            f" {value:.3g}" if value else "only the head",
            va="center",
            fontsize=8,
        )
    right.set(xscale="log", xlim=(0.01, 1e3), xlabel="trained, millions (without head)")
    right.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    right.minorticks_off()
    for ax in (left, right):
        ax.grid(axis="y", visible=False)
    return fig


def draw_times(seconds: dict[str, float], order: list[str]) -> Figure:
    """Bars of the time of one task, one per method."""
    unit, size = ("hours", 3600) if max(seconds.values()) > 7200 else ("minutes", 60)
    fig, ax = plt.subplots(figsize=(7, 5.6))
    ax.barh(
        [spelled(slug) for slug in order],
        [seconds[slug] / size for slug in order],
        color=[GREY if slug == bench.PLAIN else BLUE for slug in order],
    )
    for y, slug in enumerate(order):
        ax.text(seconds[slug] / size, y, f" {readable(seconds[slug])}", va="center", fontsize=8)
    ax.set(xlabel=f"{unit} for one task", xlim=(0, 1.12 * max(seconds.values()) / size))
    ax.set_title(f"{spelled(order[0])} is fastest, {spelled(order[-1])} slowest")
    ax.grid(axis="y", visible=False)
    return fig


def spelled(slug: str) -> str:
    """A method's name as its authors write it."""
    return NAMES[slug].replace("E2VPT", "E²VPT")


def readable(seconds: float) -> str:
    """Seconds as seconds, minutes or hours."""
    unit, size = next(((u, s) for u, s in (("h", 3600), ("min", 60)) if seconds >= 2 * s), ("s", 1))
    return f"{seconds / size:.1f} {unit}"
