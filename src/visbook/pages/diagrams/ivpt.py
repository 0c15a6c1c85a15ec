"""The pictures of CDC and iVPT, and of the prompt structures that iVPT's paper compares."""

from matplotlib.figure import Figure

from .scenes import COLUMNS, entering, network
from .sketch import CLASS, EDGE, TRAINED, Sketch, picture


def connected(s: Sketch, at, over, weights=False):
    """Own prompts P above the columns, and arrows from them and from their neighbours into the
    columns."""
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
            s.path(
                (start, over), (x - 0.45, over), (x - 0.45, bend), (x - 0.1, bend), color=TRAINED
            )
            if weights:
                s.sign(x - 0.45, (over + bend) / 2, "γ", trained=True, radius=0.12, size=10)


@picture("cdc")
def cdc() -> Figure:
    """Every block has its own trained prompts, drawn above. What enters a block is the sum of its
    own prompts and those of the block before; what came out of the block before for its prompts is
    dashed and not used."""
    s = Sketch(3.75)
    kinds = ("computed", ("dropped", "computed"), ("dropped", "computed"), "dropped")
    at = network(s, 1.5, kinds)
    connected(s, at, at["top"] + 0.7)
    entering(s, at)
    return s.finish()


@picture("ivpt")
def ivpt() -> Figure:
    """As in CDC, the prompts of the block before are added to each block's, here weighted by a
    trained N by N matrix γ. After each block except the last, the patches that the class token
    attends to most are circled, and a trained prompt is added to each of them."""
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
    s.text(
        COLUMNS[1] + 0.4, at["bottom"] - 0.16, "top k of the class token's attention, plus $P_{re}$"
    )
    return s.finish()


def tower(s: Sketch, x, low, kind, layers=3, patches=1, rise=1.02):
    """Blocks above each other, prompts at the left and image tokens at the right: one structure of
    prompts.

    Args:
        kind: "isolated", "added" to what came out, "inside" the block, "all" earlier ones or the
            "adjacent" one; "ivpt" is the last with weights and a reinforced patch.
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
            s.arrow(
                (own + 0.02, y - rise + 0.09), (sign - 0.02, y - 0.07), color=TRAINED, width=0.9
            )
            if kind == "ivpt":
                s.sign((own + sign) / 2, y - rise / 2, "γ", trained=True, radius=0.11, size=9)
            if kind == "all" and layer > 1:
                s.arrow(
                    (own - 0.04, low + 0.09),
                    (sign - 0.05, y - 0.06),
                    color=TRAINED,
                    bend=-0.21,
                    width=0.9,
                )
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
    """Three towers of two blocks. In the first, each block has prompts of its own and what comes
    out for them is not used. In the second, prompts that come out are passed on and new ones are
    added to them. In the third, those of the block before, weighted by γ, are added to the
    prompts that enter a block, and salient patches get a trained prompt added."""
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
    """Five towers of three blocks, A to E. A: new prompts at each block, outputs not used. B:
    outputs are passed on and new prompts are added to them. C: outputs are passed on and residuals
    are added inside each block. D: the prompts of all earlier blocks are added to each block's. E:
    those of the block before."""
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
