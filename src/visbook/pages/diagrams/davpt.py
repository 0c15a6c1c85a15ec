"""The pictures of prompts that stand for classes."""

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from .scenes import opened
from .sketch import CLASS, EDGE, TRAINED, Sketch, picture

# A space of features, seen from its middle: patches of three groups of classes.
SPACE = [
    [(-0.98, 0.2), (-1.02, 0.62), (-0.72, 0.86), (-0.38, 0.78)],
    [(0.98, 0.2), (1.02, 0.62), (0.72, 0.86), (0.34, 0.78)],
    [(-0.5, -0.78), (-0.18, -0.9), (0.18, -0.9), (0.5, -0.78)],
]


def space(s: Sketch, x, y, prompts, pulls, pushes=()):
    """Patches and prompts in a space of features; pulls and pushes are pairs (prompt, (group,
    patch))."""
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
    """Left, classes are gathered by k-means over their mean features into as many clusters as there
    are guided prompts; each prompt represents one cluster. Middle, the prompts enter the guided
    block, here the last. Right, in the space of features each prompt is pulled towards the patches
    of its own classes, solid arrows, and pushed away from those of others, dashed lines; the class
    token is pulled towards the prompt of its class and pushed away from another."""
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
    pulls = [
        (0, (0, 0)),
        (0, (0, 1)),
        (0, (0, 2)),
        (1, (1, 0)),
        (1, (1, 1)),
        (1, (1, 2)),
        (2, (2, 0)),
        (2, (2, 3)),
    ]
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
    """Inside one block. The prompts are DA-VPT's. In front of block 0 a trained vector is added to
    the class token; at the value projection there is a trained bias b, and at the key projection
    one that is dashed because it changes no output."""
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
    s.text(
        at["proj"] + 0.2,
        y - 1.05,
        "dashed: the shift of the keys is trained too, and changes no output",
    )
    return s.finish()


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
                s.arrow(
                    (patch[0] + 0.1, patch[1]),
                    (prompt[0] - 0.1, prompt[1]),
                    width=1.5 if mine else 0.7,
                )
        if not guided or mine:
            s.arrow(
                (prompt[0] + 0.1, prompt[1]), (x + 0.85, y), color=CLASS, width=2 if mine else 0.8
            )


@picture("davpt.figure-1")
def davpt_figure_1() -> Figure:
    """Two columns, VPT-Deep and DA-VPT. Above, prompts among patches of three groups of classes:
    VPT-Deep's prompts are between the groups and are attracted to patches of several; each of
    DA-VPT's is in one group. Below, patches of one image pass to prompts and on to the class token:
    from all to all in VPT-Deep, and in DA-VPT from the object's patches through the prompt of its
    class."""
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
