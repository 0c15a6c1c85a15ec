"""The page "Which method?" and the front page's finding: pictures, a table, sentences of advice."""

import functools
import html
from collections.abc import Sequence
from pathlib import Path

from visprompt import manifests, paths

from ..chapters import method_explorer, methods
from ..chapters import small_and_real as two_legs
from ..chapters.real import photographs
from ..pages.friendly import spread
from ..pages.judging import badge
from ..studies.comparable import listed
from ..studies.statistics import gain
from . import overview
from .overview import ADDS, BASE, KINDS, PRINTED, TITLES, Method, named
from .scatter import AXES, LOOKS, picture
from .tables import table

PROBE = "Linear probe"
NOTHING = "<p>No runs on photographs are kept, so there is nothing to compare.</p>"


def to(page: str, words: str, anchor: str = "") -> str:
    """A link to a notebook's page; the words alone where the book has no such page."""
    if page not in manifests.load_yaml(paths.MANIFESTS / "notebooks.yaml"):
        return words
    return f'<a href="notebooks/{page}.html{anchor}">{words}</a>'


def key() -> str:
    """What the marks of the picture mean."""
    marks = {"vp-tunes": "■", "vp-adds": "▲", "vp-leaves": "●"}
    looks = {kind: LOOKS.get(kind, "vp-adds") for kind in KINDS}
    words = "".join(
        f'<span class="{look}">{marks[look]} <b>{kind}</b></span>' for kind, look in looks.items()
    )
    return (
        f'<p class="vp-how vp-key">{words} Large mark: mean; small dots: the seeds; '
        f"cross: a seed with a collapsed run.</p>"
    )


def found(results: dict, root: Path) -> str:
    """The front page's paragraph and picture across the papers."""
    if not (every := overview.overview()):
        return NOTHING
    return (
        f'<section class="vp-finding"><p>{badge("trend")} {overview.finding()}</p>'
        f'<div class="vp-table" tabindex="0">{picture(every, AXES["share"])}</div>{key()}'
        f'<p class="vp-ways"><a href="which-method.html">Which method for my data?</a> · '
        f"{to('real_images', 'Every run behind this')}</p></section>"
    )


def which(results: dict, root: Path) -> str:
    """Pictures of all methods, one a kind of cost and task, and the table; a script adds the
    budget."""
    if not (every := overview.overview()):
        return NOTHING
    tasks = ["", *every[0].runs.index]
    drawn = "".join(
        picture(every, axis, task, hidden=bool(task) or axis.field != "share")
        for task in tasks
        for axis in AXES.values()
    )
    head = ["Method", "All photographs, %", f"Above {BASE} on all, points"]
    head += [TITLES.get(task, task) for task in tasks[1:]]
    head += ["Embedded tasks, %", *(f"{name}, ViT-B, printed" for name in PRINTED.values())]
    head += ["Trained, % of the network", "Memory, GiB", "Step, s", "Collapsed runs"]
    kinds = "".join(f"<option>{kind}</option>" for kind in KINDS)
    names = "".join(
        f'<option value="{task}">{html.escape(TITLES.get(task, task) or "all, the mean")}</option>'
        for task in tasks
    )
    return (
        f'<div class="vp-which"><template><select name="kind"><option value="">anything</option>'
        f'{kinds}</select><select name="task">{names}</select></template>'
        f'<div class="vp-table" tabindex="0">{drawn}</div>{key()}'
        f"{table(head, [row(one, results) for one in every], kind='vp-sortable')}</div>"
    )


def row(one: Method, results: dict) -> list[str]:
    """A line of the table; its first cell carries what the script compares with a budget."""
    page = {slug: page for slug, _, page in methods.by_idea()}[one.slug]
    seconds = "" if one.seconds is None else f"{one.seconds:.3f}"
    name = (
        f'<span data-slug="{one.slug}" data-kind="{one.kind}" data-share="{one.share:.4f}" '
        f'data-memory="{one.memory:.3f}" data-seconds="{seconds}">'
        f"{to(page, html.escape(one.name), f'#method-{one.slug}')}</span>"
    )
    return [
        name,
        f"{one.accuracy:.1f}",
        "–" if one.lead is None else spread(*one.lead),
        *(f"{value:.1f}" for value in one.runs.mean(axis=1)),
        "–" if one.drawn is None else f"{one.drawn:.1f}",
        *(overview.printed_cell(one, column, results) for column in PRINTED.values()),
        f"{one.share:.2g}" if one.share < 99 else "100",
        f"{one.memory:.1f}",
        "–" if one.seconds is None else f"{one.seconds:.2g}",
        f"{len(one.fell)} of {one.runs.size}",
    ]


def far_from_imagenet(every: Sequence[Method], base: Method) -> str:
    """The three best methods of at most 1 % on the task where frozen features help least; "" where
    no linear probe was run."""
    on = {one.name: one.runs.mean(axis=1) for one in every}
    if PROBE not in on:
        return ""
    task = str(on[PROBE].idxmin())
    small = sorted((one for one in every if one.share <= 1), key=lambda one: -on[one.name][task])
    best = [f"{one.name} ({on[one.name][task]:.1f} %)" for one in small[:3]]
    return (
        f"<strong>If your images are far from ImageNet, look at "
        f"{html.escape(TITLES.get(task, task))}:</strong> there the {PROBE.lower()} is weakest "
        f"({on[PROBE][task]:.1f} %). Of the methods that train at most 1 %, "
        f"{html.escape(listed(best, 20))} have the highest test accuracy on it; {BASE} has "
        f"{on[base.name][task]:.1f} %. Limit: one data set, on which no difference among the three "
        f"was tested. Choose another under <em>Photographs</em>, above the picture."
    )


@functools.cache
def against(best: str) -> dict[str, str]:
    """Method -> on which side of `best` it lies on photographs, by the rule for trends."""
    frame = photographs()
    return {
        name: two_legs.way(gain(frame, name, best))
        for name in dict.fromkeys(frame.variant)
        if name != best
    }


def advice(results: dict, root: Path) -> str:
    """Four sentences, each with its limit."""
    if not (every := overview.overview()):
        return ""
    best, base = every[0], next(one for one in every if one.name == BASE)
    beside = [one for one in every[1:] if against(best.name)[one.name] == "open"]
    small = [one for one in (best, *beside) if one.share <= 1 and one.way == "above"]
    told = "clearly above that of every other method"
    if beside:
        told = f"though {named(beside, False)} cannot be told from it"
    alone = [one for one in every if one.kind not in (overview.TUNES, ADDS)]
    least = [one for one in alone if one.way in ("open", "above") and one.share <= base.share]
    smallest = min([base, *least], key=lambda one: (one.share, -one.accuracy))
    leading = [one for one in alone if one.way == "above" and one is not smallest]
    way = overview.WAYS[smallest.way or "open"].format(BASE)
    said = [
        f"<strong>If you may change the network, begin with {named(small)}: at most 1 % is "
        f"trained.</strong> "
        f"{html.escape(best.name)} has the highest mean, {told}. Limit: a ViT-Tiny. On a ViT-B the "
        f"papers print {printed_of([*small, base])} on VTAB-1k.",
        far_from_imagenet(every, base),
        f"<strong>If the network must stay as it is, begin with {html.escape(smallest.name)} "
        f"({smallest.accuracy:.1f} %, {smallest.share:.2g} % trained) or {BASE}.</strong> "
        f"On average {html.escape(smallest.name)} is {way}; it is "
        f"{overview.ahead(smallest, base)}. Of the others that leave the network alone, "
        f"{named(leading, False)} {overview.be(leading)} clearly above {BASE}. Limit: "
        f"{overview.LIMITS.lower().replace('vit-tiny', 'ViT-Tiny')}.",
        f"<strong>Train more than one seed, and look at validation.</strong> Training collapsed "
        f"for {overview.fallen()}; the learning rate had been chosen on another seed. Limit: "
        f"{base.runs.size} runs per method say little about how often.",
    ]
    return f"<ol>{''.join(f'<li>{sentence}</li>' for sentence in filter(None, said))}</ol>"


def printed_of(found: list[Method]) -> str:
    """What papers print of some methods on VTAB-1k, where they do."""
    pairs = [(one.name, one.printed.get(PRINTED["VTAB mean of groups"])) for one in found]
    return html.escape(listed([f"{name} {cell[0]:.1f} %" for name, cell in pairs if cell], 20))


def costs(results: dict, root: Path) -> str:
    """What the columns of costs are of."""
    _, tokens, classes = method_explorer.USUAL
    return (
        f"Memory is counted for a batch of {method_explorer.BATCH} images with {tokens} prompts "
        f"and {classes} classes."
    )


def embedded(results: dict, root: Path) -> str:
    """Which tasks and how many seeds the column of embedded tasks is over."""
    cells = overview.drawn_cells()
    tasks = listed(list(cells.columns), 20)
    return f"{tasks}, {cells.attrs['seeds']} seeds each" if len(cells) else tasks


def seeds(results: dict, root: Path) -> str:
    """How many seeds the accuracies on photographs are means over."""
    return f"{every[0].runs.shape[1]} seeds" if (every := overview.overview()) else "the seeds"


MAKERS = {
    "found": found,
    "which": which,
    "advice": advice,
    "costs-of": costs,
    "embedded-of": embedded,
    "seeds-of": seeds,
}
