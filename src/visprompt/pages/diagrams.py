"""What the methods chapter shows: one picture a method, all in one style, and the settings with their reasons.

The file is long because it holds one recipe a picture; each recipe is short and uses the words of `Sketch`.
A recipe's docstring is the picture's alternative text. Lengths are inches of a page 7 inches, or 700 pixels, wide.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle, RegularPolygon

from ..errors import choose
from ..methods import METHODS
from . import plots

WIDTH = 7.0
INK, EDGE, FROZEN, PATCH = "#1d252b", "#5b6770", "#eef2f6", "#b4c0ca"
TRAINED, COMPUTED, CLASS = plots.PALETTE["ap"], "#fbdcc4", "#0072b2"
GROUPS = [("o", "#009e73"), ("^", "#cc79a7"), ("D", "#56b4e9")]  # clusters of classes: marker and colour
KEY = {
    "trained": "trained",
    "frozen": "frozen",
    "class": "class token",
    "patch": "patch token",
    "computed": "computed prompt",
    "dropped": "not used",
}
TOKEN, STEP = 0.16, 0.2
# The network scene, left to right: stem, then a column of tokens before each of three blocks and behind the last.
STEM, COLUMNS, BLOCKS, HEAD = 0.94, (1.4, 2.68, 4.1, 5.38), (1.97, 3.25, 4.67), 6.1

RECIPES: dict[str, Callable[[], Figure]] = {}


def picture(name: str):
    """Enter a recipe under a method's slug, or under the id of the artifact it is the counterpart of."""

    def enter(recipe):
        RECIPES[name] = recipe
        return recipe

    return enter


def draw(name: str) -> Figure:
    """The picture of a method, or of another entry of `RECIPES`. Raises: BadInput: there is no such picture."""
    return RECIPES[choose("picture", name, RECIPES)]()


def alt(name: str) -> str:
    """What there is to see on a picture, in words."""
    return " ".join(inspect.getdoc(RECIPES[choose("picture", name, RECIPES)]).split())


class Sketch:
    """A white canvas and the few things drawn on it; places are (x, y) of a thing's centre, in inches."""

    def __init__(self, height: float):
        self.figure = Figure(figsize=(WIDTH, height), facecolor="white", layout="none")
        self.ax = self.figure.add_axes([0, 0, 1, 1])
        self.ax.set(xlim=(0, WIDTH), ylim=(0, height))
        self.ax.axis("off")
        self.ax.add_patch(Rectangle((0, 0), WIDTH, height, fc="white", ec="none", gid="canvas"))
        self.seen = set()

    def finish(self) -> Figure:
        """Add the key of what was used, and hand over the figure."""
        used = [kind for kind in KEY if kind in self.seen]
        widths = [0.35 + 0.077 * len(KEY[kind]) for kind in used]
        x = (WIDTH - sum(widths)) / 2
        for kind, width in zip(used, widths):
            self.token(x + 0.1, 0.15, kind)
            self.text(x + 0.24, 0.11, KEY[kind], ha="left", va="baseline")
            x += width
        return self.figure

    def text(self, x, y, words, size=9, color=INK, ha="center", **more):
        more = {"va": "center", "linespacing": 1.15, **more}
        self.ax.text(x, y, words, fontsize=size, color=color, ha=ha, **more)

    def box(self, x, y, width, height, words="", trained=False, **more):
        """A layer, a block or a step: grey when frozen, in the accent colour when trained."""
        self.seen.add("trained" if trained else "frozen")
        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2 + 0.04, y - height / 2 + 0.04),
                width - 0.08,
                height - 0.08,
                boxstyle="round,pad=0.04",
                fc=TRAINED if trained else FROZEN,
                ec=EDGE,
                lw=1,
                zorder=2,
            )
        )
        self.text(x, y, words, zorder=4, **more)

    def frame(self, x, y, width, height):
        """A dotted line around things that belong together."""
        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle="round,pad=0.02",
                fc="none",
                ec=EDGE,
                lw=0.9,
                ls=(0, (1, 2)),
                zorder=1,
            )
        )

    def token(self, x, y, kind, size=TOKEN):
        """One token, or one entry of a key."""
        self.seen.add(kind)
        color = {"trained": TRAINED, "frozen": FROZEN, "class": CLASS, "patch": PATCH, "computed": COMPUTED}
        line = {"trained": TRAINED, "computed": TRAINED, "class": CLASS}.get(kind, EDGE)
        self.ax.add_patch(
            Rectangle(
                (x - size / 2, y - size / 2),
                size,
                size,
                fc=color.get(kind, "white"),
                ec=line,
                lw=0.9,
                ls=(0, (2, 1.5)) if kind == "dropped" else "-",
                zorder=3,
            )
        )

    def stack(self, x, top, kinds, step=STEP):
        """Tokens below each other; returns their places."""
        places = [(x, top - row * step) for row in range(len(kinds))]
        for place, kind in zip(places, kinds):
            self.token(*place, kind)
        return places

    def arrow(self, start, end, color=EDGE, dashed=False, bend=0.0, width=1.1, head="-|>"):
        self.ax.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle=head,
                mutation_scale=8,
                lw=width,
                color=color,
                shrinkA=0,
                shrinkB=0,
                ls=(0, (2, 1.5)) if dashed else "-",
                connectionstyle=f"arc3,rad={bend}",
                zorder=2.5,
            )
        )

    def path(self, *points, color=EDGE, dashed=False, width=1.1, arrow=True):
        """A line through points, with an arrowhead at its end."""
        for first, second in zip(points, points[1:]):
            last = arrow and second == points[-1]
            self.arrow(first, second, color, dashed, width=width, head="-|>" if last else "-")

    def sign(self, x, y, words="+", trained=False, radius=0.1, size=10):
        """A small circle: a sum, a product, a gate."""
        if trained:
            self.seen.add("trained")
        self.ax.add_patch(Circle((x, y), radius, fc=TRAINED if trained else "white", ec=EDGE, lw=1, zorder=3))
        self.text(x, y - 0.005, words, size=size, zorder=4)

    def bottleneck(self, x, y, up_down=0.3, length=0.62):
        """Two trained wedges: narrower, then wide again."""
        self.seen.add("trained")
        wide, narrow, half = up_down / 2, up_down / 5, length / 2
        for sign in (-1, 1):
            corners = [(x + sign * half, y - wide), (x + sign * half, y + wide), (x + sign * 0.03, y + narrow)]
            corners.append((x + sign * 0.03, y - narrow))
            self.ax.add_patch(Polygon(corners, fc=TRAINED, ec=EDGE, lw=1, zorder=3))

    def image(self, x, y, size=0.62, frame=None):
        """A small landscape; `frame` shows a trained "border" or trained pixels ("full") instead of or on it."""
        left, low = x - size / 2, y - size / 2
        whole = dict(lw=0.9, ec=EDGE, zorder=2)
        self.ax.add_patch(Rectangle((left, low), size, size, fc="white" if frame else "#e4ebf1", **whole))
        if frame == "full":
            shades = np.random.default_rng(0).uniform(0.25, 1, (6, 6))
            for (row, column), shade in np.ndenumerate(shades):
                corner = left + column * size / 6, low + row * size / 6
                self.ax.add_patch(Rectangle(corner, size / 6, size / 6, fc=TRAINED, alpha=shade, lw=0, zorder=3))
        elif frame == "border":
            self.ax.add_patch(Rectangle((left, low), size, size, fc=TRAINED, **whole))
            self.ax.add_patch(Rectangle((left + size / 6, low + size / 6), size / 1.5, size / 1.5, fc="white", **whole))
        else:
            hill = np.array([(0, 0), (0, 0.25), (0.35, 0.62), (0.6, 0.3), (0.78, 0.45), (1, 0.2), (1, 0)])
            self.ax.add_patch(Polygon(hill * size + (left, low), fc="#9fb0bd", lw=0, zorder=2))
            self.ax.add_patch(Circle((left + 0.75 * size, low + 0.76 * size), 0.1 * size, fc="#c9b458", lw=0, zorder=2))
        if frame:
            self.seen.add("trained")

    def outline(self, x, y, color):
        """A thick line around a token."""
        self.ax.add_patch(Rectangle((x - 0.1, y - 0.1), 0.2, 0.2, fc="none", ec=color, lw=1.9, zorder=4))

    def apart(self, start, end, color=EDGE):
        """A dashed line with bars at its ends: two things are pushed from each other."""
        self.arrow(start, end, color, dashed=True, head="|-|,widthA=0.2,widthB=0.2", width=0.9)

    def mark(self, x, y, group, size=7, hollow=False):
        """A sample of one of the class groups."""
        marker, color = GROUPS[group]
        self.ax.plot(x, y, marker, ms=size, mfc="white" if hollow else color, mec=color, mew=1.2, zorder=3)


# --- scenes that several pictures share


def network(
    s: Sketch, y, prompts=(None,) * 4, *, count=3, patches=4, trained=False, names=("0", "1", "L−1"), columns=COLUMNS
) -> dict:
    """Image, stem, three blocks, head, and the columns of tokens between them.

    Args:
        y: height of the middle.
        prompts: for each of the four columns None, a kind of token, or two: what came out, and what goes in.

    Returns:
        {"prompts": for each column the places of what goes in, "class", "patches", "top", "bottom"}.
    """
    count = count if any(prompts) else 0
    tall = (count + 1 + patches) * STEP + (0.08 if count else 0) + 0.08
    top = y + tall / 2 - STEP / 2
    rows = {"class": top - count * STEP - (0.08 if count else 0)}
    rows["patches"] = rows["class"] - STEP - 0.08
    found = {"prompts": [], "class": [], "patches": [], "top": top + STEP / 2, "bottom": top + STEP / 2 - tall}
    middle = rows["patches"] - STEP
    s.image(0.35, middle)
    s.arrow((0.66, middle), (0.71, middle), head="-")
    s.box(STEM, middle, 0.46, 0.7, "stem", trained=trained)
    for index, (x, kind) in enumerate(zip(columns, prompts, strict=True)):
        sides = kind if isinstance(kind, tuple) else (None, kind)
        shift = 0.11 if all(sides) else 0
        for side, each in zip((-1, 1), sides):
            places = s.stack(x + side * shift, top, [each] * count) if each else []
        found["prompts"].append(places)
        found["class"] += s.stack(x, rows["class"], ["trained" if trained and not index else "class"])
        found["patches"].append(s.stack(x, rows["patches"], ["patch"] * patches))
        before = BLOCKS[index - 1] + 0.25 if index else STEM + 0.23
        if index == 2 and names[2] == "L−1":
            s.text(before + 0.14, middle, "…", size=11)
            before += 0.26
        s.arrow((before, middle), (x - 0.1, middle))
        if index < 3:
            s.arrow((x + 0.1, middle), (BLOCKS[index] - 0.25, middle))
            s.box(BLOCKS[index], y, 0.5, max(tall, 1.3), f"block\n{names[index]}", trained=trained)
    end = HEAD - 0.26
    if names[2] != "L−1":
        s.text(end - 0.13, rows["class"], "…", size=11)
        end -= 0.22
    s.arrow((columns[3] + 0.1, rows["class"]), (end, rows["class"]), color=CLASS)
    s.box(HEAD, rows["class"], 0.52, 0.4, "head", trained=True)
    s.arrow((HEAD + 0.26, rows["class"]), (HEAD + 0.56, rows["class"]))
    return found


LAYERS = {
    "norm1": (0.42, "LN"),
    "qkv": (0.42, ""),
    "attention": (0.76, "attention"),
    "proj": (0.46, "proj"),
    "sum1": (0.2, ""),
    "norm2": (0.42, "LN"),
    "fc1": (0.42, "fc1"),
    "fc2": (0.42, "fc2"),
    "sum2": (0.2, ""),
}


def opened(s: Sketch, y: float, trained=(), room=None, left=0.12, right=WIDTH - 0.12, skip=1.0) -> dict[str, float]:
    """One block with its layers along a line at height y; returns the middles of layers, and of wires behind them.

    Args:
        trained: names of layers in the accent colour.
        room: more length for the wire behind a layer ("in" for the first wire).
    """
    room = room or {}
    wires = ["in", *LAYERS]
    gap = (right - left - sum(width for width, _ in LAYERS.values()) - sum(room.values())) / len(wires)
    x, at = left, {}
    for name in wires:
        width, words = LAYERS.get(name, (0, ""))
        at[name] = x + width / 2
        end = x + width
        wire = gap + room.get(name, 0)
        at[f"{name}>"] = end + wire / 2
        if name == "qkv":
            at["split"] = x - 0.1
            for part, shift in zip("QKV", (0.48, 0, -0.48)):
                s.box(at[name], y + shift, width, 0.36, part, trained=part in trained)
                s.arrow((x - 0.1, y + shift), (x, y + shift))
                s.arrow((end, y + shift), (end + wire, y + shift))
            s.path((x - 0.1, y + 0.48), (x - 0.1, y - 0.48), arrow=False)
        elif name.startswith("sum"):
            s.sign(at[name], y)
        elif name != "in":
            s.box(at[name], y, width, 1.32 if name == "attention" else 0.5, words, trained=name in trained)
        if name == "norm1":
            s.path((end, y), (end + wire - 0.1, y), arrow=False)
        elif name != "qkv":
            s.arrow((end, y), (end + wire, y))
        x = end + wire
    for start, name in ((left + 0.08, "sum1"), (at["sum1>"], "sum2")):
        s.path((start, y), (start, y + skip), (at[name], y + skip), (at[name], y + 0.1))
    s.frame((at["fc1"] + at["fc2"]) / 2, y, at["fc2"] - at["fc1"] + 0.54, 0.66)
    s.text((at["fc1"] + at["fc2"]) / 2, y + 0.45, "MLP")
    return at


def brace(s: Sketch, left, right, y, words):
    """A bracket below a stretch of the network, and what it says."""
    s.path((left, y + 0.08), (left, y), (right, y), (right, y + 0.08), arrow=False)
    s.text((left + right) / 2, y - 0.13, words)


@picture("vit")
def vit() -> Figure:
    """A frozen vision transformer: image, stem, tokens, blocks, and a trained head behind the class token. Below, one
    block opened: LayerNorm, projections to queries Q, keys K and values V, attention, output projection and a sum
    with what entered; then LayerNorm, an MLP of two layers and another sum."""
    s = Sketch(4.6)
    at = network(s, 3.55)
    y = 1.5
    opened(s, y, skip=0.85)
    for x, end in ((BLOCKS[1] - 0.25, 0.12), (BLOCKS[1] + 0.25, WIDTH - 0.12)):
        s.arrow((x, at["bottom"] - 0.02), (end, y + 0.95), dashed=True, head="-", width=0.8)
    return s.finish()


# --- baselines


@picture("linear-probe")
def linear_probe() -> Figure:
    """The image passes a frozen stem and frozen blocks; only the head behind the class token is trained. A bracket
    under all frozen parts says that their result is computed once and kept."""
    s = Sketch(2.3)
    at = network(s, 1.5)
    brace(s, 0.1, COLUMNS[3] + 0.1, at["bottom"] - 0.16, "never changes: computed once for each image, then kept")
    return s.finish()


@picture("full-finetune")
def full_finetune() -> Figure:
    """The same network with everything in the accent colour: stem, class token, every block and the head are
    trained."""
    s = Sketch(2.3)
    at = network(s, 1.5, trained=True)
    brace(s, STEM - 0.22, HEAD + 0.26, at["bottom"] - 0.16, "every weight is trained")
    return s.finish()


@picture("bias")
def bias() -> Figure:
    """One block opened. Each layer carries a small trained tab b, its shift; the tab of the key projection is hollow,
    because it changes no output."""
    s = Sketch(2.6)
    y = 1.5
    at = opened(s, y, skip=0.85)
    tabs = [(at[name], y - 0.27) for name in ("norm1", "proj", "norm2", "fc1", "fc2")]
    tabs += [(at["qkv"], y + shift - 0.2) for shift in (0.48, -0.48)]
    for x, low in tabs:
        s.token(x + 0.13, low, "trained", 0.18)
        s.text(x + 0.13, low - 0.005, "b")
    s.token(at["qkv"] + 0.13, y - 0.2, "dropped", 0.18)
    s.text(at["qkv"] + 0.13, y - 0.205, "b")
    s.seen.discard("dropped")
    s.text(at["proj"], y - 0.98, "dashed: the shift of the keys is trained too, and changes no output")
    return s.finish()


@picture("norm-tune")
def norm_tune() -> Figure:
    """One block opened, then the last LayerNorm and the head. Both LayerNorms of the block and the last one are
    trained: each has a scale gamma and a shift beta a channel. Attention, projections and MLP stay grey."""
    s = Sketch(2.55)
    y = 1.35
    at = opened(s, y, trained=("norm1", "norm2"), right=5.55)
    s.text(5.75, y, "…", size=11)
    s.box(6.13, y, 0.46, 0.5, "last\nLN", trained=True)
    s.arrow((5.85, y), (5.9, y))
    s.box(6.7, y, 0.46, 0.4, "head", trained=True)
    s.arrow((6.36, y), (6.47, y))
    for x in (at["norm1"], at["norm2"], 6.13):
        s.text(x, y - 0.4, "γ, β")
    return s.finish()


# --- adapters


@picture("lora")
def lora() -> Figure:
    """One block opened. Beside the frozen query and value projections runs a trained path of two wedges, A down to
    rank r and B up again; its result is added. Keys have none."""
    s = Sketch(3.1)
    y = 1.6
    at = opened(s, y, room={"norm1": 0.3, "qkv": 0.5}, skip=1.2)
    for level, way in ((0.48, 1), (-0.48, -1)):
        end, height = at["qkv>"], y + level + way * 0.38
        s.bottleneck(at["qkv"], height, 0.28, 0.42)
        s.path((at["split"], y + level), (at["split"], height), (at["qkv"] - 0.21, height))
        s.path((at["qkv"] + 0.21, height), (end, height), (end, y + level + way * 0.1))
        s.sign(end, y + level)
        s.text(at["qkv"] - 0.12, height + way * 0.23, "A")
        s.text(at["qkv"] + 0.12, height + way * 0.23, "B")
    s.text(at["attention"] + 0.75, y - 0.86, "A: D to r, B: r to D")
    return s.finish()


def beside(s: Sketch, start, end, y, low):
    """A trained bottleneck on a side path that leaves the wire and is added to it again."""
    middle = (start + end) / 2
    s.bottleneck(middle, low, 0.32, 0.46)
    s.path((start, y), (start, low), (middle - 0.23, low))
    s.path((middle + 0.23, low), (end, low), (end, y - 0.1))
    s.sign(end, y)


@picture("adapter")
def adapter() -> Figure:
    """One block opened. Behind the attention's projection, and again behind the MLP, the signal also takes a detour
    through two trained wedges, down to a few units and up again, and is added to itself before the skip connection
    joins."""
    s = Sketch(2.75)
    y = 1.5
    at = opened(s, y, room={"proj": 0.78, "fc2": 0.78}, skip=0.95)
    for name in ("proj", "fc2"):
        beside(s, at[f"{name}>"] - 0.35, at[f"{name}>"] + 0.31, y, y - 0.72)
        s.text(at[f"{name}>"] - 0.02, y - 1.03, "down, GELU, up")
    return s.finish()


@picture("adaptformer")
def adaptformer() -> Figure:
    """One block opened. Parallel to the frozen MLP, from behind its LayerNorm to behind its second layer, runs a
    trained bottleneck with a ReLU, whose result is multiplied by s and added. Attention has none."""
    s = Sketch(2.75)
    y = 1.5
    at = opened(s, y, room={"norm2": 0.15, "fc2": 0.3}, skip=0.95)
    start, end, low = at["norm2>"] - 0.08, at["fc2>"], y - 0.72
    s.bottleneck((start + end) / 2 - 0.1, low, 0.34, 0.72)
    s.path((start, y), (start, low), ((start + end) / 2 - 0.46, low))
    s.path(((start + end) / 2 + 0.26, low), (end, low), (end, y - 0.1))
    s.sign(end - 0.2, low, "s", radius=0.1)
    s.sign(end, y)
    s.text((start + end) / 2 - 0.1, low - 0.31, "down, ReLU, up")
    return s.finish()


@picture("ssf")
def ssf() -> Figure:
    """One block opened. On the wire behind every layer, LayerNorms included, sits a trained diamond, a scale and a
    shift of each channel. No path is added."""
    s = Sketch(2.6)
    y = 1.5
    at = opened(s, y, skip=0.85)
    places = [(at[f"{name}>"] - 0.02, y) for name in ("norm1", "proj", "norm2", "fc1", "fc2")]
    places[0] = (at["norm1>"] - 0.05, y)
    places += [(at["qkv>"], y + shift) for shift in (0.48, 0, -0.48)]
    for x, height in places:
        s.ax.add_patch(RegularPolygon((x, height), 4, radius=0.11, fc=TRAINED, ec=EDGE, lw=1, zorder=3.5))
    s.seen.add("trained")
    s.text(at["proj"], y - 0.98, "diamond: times γ, plus β, channel by channel")
    return s.finish()


# --- image and activation prompts


def perturbed(s: Sketch, x, y, frame, small=None, shown=""):
    """image + perturbation, side by side; with `small` the image shrinks into the frame first."""
    if small:
        s.image(x, y, 0.62, "border")
        s.image(x, y, small)
    else:
        s.image(x - 0.48, y)
        s.sign(x, y)
        s.image(x + 0.48, y, 0.62, frame)
    s.text(x, y - 0.5, shown)


@picture("vp")
def visual_prompt() -> Figure:
    """Above, image plus a trained perturbation of the same size goes through a frozen network to the trained head.
    Below, the three templates: every pixel is trained, only a frame of some width is trained, or the image is shrunk
    into the hole of a trained frame."""
    s = Sketch(3.1)
    y = 2.5
    s.image(0.5, y)
    s.sign(1.05, y)
    s.image(1.6, y, 0.62, "full")
    s.text(1.6, y + 0.45, "δ, one for all images")
    s.arrow((1.95, y), (2.35, y))
    s.box(2.6, y, 0.5, 0.7, "stem")
    for x, name in zip((3.35, 4.15, 5.25), ("0", "1", "L−1")):
        s.arrow((x - {"0": 0.5, "1": 0.54, "L−1": 0.42}[name], y), (x - 0.26, y))
        s.box(x, y, 0.52, 0.9, f"block\n{name}")
    s.text(4.62, y, "…", size=11)
    s.arrow((5.51, y), (5.9, y))
    s.box(6.16, y, 0.52, 0.4, "head", trained=True)
    s.arrow((6.42, y), (6.8, y))
    s.text(0.1, 1.62, "The templates:", ha="left")
    perturbed(s, 1.2, 1.05, "full", shown="add to every pixel")
    perturbed(s, 3.55, 1.05, "border", shown="add a frame of some width")
    perturbed(s, 5.7, 1.05, "border", 0.4, "shrink the image into a frame")
    return s.finish()


@picture("ap")
def activation_prompt() -> Figure:
    """In front of block 2 a trained tensor with one vector for each token, the class token's included, is added to
    the tokens; a bracket says that everything before it is computed once and kept. Below, the three kinds: sum,
    product entry by entry, and further tokens set beside the others."""
    s = Sketch(4.0)
    y = 2.85
    columns = (*COLUMNS[:2], COLUMNS[2] - 0.22, COLUMNS[3])
    at = network(s, y, names=("0", "1", "2"), columns=columns)
    x = columns[2] + 0.28
    for place in (at["class"][2], *at["patches"][2]):
        s.sign(x - 0.14, place[1], radius=0.06, size=8)
        s.token(x, place[1], "trained")
    s.text(x - 0.1, at["top"] + 0.2, "z + δ")
    brace(s, 0.1, columns[2] + 0.08, at["bottom"] - 0.16, "never changes: computed once for each image, then kept")
    s.text(0.1, 1.5, "The kinds:", ha="left")
    for left, words, sign in ((1.1, "add (AP)", "+"), (3.1, "product", "×"), (5.0, "concatenate", "")):
        places = s.stack(left, 1.5, ["class", *["patch"] * 3])
        if sign:
            for _, height in places:
                s.sign(left + 0.24, height, sign, radius=0.07, size=8)
            s.stack(left + 0.48, 1.5, ["trained"] * 4)
        else:
            s.stack(left + 0.48, 1.66, ["class", "trained", "trained", *["patch"] * 3])
            s.arrow((left + 0.12, 1.2), (left + 0.36, 1.2))
        s.text(left + 0.7, 1.2, words, ha="left")
    return s.finish()


# --- prompt tokens


def above(s: Sketch, at, words, columns=(0, 1, 2), rise=0.2):
    """Names of prompts over their columns."""
    for column, word in zip(columns, words):
        s.text(at["prompts"][column][0][0], at["top"] + rise, word)


DEEP = ("trained", ("dropped", "trained"), ("dropped", "trained"), "dropped")


def entering(s: Sketch, at, columns=(0, 1, 2), color=TRAINED):
    """Arrows from the prompts of a column into the block behind it."""
    for column in columns:
        x, row = at["prompts"][column][1]
        s.arrow((x + 0.1, row), (BLOCKS[column] - 0.25, row), color=color)


def leaving(s: Sketch, at, columns=(1, 2, 3), short=0.1):
    """Arrows from a block to the prompts that come out of it, with dots where blocks are left out."""
    row = at["prompts"][0][1][1]
    for column in columns:
        start = BLOCKS[column - 1] + 0.25
        if column == 2:
            s.text(start + 0.14, row, "…", size=11, color=TRAINED)
            start += 0.26
        s.arrow((start, row), (COLUMNS[column] - (0.1 if column == 3 else short), row), color=TRAINED)


@picture("vpt-shallow")
def vpt_shallow() -> Figure:
    """Three trained prompts join the class token and the patches in front of block 0. What comes out of a block for
    them enters the next one like every other token, so they travel through all blocks; behind the last they are not
    used."""
    s = Sketch(2.95)
    at = network(s, 1.55, ("trained", "computed", "computed", "dropped"))
    above(s, at, ["$P_0$", "$Z_1$", "$Z_{L-1}$", "$Z_L$"], range(4))
    entering(s, at)
    leaving(s, at)
    return s.finish()


@picture("vpt-deep")
def vpt_deep() -> Figure:
    """In front of every block three new trained prompts join the tokens. What came out of the block before for its
    prompts is dashed: it is not used."""
    s = Sketch(2.95)
    at = network(s, 1.55, DEEP)
    above(s, at, ["$P_0$", "$P_1$", "$P_{L-1}$"])
    entering(s, at)
    return s.finish()


@picture("gate-vpt")
def gate_vpt() -> Figure:
    """Trained prompts enter block 0. Over each block runs a second path for the prompts; behind the block a trained
    gate g mixes the prompts that came out with those that went in. Inside each block stands a trained temperature T
    that divides the attention scores."""
    s = Sketch(3.2)
    at = network(s, 1.55, ("trained", "computed", "computed", "dropped"))
    row, over = at["prompts"][0][1][1], at["top"] + 0.32
    entering(s, at)
    leaving(s, at, columns=(3,))
    for index in (0, 1):
        x, gate = COLUMNS[index], BLOCKS[index] + 0.44
        s.path((x, at["top"] + 0.04), (x, over), (gate, over), (gate, row + 0.11), color=TRAINED)
        s.path((BLOCKS[index] + 0.25, row), (gate - 0.11, row), color=TRAINED)
        s.sign(gate, row, "g", trained=True, radius=0.11, size=9)
        s.text((x + gate) / 2, over + 0.14, "1 − g")
    gate = BLOCKS[1] + 0.44
    s.text(gate + 0.2, row, "…", size=11, color=TRAINED)
    for x in BLOCKS:
        s.sign(x, at["bottom"] + 0.2, "T", trained=True, radius=0.12, size=9)
    return s.finish()


@picture("e2vpt")
def e2vpt() -> Figure:
    """Left, the prompts of a block as strips of segments: whole tokens and single segments that mattered least are
    struck out, dashed. Right, attention: tokens give queries, keys and values, the prompts keys and values; one
    further set of trained vectors joins both the keys and the values."""
    s = Sketch(3.3)
    rng = np.random.default_rng(1)
    s.text(1.3, 3.12, "prompts, after pruning")
    for row in range(6):
        gone = row in (2, 4)
        for segment in range(8):
            out = gone or rng.random() < 0.4
            s.token(0.62 + segment * 0.19, 2.78 - row * 0.24, "dropped" if out else "trained", 0.17)
        if gone:
            s.path((0.48, 2.78 - row * 0.24), (2.1, 2.78 - row * 0.24), arrow=False)
    s.text(1.3, 1.1, "dashed segments are masked,\nstruck-out tokens removed;\nthen training starts again")
    s.arrow((2.25, 2.18), (2.95, 1.75), color=TRAINED)
    s.text(3.1, 3.12, "tokens")
    s.stack(3.1, 2.86, ["class", *["patch"] * 3])
    s.stack(3.1, 1.94, ["trained", "trained"])
    for height, part in ((2.72, "Q"), (2.2, "K"), (1.68, "V")):
        s.box(3.95, height, 0.4, 0.36, part)
    for start, end in (((3.22, 2.6), 2.72), ((3.22, 2.55), 2.2), ((3.22, 2.5), 1.68)):
        s.arrow(start, (3.75, end))
    for end in (2.16, 1.62):
        s.arrow((3.22, 1.84), (3.75, end), color=TRAINED)
    s.box(5.75, 2.2, 0.9, 1.45, "attention")
    for height in (2.72, 2.2, 1.68):
        s.arrow((4.15, height), (5.3, height))
    s.arrow((6.2, 2.2), (6.85, 2.2))
    for x in (4.53, 4.73):
        s.token(x, 0.95, "trained")
    s.text(4.64, 0.66, "one set for both, $P_K = P_V$")
    s.path((4.53, 1.05), (4.53, 2.13), color=TRAINED)
    s.path((4.73, 1.05), (4.73, 1.61), color=TRAINED)
    s.sign(4.53, 2.2, "", radius=0.06)
    s.sign(4.73, 1.68, "", radius=0.06)
    return s.finish()


@picture("provp")
def provp() -> Figure:
    """The prompts that come out of a block travel on, and in front of the next block new trained prompts are added to
    them, entry by entry."""
    s = Sketch(3.5)
    at = network(s, 1.5, ("trained", ("computed", "computed"), ("computed", "computed"), "dropped"))
    for column, name in zip((1, 2), ("$P^{1}$", "$P^{L-1}$")):
        x = COLUMNS[column]
        for index in range(3):
            s.sign(x, at["prompts"][column][index][1], radius=0.05, size=7)
        s.stack(x - 0.2, at["top"] + 0.62, ["trained"])
        s.stack(x, at["top"] + 0.62, ["trained"])
        s.stack(x + 0.2, at["top"] + 0.62, ["trained"])
        s.text(x + 0.36, at["top"] + 0.6, name, ha="left")
        s.arrow((x, at["top"] + 0.52), (x, at["top"] + 0.06), color=TRAINED)
    above(s, at, ["$P^{0}$"])
    entering(s, at)
    leaving(s, at, short=0.21)
    return s.finish()


@picture("express")
def express() -> Figure:
    """One block opened. Prompts, class token and patches enter. In front of LayerNorm, in front of the query, key and
    value projections, and in front of self-attention a trained residual is added to the prompts alone. The prompts
    that come out go on to the next block."""
    s = Sketch(3.3)
    y = 1.85
    room = {"in": 0.35, "norm1": 0.35, "qkv": 0.3}
    at = opened(s, y, room=room, left=0.42, right=6.6, skip=1.05)
    for x, kind in ((0.2, "computed"), (6.78, "computed")):
        s.stack(x, y + 0.5, [kind, kind, "class", "patch", "patch", "patch"])
    places = [(at["in>"] + 0.07, y), (at["norm1>"] - 0.08, y), *((at["qkv>"], y + shift) for shift in (0.48, 0, -0.48))]
    for place in places:
        s.sign(*place, radius=0.08, size=9)
    low = y - 1.08
    for x, end, name in ((places[0][0], y, "$r_1$"), (places[1][0], y, "$r_2$"), (at["qkv>"], y + 0.48, "$r_3$")):
        for shift in (-0.09, 0.09):
            s.token(x + shift, low, "trained")
        s.text(x, low - 0.22, name)
        s.arrow((x, low + 0.09), (x, end - 0.09), color=TRAINED)  # the third meets Q, K and V
    s.text(4.75, low + 0.02, "residuals meet the prompts only;\nthose in front of attention are 3D wide")
    return s.finish()


# --- cross-layer connections


def connected(s: Sketch, at, over, weights=False):
    """Own prompts P above the columns, and arrows from them and from their neighbours into the columns."""
    names = ("$P^{0}$", "$P^{1}$", "$P^{L-1}$")
    for column, name in enumerate(names):
        x = at["prompts"][column][0][0]
        for shift in (-0.18, 0, 0.18):
            s.token(x + shift, over, "trained")
        s.text(x, over + 0.22, name)
        s.arrow((x, over - 0.1), (x, at["top"] + (0.22 if column else 0.04)), color=TRAINED)
        if column:
            s.sign(x, at["top"] + 0.12, radius=0.09, size=9)
            before = at["prompts"][column - 1][0][0] + 0.28
            bend = at["top"] + 0.12
            if column == 2:
                s.text(x - 0.78, over, "…", size=11)
            start = before if column == 1 else x - 0.66
            s.path((start, over), (x - 0.45, over), (x - 0.45, bend), (x - 0.1, bend), color=TRAINED)
            if weights:
                s.sign(x - 0.45, (over + bend) / 2, "γ", trained=True, radius=0.12, size=10)


@picture("cdc")
def cdc() -> Figure:
    """Every block has its own trained prompts, drawn above. What enters a block is the sum of its own prompts and
    those of the block before; what came out of the block before for its prompts is dashed and not used."""
    s = Sketch(3.75)
    kinds = ("computed", ("dropped", "computed"), ("dropped", "computed"), "dropped")
    at = network(s, 1.5, kinds)
    connected(s, at, at["top"] + 0.7)
    entering(s, at)
    return s.finish()


@picture("ivpt")
def ivpt() -> Figure:
    """As in CDC, each block's prompts are joined by those of the block before, here weighted by a trained N by N
    matrix gamma. Behind each block but the last, the patches that the class token attends to most are circled, and a
    trained prompt is added to each of them."""
    s = Sketch(3.95)
    kinds = ("computed", ("dropped", "computed"), ("dropped", "computed"), "dropped")
    at = network(s, 1.6, kinds)
    connected(s, at, at["top"] + 0.72, weights=True)
    entering(s, at)
    for column, chosen in ((1, (0, 3)), (2, (2, 3))):
        x, high = at["class"][column]
        for row in chosen:
            _, height = at["patches"][column][row]
            s.outline(x, height, CLASS)
            s.arrow((x + 0.1, high), (x + 0.11, height), color=CLASS, bend=-0.4, width=0.9)
            s.token(x - 0.32, height, "trained", 0.13)
            s.arrow((x - 0.25, height), (x - 0.11, height), color=TRAINED)
    s.text(COLUMNS[1] + 0.4, at["bottom"] - 0.16, "top k of the class token's attention, plus $P_{re}$")
    return s.finish()


# --- prompts that start as tokens of the task


@picture("spt-shallow")
def spt_shallow() -> Figure:
    """Left, before training: images of the task pass the frozen stem and give a pool of patch tokens; a few drawn
    ones, outlined, become the trained prompts. Right, training: the prompts enter block 0 and travel through all
    blocks, as in VPT-Shallow."""
    s = Sketch(3.45)
    s.text(1.3, 3.28, "before training")
    s.text(5.0, 3.28, "training")
    for shift in (0.16, 0.08, 0):
        s.image(0.42 + shift, 2.55 + shift)
    s.arrow((0.9, 2.6), (1.05, 2.6))
    s.box(1.28, 2.6, 0.46, 0.7, "stem")
    s.arrow((1.51, 2.6), (1.68, 2.6))
    chosen = {(0, 2), (2, 1), (3, 3)}
    for row in range(4):
        for column in range(4):
            place = 1.82 + column * STEP, 2.9 - row * STEP
            s.token(*place, "patch")
            if (row, column) in chosen:
                s.outline(*place, TRAINED)
    s.text(1.3, 1.75, "pool of patch tokens:\ndraw $N_p$ of them, or take\nmeans, maxima, k-means")
    s.path((2.52, 2.6), (3.2, 2.6), color=TRAINED)
    s.text(3.3, 3.05, "$P_0$")
    top, x = 2.78, 3.3
    s.stack(x, top, ["trained"] * 3)
    s.stack(x, top - 0.7, ["class", *["patch"] * 3])
    s.image(1.95, 0.95, 0.5)
    s.arrow((2.2, 0.95), (2.37, 0.95))
    s.box(2.6, 0.95, 0.46, 0.5, "stem")
    s.path((2.83, 0.95), (x, 0.95), (x, 1.37))
    for left, name, kind in ((3.88, "0", "computed"), (5.23, "L−1", "dropped")):
        s.box(left, 2.1, 0.5, 1.6, f"block\n{name}")
        s.stack(left + 0.6, top, [kind] * 3)
        s.stack(left + 0.6, top - 0.7, ["class", *["patch"] * 3])
        for height, color in ((top - STEP, TRAINED), (top - 0.7 - 2 * STEP, EDGE)):
            if left > 4:
                s.text(left - 0.5, height, "…", size=11, color=color)
            s.arrow((left - 0.4 if left > 4 else x + 0.1, height), (left - 0.25, height), color=color)
            s.arrow((left + 0.25, height), (left + 0.5, height), color=color)
    s.arrow((5.93, top - 0.7), (6.25, top - 0.7), color=CLASS)
    s.box(6.51, top - 0.7, 0.52, 0.4, "head", trained=True)
    return s.finish()


@picture("spt-deep")
def spt_deep() -> Figure:
    """Two rows. Above, before training, images of the task pass the frozen network once, and at every level some
    patch tokens are drawn. Below, they become the trained prompts of the block of the same level; otherwise it is
    VPT-Deep, with prompt outputs that are not used."""
    s = Sketch(5.0)
    s.text(0.1, 4.8, "before training, once", ha="left")
    for shift in (0.1, 0.05, 0):
        s.image(0.32 + shift, 4.05 + shift, 0.5)
    s.arrow((0.68, 4.1), (0.74, 4.1), head="-")
    s.box(STEM, 4.1, 0.4, 0.7, "stem")
    at = network(s, 1.45, DEEP, patches=3)
    s.text(0.1, at["top"] - 0.1, "training", ha="left")
    for index, (x, block) in enumerate(zip(COLUMNS, BLOCKS)):
        before = BLOCKS[index - 1] + 0.25 if index else STEM + 0.2
        if index == 2:
            s.text(before + 0.14, 4.1, "…", size=11)
            before += 0.25
        s.arrow((before, 4.1), (x - 0.2, 4.1))
        for side in (-1, 1):
            s.stack(x + side * 0.1, 4.4, ["patch"] * 4)
        for row, side in ((0, -1), (1, 1), (3, -1)):
            s.outline(x + side * 0.1, 4.4 - row * STEP, TRAINED)
        s.arrow((x + 0.2, 4.1), (block - 0.25, 4.1))
        s.box(block, 4.1, 0.5, 0.95, f"block\n{('0', '1', 'L−1')[index]}")
        target = at["prompts"][index][0][0]
        s.arrow((x, 3.66), (target, at["top"] + 0.4), color=TRAINED)
        s.text(target, at["top"] + 0.22, ("$P_0$", "$P_1$", "$P_{L-1}$")[index])
    s.text(5.9, 3.45, "a sample of a level's patch\ntokens is where the prompts\nof that block start")
    entering(s, at)
    return s.finish()


# --- prompts that stand for classes

# A space of features, seen from its middle: patches of three groups of classes.
SPACE = [
    [(-0.98, 0.2), (-1.02, 0.62), (-0.72, 0.86), (-0.38, 0.78)],
    [(0.98, 0.2), (1.02, 0.62), (0.72, 0.86), (0.34, 0.78)],
    [(-0.5, -0.78), (-0.18, -0.9), (0.18, -0.9), (0.5, -0.78)],
]


def space(s: Sketch, x, y, prompts, pulls, pushes=()):
    """Patches and prompts in a space of features; pulls and pushes are pairs (prompt, (group, patch))."""
    for group, places in enumerate(SPACE):
        for dx, dy in places:
            s.mark(x + dx, y + dy, group, size=6)
    for pairs, line in ((pulls, partial(s.arrow, color=TRAINED, width=0.9)), (pushes, s.apart)):
        for prompt, (group, patch) in pairs:
            start, end = np.array(prompts[prompt]), np.array(SPACE[group][patch])
            unit = (end - start) / np.hypot(*(end - start))
            line(start + 0.13 * unit + (x, y), end - 0.1 * unit + (x, y))
    for dx, dy in prompts:
        s.token(x + dx, y + dy, "trained", 0.15)


@picture("da-vpt")
def da_vpt() -> Figure:
    """Left, classes are gathered by k-means over their mean features into as many clusters as there are guided
    prompts; each prompt stands for one cluster. Middle, the prompts enter the guided block, here the last. Right, in
    the space of features each prompt is drawn to the patches of its own classes, solid arrows, and pushed from those
    of others, dashed lines; the class token is drawn to the prompt of its class and pushed from another."""
    s = Sketch(3.75)
    s.text(0.95, 3.58, "classes, by k-means")
    heights = (3.0, 2.35, 1.7)
    for group, height in enumerate(heights):
        s.frame(0.6, height, 0.9, 0.34)
        for place in range(3):
            s.mark(0.34 + 0.26 * place, height, group)
        s.arrow((1.09, height), (1.5, height), color=TRAINED)
        s.token(1.62, height, "trained")
        s.text(1.62, height + 0.22, f"$p_{group + 1}$")
    s.text(0.95, 1.0, "clusters found again\nafter every epoch")
    s.text(2.95, 3.58, "guided block")
    places = s.stack(2.35, 3.0, ["trained"] * 3)
    for height, (_, end) in zip(heights, places):
        s.arrow((1.72, height), (2.25, end), color=TRAINED, width=0.9)
    s.stack(2.35, 2.3, ["class", *["patch"] * 3])
    s.box(2.95, 2.35, 0.5, 1.7, "block\nL−1")
    for height, color in ((2.8, TRAINED), (1.9, EDGE)):
        s.arrow((2.45, height), (2.7, height), color=color)
    s.arrow((3.2, 1.9), (3.45, 1.9))
    s.stack(3.55, 2.3, ["class", *["patch"] * 3])
    s.stack(3.55, 3.0, ["dropped"] * 3)
    s.text(2.95, 1.0, "compared: the prompts'\nqueries, and what\nattention gives out")
    s.text(5.45, 3.58, "the metric losses")
    x, y = 5.45, 2.28
    s.frame(x, y, 2.6, 2.25)
    prompts = [(-0.55, 0.42), (0.55, 0.42), (0, -0.5)]
    pulls = [(0, (0, 0)), (0, (0, 1)), (0, (0, 2)), (1, (1, 0)), (1, (1, 1)), (1, (1, 2)), (2, (2, 0)), (2, (2, 3))]
    space(s, x, y, prompts, pulls, [(0, (1, 3)), (1, (0, 3)), (2, (1, 0))])
    s.token(x - 0.22, y + 0.06, "class", 0.15)
    s.arrow((x - 0.29, y + 0.14), (x - 0.46, y + 0.33), color=CLASS)
    s.apart((x - 0.12, y + 0.1), (x + 0.45, y + 0.37), CLASS)
    for index, (dx, dy) in enumerate([(-0.72, 0.2), (0.65, 0.2), (0, -0.31)]):
        s.text(x + dx, y + dy, f"$p_{index + 1}$")
    s.text(x, 0.72, "arrows: drawn together\ndashed: pushed apart")
    return s.finish()


@picture("da-vpt-plus")
def da_vpt_plus() -> Figure:
    """One block opened. The prompts are DA-VPT's. In front of block 0 a trained vector is added to the class token;
    at the value projection sits a trained shift b, and at the key projection one that is dashed because it changes no
    output."""
    s = Sketch(3.05)
    y = 1.75
    at = opened(s, y, left=1.05, skip=0.95)
    s.stack(0.85, y + 0.5, ["trained", "trained", "class", "patch", "patch", "patch"])
    s.token(0.4, y + 0.1, "trained")
    s.sign(0.63, y + 0.1, radius=0.08, size=9)
    s.text(0.4, y - 0.24, "block 0\nonly")
    s.text(0.62, y + 0.83, "DA-VPT's\nprompts")
    for name, kind, level in (("K", "dropped", 0), ("V", "trained", -0.48)):
        s.token(at["qkv"] + 0.13, y + level - 0.2, kind, 0.18)
        s.text(at["qkv"] + 0.13, y + level - 0.205, "b")
    s.seen.discard("dropped")
    s.text(at["proj"] + 0.2, y - 1.05, "dashed: the shift of the keys is trained too, and changes no output")
    return s.finish()


# --- counterparts of the papers' comparisons


def flow(s: Sketch, x, y, guided):
    """Patches of one image, prompts, class token: who passes what to whom."""
    patches = [(x - 0.95, y + 0.45 - 0.3 * row) for row in range(4)]
    prompts = [(x + 0.05, y + 0.35 - 0.35 * row) for row in range(3)]
    for row, place in enumerate(patches):
        s.mark(*place, 0, size=7.5, hollow=row > 1)
    for place in prompts:
        s.token(*place, "trained")
    s.token(x + 0.95, y, "class")
    for column, prompt in enumerate(prompts):
        mine = guided and column == 0
        for row, patch in enumerate(patches):
            if not guided or (mine and row < 2) or (column == 2 and row > 1):
                s.arrow((patch[0] + 0.1, patch[1]), (prompt[0] - 0.1, prompt[1]), width=1.5 if mine else 0.7)
        if not guided or mine:
            s.arrow((prompt[0] + 0.1, prompt[1]), (x + 0.85, y), color=CLASS, width=2 if mine else 0.8)


@picture("davpt.figure-1")
def davpt_figure_1() -> Figure:
    """Two columns, VPT-Deep and DA-VPT. Above, prompts among patches of three groups of classes: VPT-Deep's prompts
    lie between the groups and are drawn to patches of several; each of DA-VPT's lies in one group. Below, patches of
    one image pass to prompts and on to the class token: from all to all in VPT-Deep, and in DA-VPT from the object's
    patches through the prompt of its class."""
    s = Sketch(4.75)
    for x, name in ((1.75, "VPT-Deep"), (5.25, "DA-VPT")):
        s.text(x, 4.6, name, size=11)
        s.frame(x, 3.3, 2.7, 2.15)
    mixed = [(-0.05, 0.55), (-0.6, -0.25), (0.6, -0.25)]
    pulls = [(0, (0, 3)), (0, (1, 3)), (1, (0, 0)), (1, (2, 0)), (2, (1, 0)), (2, (2, 3))]
    space(s, 1.75, 3.3, mixed, pulls)
    own = [(-0.55, 0.42), (0.55, 0.42), (0, -0.5)]
    pulls = [(group, (group, patch)) for group in range(3) for patch in (0, 1, 3)]
    space(s, 5.25, 3.3, own, pulls)
    for x, guided in ((1.75, False), (5.25, True)):
        flow(s, x, 1.35, guided)
        for shift, word in ((-0.95, "patches"), (0.05, "prompts"), (0.95, "class token")):
            s.text(x + shift, 1.98, word)
    s.text(3.5, 0.55, "filled circles: patches on the object; hollow: background")
    return s.finish()


def tower(s: Sketch, x, low, kind, layers=3, patches=1, rise=1.02):
    """Blocks above each other, prompts at the left and image tokens at the right: one structure of prompts.

    Args:
        kind: "isolated", "added" to what came out, "inside" the block, "all" earlier ones or the "adjacent" one;
            "ivpt" is the last with weights and a reinforced patch.
    """
    linked, own, sign = kind in ("all", "adjacent", "ivpt"), x - 0.76, x - 0.54
    drops, right = linked or kind == "isolated", 0.1 + 0.2 * patches
    for layer in range(layers + 1):
        y, inner = low + layer * rise, 0 < layer < layers
        entering = "computed" if linked or (kind != "isolated" and layer) else "trained"
        for shift in (-0.34, -0.14):
            s.token(x + shift, y, "dropped" if layer == layers else entering)
            if drops and inner:
                s.token(x + shift, y - 0.24, "dropped")
        for place in range(patches + 1):
            s.token(x + 0.1 + 0.2 * place, y, "patch" if place else "class")
        if kind == "ivpt" and inner:
            s.outline(x + right, y, CLASS)
            s.token(x + right + 0.33, y, "trained", 0.13)
            s.arrow((x + right + 0.26, y), (x + right + 0.11, y), color=TRAINED)
        if layer == layers:
            return
        if linked or (kind == "added" and inner):
            s.token(own, y, "trained")
            s.arrow((own + 0.08, y), (x - 0.43, y), color=TRAINED, width=0.9)
        if inner and (linked or kind == "added"):
            s.sign(sign, y, radius=0.06, size=8)
        if linked and inner:
            s.arrow((own + 0.02, y - rise + 0.09), (sign - 0.02, y - 0.07), color=TRAINED, width=0.9)
            if kind == "ivpt":
                s.sign((own + sign) / 2, y - rise / 2, "γ", trained=True, radius=0.11, size=9)
            if kind == "all" and layer > 1:
                s.arrow((own - 0.04, low + 0.09), (sign - 0.05, y - 0.06), color=TRAINED, bend=-0.21, width=0.9)
        block, middle = y + 0.4, x + (right - 0.24) / 2
        s.box(middle, block, right + 0.56, 0.36, f"block {layer}" if kind != "inside" else "")
        for shift in (-0.2, 0.06, 0.32) if kind == "inside" else ():
            s.token(middle + shift, block, "trained", 0.13)
            s.text(middle + shift - 0.13, block, "+")
        for shift in (-0.24, 0.2):
            color = TRAINED if shift < 0 else EDGE
            top = y + rise - (0.33 if shift < 0 and drops and layer < layers - 1 else 0.1)
            s.arrow((x + shift, y + 0.09), (x + shift, block - 0.18), color=color, width=0.9)
            s.arrow((x + shift, block + 0.18), (x + shift, top), color=color, width=0.9)


@picture("ivpt.figure-1")
def ivpt_figure_1() -> Figure:
    """Three towers of two blocks. In the first, each block has prompts of its own and what comes out for them is not
    used. In the second, prompts that come out travel on and new ones are added to them. In the third, prompts that
    enter a block are joined by those of the block before, weighted by gamma, and salient patches get a trained prompt
    added."""
    s = Sketch(3.25)
    for x, kind, words in (
        (1.15, "isolated", "each block its own\n(VPT-Deep)"),
        (3.5, "added", "added to what came out\n(ProVP, EXPRESS)"),
        (5.85, "ivpt", "joined before the blocks\n(iVPT)"),
    ):
        s.text(x, 3.02, words)
        tower(s, x, 0.6, kind, layers=2, patches=2)
    return s.finish()


@picture("ivpt.figure-3")
def ivpt_figure_3() -> Figure:
    """Five towers of three blocks, A to E. A: new prompts at each block, outputs not used. B: outputs travel on and
    new prompts are added to them. C: outputs travel on and residuals are added inside each block. D: each block's
    prompts are joined by those of all blocks before. E: by those of the one block before."""
    s = Sketch(4.25)
    for index, (kind, words) in enumerate(
        [
            ("isolated", "(A) VPT-Deep"),
            ("added", "(B) ProVP"),
            ("inside", "(C) EXPRESS"),
            ("all", "(D) vanilla CDC"),
            ("adjacent", "(E) CDC"),
        ]
    ):
        s.text(0.68 + 1.4 * index, 4.05, words)
        tower(s, 0.72 + 1.4 * index, 0.6, kind)
    return s.finish()


@picture("spt.figure-s2")
def spt_figure_s2() -> Figure:
    """Four panels, each with three levels. (a) Prompts start as uniform random numbers. (b) Prompts of all levels
    start as tokens of the first level, or of the last. (c) Prompts of each level start as tokens of that level. (d)
    As (c), but the prompts then stay frozen and only the head is trained."""
    s = Sketch(3.6)
    names = ["(a) random", "(b) one level for all", "(c) the same level", "(d) same level, frozen"]
    for index, name in enumerate(names):
        x = 0.95 + 1.72 * index
        s.text(x, 3.4, name)
        for level, height in enumerate((1.2, 1.9, 2.6)):
            kind = "frozen" if index == 3 else "trained"
            for shift in (0.32, 0.5, 0.68):
                s.token(x + shift, height, kind)
            start = x - 0.12 if index else x - 0.22
            if index == 0:
                s.arrow((start, 1.9), (x + 0.2, height), color=TRAINED)
                continue
            for shift in (-0.62, -0.42, -0.22):
                s.token(x + shift, height, "patch")
            if index == 1:
                s.arrow((start, 1.2), (x + 0.22, height), color=TRAINED)
                s.arrow((start, 2.6), (x + 0.22, height + 0.02), dashed=True)
            else:
                s.arrow((start, height), (x + 0.22, height), color=TRAINED)
            if level < 2:
                s.arrow((x - 0.42, height + 0.12), (x - 0.42, height + 0.58))
        s.box(x + 0.5, 0.68, 0.5, 0.3, "head", trained=True)
        if index == 0:
            s.text(x - 0.58, 1.9, "U(−b, b)")
        else:
            s.text(x - 0.42, 3.05, "tokens of\nthe task")
        s.text(x + 0.5, 3.05, "prompts of\nthe blocks")
    s.text(2.25, 0.72, "solid: first;\ndashed: last")
    return s.finish()


# --- why the fast form is fast


@picture("keys-and-values")
def keys_and_values() -> Figure:
    """Two tables of attention with a row for each query and a column for each key and value, in the order prompts,
    class token, patches. In most blocks the rows of the prompts are dashed: nobody reads what they give. In the last
    block only the class token's row is left. The columns of the prompts are there in both."""
    s = Sketch(3.55)
    kinds = ["trained", "trained", "class", *["patch"] * 4]
    for x, name, rows in ((1.0, "blocks 0 to L−2", range(2, 7)), (4.55, "block L−1", (2,))):
        s.text(x + 0.7, 3.38, name, size=10)
        s.text(x + 0.7, 3.08, "keys and values")
        for index, kind in enumerate(kinds):
            s.token(x + index * 0.22, 2.8, kind)
            s.token(x - 0.34, 2.46 - index * 0.27, kind if index in rows else "dropped")
            for row in range(7):
                s.token(x + index * 0.22, 2.46 - row * 0.27, "frozen" if row in rows else "dropped")
        for row in rows:
            s.arrow((x + 1.44, 2.46 - row * 0.27), (x + 1.75, 2.46 - row * 0.27), color=CLASS if row == 2 else EDGE)
        s.text(x - 0.66, 1.65, "queries", rotation=90)
    s.text(3.05, 1.92, "next\nblock")
    s.text(6.6, 1.92, "head")
    s.seen -= {"frozen", "dropped"}
    s.text(3.5, 0.47, "dashed: not computed; a filled cell is one query that meets one key and value")
    return s.finish()


# --- the settings, from the code


def settings_rows(slug: str) -> list[dict]:
    """Name, default and reason of every setting of a method, read off its `Settings` and the comments in its source.

    The reason is the comment behind a field; failing that, what the docstring of `Settings` says of it; failing that,
    the comment of the field above, which then speaks of both.
    """
    module = importlib.import_module(f"visprompt.methods.{choose('method', slug, METHODS).replace('-', '_')}")
    reasons = {}
    for kind in reversed(module.Settings.__mro__[:-1]):
        lines, first = inspect.getsourcelines(kind)
        doc, comment = inspect.getdoc(kind) or "", ""
        for node in ast.parse("".join(lines)).body[0].body:
            if isinstance(node, ast.AnnAssign):
                behind = re.search(r"#\s*(.+)$", lines[node.end_lineno - 1])
                said = re.search(rf"`{node.target.id}`:? (.+?)(?:\.\s|\.$)", doc, re.DOTALL)
                comment = behind[1].strip() if behind else " ".join(said[1].split()) if said else comment
                reasons[node.target.id] = comment
    return [
        {"method": slug, "setting": field.name, "default": repr(field.default), "reason": reasons[field.name]}
        for field in fields(module.Settings)
    ]
