"""The pictures of prompt tokens, and why those that are dropped are keys and values only."""

import numpy as np
from matplotlib.figure import Figure

from .scenes import BLOCKS, COLUMNS, DEEP, above, entering, leaving, network, opened
from .sketch import CLASS, EDGE, TRAINED, Sketch, picture


@picture("vpt-shallow")
def vpt_shallow() -> Figure:
    """Three trained prompts join the class token and the patches in front of block 0. What comes
    out of a block for them enters the next one like every other token, so they pass through all
    blocks; after the last they are not used."""
    s = Sketch(2.95)
    at = network(s, 1.55, ("trained", "computed", "computed", "dropped"))
    above(s, at, ["$P_0$", "$Z_1$", "$Z_{L-1}$", "$Z_L$"], range(4))
    entering(s, at)
    leaving(s, at)
    return s.finish()


@picture("vpt-deep")
def vpt_deep() -> Figure:
    """In front of every block three new trained prompts join the tokens. What came out of the block
    before for its prompts is dashed: it is not used."""
    s = Sketch(2.95)
    at = network(s, 1.55, DEEP)
    above(s, at, ["$P_0$", "$P_1$", "$P_{L-1}$"])
    entering(s, at)
    return s.finish()


@picture("gate-vpt")
def gate_vpt() -> Figure:
    """Trained prompts enter block 0. A second path over each block is for the prompts; after the
    block a trained gate g mixes the prompts that came out with those that went in. Inside each
    block a trained temperature T that divides the attention scores."""
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
    """Left, the prompts of a block as strips of segments: whole tokens and single segments that
    mattered least are struck out, dashed. Right, attention: tokens give queries, keys and values,
    the prompts keys and values; one further set of trained vectors joins both the keys and the
    values."""
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
    s.text(
        1.3,
        1.1,
        "dashed segments are masked,\nstruck-out tokens removed;\nthen training starts again",
    )
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
    """The prompts that come out of a block are passed on, and in front of the next block new
    trained prompts are added to them, entry by entry."""
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
    """Inside one block. Prompts, class token and patches enter. In front of LayerNorm, in front of
    the query, key and value projections, and in front of self-attention a trained residual is added
    to the prompts alone. The prompts that come out go on to the next block."""
    s = Sketch(3.3)
    y = 1.85
    room = {"in": 0.35, "norm1": 0.35, "qkv": 0.3}
    at = opened(s, y, room=room, left=0.42, right=6.6, skip=1.05)
    for x, kind in ((0.2, "computed"), (6.78, "computed")):
        s.stack(x, y + 0.5, [kind, kind, "class", "patch", "patch", "patch"])
    places = [
        (at["in>"] + 0.07, y),
        (at["norm1>"] - 0.08, y),
        *((at["qkv>"], y + shift) for shift in (0.48, 0, -0.48)),
    ]
    for place in places:
        s.sign(*place, radius=0.08, size=9)
    low = y - 1.08
    for x, end, name in (
        (places[0][0], y, "$r_1$"),
        (places[1][0], y, "$r_2$"),
        (at["qkv>"], y + 0.48, "$r_3$"),
    ):
        for shift in (-0.09, 0.09):
            s.token(x + shift, low, "trained")
        s.text(x, low - 0.22, name)
        s.arrow((x, low + 0.09), (x, end - 0.09), color=TRAINED)  # the third meets Q, K and V
    s.text(
        4.75,
        low + 0.02,
        "residuals meet the prompts only;\nthose in front of attention are 3D wide",
    )
    return s.finish()


@picture("keys-and-values")
def keys_and_values() -> Figure:
    """Two tables of attention with a row for each query and a column for each key and value, in the
    order prompts, class token, patches. In most blocks the rows of the prompts are dashed: their
    outputs are not used. In the last block only the class token's row is left. The columns of the
    prompts are there in both."""
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
            s.arrow(
                (x + 1.44, 2.46 - row * 0.27),
                (x + 1.75, 2.46 - row * 0.27),
                color=CLASS if row == 2 else EDGE,
            )
        s.text(x - 0.66, 1.65, "queries", rotation=90)
    s.text(3.05, 1.92, "next\nblock")
    s.text(6.6, 1.92, "head")
    s.seen -= {"frozen", "dropped"}
    s.text(
        3.5, 0.47, "dashed: not computed; a solid cell is one query that meets one key and value"
    )
    return s.finish()
