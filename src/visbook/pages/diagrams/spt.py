"""The pictures of prompts that start as tokens of the task."""

from matplotlib.figure import Figure

from .scenes import BLOCKS, COLUMNS, DEEP, STEM, entering, network
from .sketch import CLASS, EDGE, STEP, TRAINED, Sketch, picture


@picture("spt-shallow")
def spt_shallow() -> Figure:
    """Left, before training: images of the task pass the frozen stem and give a pool of patch
    tokens; a few sampled ones, outlined, become the trained prompts. Right, training: the prompts
    enter block 0 and pass through all blocks, as in VPT-Shallow."""
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
            s.arrow(
                (left - 0.4 if left > 4 else x + 0.1, height), (left - 0.25, height), color=color
            )
            s.arrow((left + 0.25, height), (left + 0.5, height), color=color)
    s.arrow((5.93, top - 0.7), (6.25, top - 0.7), color=CLASS)
    s.box(6.51, top - 0.7, 0.52, 0.4, "head", trained=True)
    return s.finish()


@picture("spt-deep")
def spt_deep() -> Figure:
    """Two rows. Above, before training, images of the task pass the frozen network once, and at
    every level some patch tokens are sampled. Below, they become the trained prompts of the block
    of the same level; otherwise it is VPT-Deep, with prompt outputs that are not used."""
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
    s.text(
        5.9, 3.45, "a sample of a level's patch\ntokens is where the prompts\nof that block start"
    )
    entering(s, at)
    return s.finish()


@picture("spt.figure-s2")
def spt_figure_s2() -> Figure:
    """Four panels, each with three levels. (a) Prompts start as uniform random numbers. (b) Prompts
    of all levels start as tokens of the first level, or of the last. (c) Prompts of each level
    start as tokens of that level. (d) As (c), but the prompts then stay frozen and only the head is
    trained."""
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
