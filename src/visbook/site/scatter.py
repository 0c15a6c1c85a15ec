"""The picture of all methods: accuracy against what they cost, as SVG that follows the theme."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .overview import BASE, LEAVES, TUNES, Method

WIDTH, HEIGHT = 700, 420
LEFT, RIGHT, TOP, BOTTOM = 52, 676, 12, 372
LETTER, LINE = 7.6, 13  # px of a label
LOOKS = {TUNES: "vp-tunes", LEAVES: "vp-leaves"}  # CSS class by kind, else "vp-adds"


@dataclass(frozen=True)
class Axis:
    """What stands along the picture.

    Attributes:
        field: of `Method`.
        ticks: values with a mark; the first and the last bound a logarithmic axis.
        label: what it is.
    """

    field: str
    ticks: tuple[float, ...]
    label: str
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """x of a value; 0 on a logarithmic axis lies left of its first tick."""
        low, high = self.ticks[0], self.ticks[-1]
        if not self.logarithmic:
            return LEFT + (RIGHT - LEFT) * (value - low) / (high - low)
        if value <= 0:
            return LEFT + 14
        share = (math.log(max(value, low)) - math.log(low)) / (math.log(high) - math.log(low))
        return LEFT + 60 + (RIGHT - LEFT - 60) * share


AXES = {
    "share": Axis("share", (0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
                  "trained parameters without the head, % of the network's", True),
    "memory": Axis("memory", (0, 2, 4, 6, 8, 10), "memory of a training step of ViT-B/16, GiB"),
    "seconds": Axis("seconds", (0, 1, 2, 3, 4, 5, 6), "time of a training step of ViT-B/16, s"),
}  # fmt: skip


def picture(found: Sequence[Method], axis: Axis, task: str = "", hidden: bool = False) -> str:
    """All methods as one SVG: a large mark is a mean, a small one a seed, a cross a seed with a
    run that fell.

    Args:
        task: the one whose accuracies are shown; "" for the mean of all.
    """
    shown = [one for one in found if getattr(one, axis.field) is not None]
    rows = {one.name: seeds(one, task) for one in shown}
    lowest = min(value for values in rows.values() for value, _ in values)
    highest = max(value for values in rows.values() for value, _ in values)
    low, high = 5 * math.floor(lowest / 5), 5 * math.ceil(highest / 5)

    def up(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    points = {
        one.name: (axis.place(getattr(one, axis.field)), up(mean(rows[one.name]))) for one in shown
    }
    places = labels(points, [(points[name][0], up(v)) for name, vs in rows.items() for v, _ in vs])
    marks = [
        method_marks(one, points[one.name], [(up(v), f) for v, f in rows[one.name]], places)
        for one in shown
    ]
    best = max(shown, key=lambda one: mean(rows[one.name]))
    told = (
        f"Accuracy from {low} to {high} % against {axis.label}, a mark a method. Highest: "
        f"{best.name}, {mean(rows[best.name]):.1f} %; {BASE}: {mean(rows[BASE]):.1f} %."
    )
    return (
        f'<svg class="vp-scatter" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" data-x="{axis.field}" '
        f'data-task="{html.escape(task)}"{" hidden" if hidden else ""}>'
        f"<title>{html.escape(told)}</title>{frame(axis, low, high, up)}{''.join(marks)}</svg>"
    )


def seeds(one: Method, task: str) -> list[tuple[float, bool]]:
    """(accuracy, whether a run of it fell) of every seed."""
    runs = one.runs.loc[[task]] if task else one.runs
    fell = {seed for where, seed in one.fell if where in runs.index}
    return [(float(runs[seed].mean()), seed in fell) for seed in runs]


def mean(values: Sequence[tuple[float, bool]]) -> float:
    """Of the accuracies of the seeds."""
    return sum(value for value, _ in values) / len(values)


def frame(axis: Axis, low: int, high: int, up) -> str:
    """Lines, ticks and words around the marks."""
    parts = []
    for value in range(low, high + 1, 10 if high - low > 40 else 5):
        y = up(value)
        parts.append(f'<path class="vp-grid" d="M{LEFT} {y:.0f}H{RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{value}</text>')
    ticks = [(axis.place(tick), f"{tick:g}") for tick in axis.ticks]
    if axis.logarithmic:
        ticks.append((axis.place(0), "0"))
    parts += [
        f'<text x="{x:.0f}" y="{BOTTOM + 16}" text-anchor="middle">{text}</text>'
        for x, text in ticks
    ]
    label, middle = html.escape(axis.label), (LEFT + RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text transform="translate(13 {(TOP + BOTTOM) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">test accuracy, %</text>'
    )
    return "".join(parts)


def method_marks(one: Method, point, dots, places) -> str:
    """The marks of one method and its name."""
    x, y = point
    parts = [
        f'<path class="vp-fell" d="M{x - 3:.0f} {v - 3:.0f}l6 6m0-6l-6 6"/>'
        if fell
        else f'<circle cx="{x:.0f}" cy="{v:.0f}" r="2"/>'
        for v, fell in dots
    ]
    shape = {
        "vp-tunes": f'<rect x="{x - 5:.0f}" y="{y - 5:.0f}" width="10" height="10"/>',
        "vp-leaves": f'<circle class="vp-mean" cx="{x:.0f}" cy="{y:.0f}" r="5"/>',
    }.get(look := LOOKS.get(one.kind, "vp-adds"), f'<path d="M{x:.0f} {y - 6:.0f}l6 11h-12z"/>')
    left, middle = places[one.name]
    if abs(middle - y) > LINE:
        end = left if left > x else left + LETTER * len(one.name)  # not through the name
        parts.append(f'<path class="vp-lead" d="M{x:.0f} {y:.0f}L{end:.0f} {middle:.0f}"/>')
    name = html.escape(one.name)
    text = f'<text x="{left:.0f}" y="{middle + 4:.0f}">{name}</text>'
    return f'<g class="{look}" data-slug="{one.slug}">{"".join(parts)}{shape}{text}</g>'


def labels(points: dict[str, tuple[float, float]], dots) -> dict[str, tuple[float, float]]:
    """Name -> (left, middle) of its label: beside its mark where nothing else lies, else as near
    as it can."""
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points.values()]
    small = [(x - 2, y - 2, x + 2, y + 2) for x, y in dots]
    found = {}
    for name, (x, y) in sorted(points.items(), key=lambda item: item[1][1]):
        width = LETTER * len(name)
        around = [
            (left, y + shift)
            for shift in sorted(range(-90, 91, 6), key=abs)
            for left in (x + 9, x - 9 - width)
        ]
        boxes = [(left, m - LINE / 2, left + width, m + LINE / 2) for left, m in around]
        cost = [overlap(box, taken, small) + 0.02 * abs(box[1] + LINE / 2 - y) for box in boxes]
        at = cost.index(min(cost))
        found[name] = around[at]
        taken.append(boxes[at])
    return found


def overlap(box, taken, small) -> float:
    """How much a label hides: 10 for a mark or another label, 1 for a seed, 100 for leaving."""
    left, top, right, bottom = box

    def hit(other) -> bool:
        return left < other[2] and other[0] < right and top < other[3] and other[1] < bottom

    outside = left < LEFT or right > WIDTH or top < 0 or bottom > BOTTOM + 4
    return 100 * outside + 10 * sum(map(hit, taken)) + sum(map(hit, small))
