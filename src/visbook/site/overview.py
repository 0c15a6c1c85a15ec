"""Every method side by side: photographs, embedded tasks, what papers print, and what it costs."""

import functools
import html
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from visprompt.methods import method_class
from visprompt.papers import papers

from ..auditing.quoted import named_cells
from ..chapters import method_explorer, methods, real, real_findings
from ..chapters import small_and_real as two_legs
from ..pages.friendly import signed
from ..pages.plots import NAMES
from ..studies import bench_table
from ..studies.comparable import listed
from ..studies.statistics import fallen as below_half
from .compare import OTHERWISE, drawn_runs, key
from .tables import link

BASE = real_findings.BASE
TITLES = {  # of the photographs
    "cifar100": "CIFAR-100",
    "caltech101": "Caltech-101",
    "dtd10": "DTD (ten classes of textures)",
    "gtsrb": "GTSRB (traffic signs)",
    "ucmerced": "UC Merced (aerial views)",
}
TUNES, ADDS, LEAVES = "tunes the network", "adds to its layers", "leaves the network alone"
KINDS = (TUNES, ADDS, LEAVES)
PRINTED = {"VTAB mean of groups": "VTAB-1k", "FGVC mean": "FGVC"}  # columns of a ViT-B/16
WAYS = {"above": "above {}", "below": "below {}", "open": "not clearly different from {}"}
LIMITS = "One ViT-Tiny, images of 112 pixels, ten epochs"


@dataclass(frozen=True)
class Method:
    """What is known of one method of the study `real`.

    Attributes:
        runs: accuracy in percent by task (index) and seed (columns).
        fell: cells (task, seed) of runs below half of the best seed's accuracy.
        share: trained parameters without the head, in percent of the network's own.
        memory: GiB that a training step of ViT-B/16 must hold, counted.
        seconds: of such a step, measured; None where nothing is kept.
        drawn: mean accuracy on embedded tasks; None where it was not run there.
        printed: column of PRINTED -> accuracy with the link to its table.
        lead: points above BASE with its interval, and on which side of 0 that lies.
    """

    name: str
    slug: str
    kind: str
    runs: pd.DataFrame
    fell: tuple[tuple[str, int], ...]
    parameters: int
    share: float
    memory: float
    seconds: float | None
    drawn: float | None
    printed: dict[str, tuple[float, str]]
    lead: tuple[float, float, float] | None
    way: str

    @property
    def accuracy(self) -> float:
        """Over the tasks, each the mean over its seeds."""
        return float(self.runs.mean(axis=1).mean())

    @property
    def without(self) -> float:
        """Accuracy without the runs that fell."""
        fell = pd.DataFrame(False, self.runs.index, self.runs.columns)
        for task, seed in self.fell:
            fell.loc[task, seed] = True
        return float(self.runs.mask(fell).mean(axis=1).mean())


def kind_of(slug: str) -> str:
    """What a method does to the network, as the filter of the page calls it."""
    if slug in methods.PAGES["methods_adapters"][1]:
        return ADDS
    return TUNES if method_class(slug).trains_backbone or slug == "bias" else LEAVES


@functools.cache
def overview() -> tuple[Method, ...]:
    """The methods of the study `real` with kept runs on all its photographs, the most accurate
    first; empty where there are none."""
    frame = real.photographs()
    if not (frame.variant == BASE).any():
        return ()
    fell = [*frame[below_half(frame)].itertuples()]
    whole = frame[frame.variant == "Full fine-tuning"].record.iloc[0].values["parameters"]["method"]
    drawn, times = drawn_cells().mean(axis=1), step_seconds()
    found = []
    for name, gain in real_findings.gains(frame).items():
        part = frame[frame.variant == name]
        slug = part.record.iloc[0].settings["method"]
        parameters = round(part.record.map(lambda r: r.values["parameters"]["method"]).mean())
        counted = method_explorer.counts(slug, method_explorer.USUAL[0])
        _, tokens, classes = method_explorer.USUAL
        found.append(
            Method(
                name=name,
                slug=slug,
                kind=kind_of(slug),
                runs=part.pivot(index="task", columns="seed", values="test"),
                fell=tuple((row.task, row.seed) for row in fell if row.variant == name),
                parameters=parameters,
                share=100 * parameters / whole,
                memory=method_explorer.cost_at(counted, tokens, classes)["memory"] / 2**30,
                seconds=times.get(slug),
                drawn=drawn.get(name),
                printed=printed_means().get(slug, {}),
                lead=gain and gain.here,
                way=two_legs.way(gain),
            )
        )
    return tuple(sorted(found, key=lambda one: -one.accuracy))


def drawn_cells() -> pd.DataFrame:
    """Mean accuracy by variant and task of the study `benchmark`, over the seeds that all cells
    have, of the tasks that all its methods have."""
    frame = drawn_runs("benchmark")
    if not len(frame):
        return pd.DataFrame()
    cells = frame.pivot_table("test", ["variant", "task"], "seed").dropna(axis=1)
    means = cells.mean(axis=1).unstack().dropna(axis=1)
    means.attrs["seeds"] = cells.shape[1]
    return means


def step_seconds() -> dict[str, float]:
    """Slug -> median seconds of a training step of ViT-B/16, from the bench."""
    kept = [r for r in bench_table.kept_records() if r.settings["name"] == "methods"]
    kept = [r for r in kept if r.settings.get("backbone") == method_explorer.USUAL[0]]
    sides = kept[0].values if kept else {}
    return {
        slug: statistics.median(side["seconds"])
        for slug, side in sides.items()
        if slug in NAMES and side.get("seconds")
    }


@functools.cache
def printed_means() -> dict[str, dict[str, tuple[float, str]]]:
    """Slug -> column of PRINTED -> what papers print of a supervised ViT-B/16, and the first table
    that has it. iVPT's SPT is another method of these letters."""
    slugs = OTHERWISE | {key(slug): slug for slug in NAMES}
    frame, found = named_cells(), {}
    frame = frame[(frame.measure == "accuracy") & (frame.backbone == "ViT-B/16")]
    frame = frame[(frame.pretraining == "supervised") & (frame.setting == "")]
    for row in frame[frame.data.isin(PRINTED)].itertuples():
        slug = slugs.get(key(row.method))
        if slug and row.cell.amount is not None:
            column = found.setdefault(slug, {})
            column.setdefault(PRINTED[row.data], (row.cell.amount.value, row.artifact))
    return found


def named(found: Iterable[Method], accuracy: bool = True) -> str:
    """Methods in a sentence, each with its accuracy."""
    texts = [f"{one.name} ({one.accuracy:.1f} %)" if accuracy else one.name for one in found]
    return html.escape(listed(texts, 20)) if texts else "none"


def be(found: Sequence) -> str:
    """The verb behind `named`."""
    return "are" if len(found) > 1 else "is"


def set_up() -> str:
    """How the photographs were run, in a sentence."""
    one = overview()[0].runs
    tasks = listed([TITLES.get(task, task) for task in one.index], 20)
    return (
        f"We trained {len(overview())} methods with one protocol on {len(one)} sets of "
        f"photographs, {one.shape[1]} seeds each: {tasks}"
    )


def fallen() -> str:
    """Which methods had fallen runs, and how many, in a sentence."""
    fell = [
        f"{one.name} in {len(one.fell)} of {one.runs.size} runs ({one.without:.1f} % without)"
        for one in overview()
        if one.fell
    ]
    return html.escape(listed(fell, 20)) if fell else "no method"


def proposes(slug: str) -> list[str]:
    """The methods that a paper proposes, as tables name them."""
    return papers()[slug].get("proposes", [])


def spread_of(above: Sequence[Method], base: Method) -> str:
    """On which photographs the methods above the base lead most and least, in a sentence."""
    if not above:
        return ""
    leads = sum(one.runs.mean(axis=1) for one in above) / len(above) - base.runs.mean(axis=1)
    most, least = (
        f"{signed(leads[task])} points on {TITLES.get(task, task)}"
        for task in (leads.idxmax(), leads.idxmin())
    )
    return f"Their average lead over it is largest, {most}, and smallest, {least}."


def ahead(one: Method, base: Method) -> str:
    """On how many photographs a method's mean is above the base's, where most, and without that."""
    leads = one.runs.mean(axis=1) - base.runs.mean(axis=1)
    most = leads.idxmax()
    return (
        f"ahead on {(leads > 0).sum()} of {len(leads)} sets: {signed(leads[most])} points on "
        f"{TITLES.get(most, most)}, {signed(leads.drop(most).mean())} on average over the others"
    )


def finding() -> str:
    """What was found across the papers, as the HTML inside of a paragraph, which breaks it in
    three: what is above the base, the papers' own methods, and what does and does not follow."""
    found, proposed = overview(), {name for slug in papers() for name in proposes(slug)}
    base = next(one for one in found if one.name == BASE)
    above = [one for one in found if one.way == "above"]
    ways = {
        way: f"{named(part, way != 'above')} {be(part)}"
        for way in ("above", "open", "below")
        for part in [[one for one in found if one.name in proposed and one.way == way]]
    }
    alone = [one for one in above if one.kind == LEAVES]
    said = [
        f"<strong>{html.escape(set_up())}.</strong> Brackets give the mean test accuracy. "
        f"{named(above)} are more accurate than {BASE} ({base.accuracy:.1f} %), "
        f"with intervals that exclude 0.",
        spread_of(above, base),
        f"</p><p>Of the methods that the papers propose, {ways['above']} clearly above it; "
        f"{ways['open']} not clearly different; {ways['below']} below it.",
        f"Training collapsed for {fallen()}.",
        f"</p><p><strong>What follows:</strong> in this setting {len(above) - len(alone)} of these "
        f"{len(above)} methods change the network or add to its layers.",
        *(f"{one.name} does not; it is {ahead(one, base)}." for one in alone),
        f"<strong>What does not follow:</strong> anything about the papers' own networks. The "
        f"setting is small: {LIMITS[0].lower()}{LIMITS[1:]}.",
    ]
    return " ".join(said)


def beside_base(slug: str) -> str:
    """How the methods that a paper proposes did on photographs, as HTML; "" where none was run."""
    found = {one.name: one for one in overview()}
    words = {way: word.format(BASE) for way, word in WAYS.items()}
    said = [
        f"{one.name} {one.accuracy:.1f} % ({words[one.way]})"
        for name in proposes(slug)
        if (one := found.get(name)) and one.way
    ]
    if not said:
        return ""
    base = found[BASE].accuracy
    return f"{html.escape(listed(said))}; {BASE} {base:.1f} %."


def printed_cell(one: Method, column: str, results: dict) -> str:
    """What papers print of a method in a column, linked to the table."""
    if column not in one.printed:
        return "–"
    value, artifact = one.printed[column]
    return link(artifact, f"{value:.1f}", results)
