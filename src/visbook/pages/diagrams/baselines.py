"""The picture of the frozen network, and those of the baselines."""

from matplotlib.figure import Figure

from .scenes import BLOCKS, COLUMNS, HEAD, STEM, brace, network, opened
from .sketch import WIDTH, Sketch, picture


@picture("vit")
def vit() -> Figure:
    """A frozen vision transformer: image, stem, tokens, blocks, and a trained head behind the class
    token. Below, the inside of one block: LayerNorm, projections to queries Q, keys K and values V,
    attention, output projection and a sum with what entered; then LayerNorm, an MLP of two layers
    and another sum."""
    s = Sketch(4.6)
    at = network(s, 3.55)
    y = 1.5
    opened(s, y, skip=0.85)
    for x, end in ((BLOCKS[1] - 0.25, 0.12), (BLOCKS[1] + 0.25, WIDTH - 0.12)):
        s.arrow((x, at["bottom"] - 0.02), (end, y + 0.95), dashed=True, head="-", width=0.8)
    return s.finish()


@picture("linear-probe")
def linear_probe() -> Figure:
    """The image passes a frozen stem and frozen blocks; only the head behind the class token is
    trained. A bracket under all frozen parts says that their result is computed once and cached."""
    s = Sketch(2.3)
    at = network(s, 1.5)
    brace(
        s,
        0.1,
        COLUMNS[3] + 0.1,
        at["bottom"] - 0.16,
        "never changes: computed once for each image, then kept",
    )
    return s.finish()


@picture("full-finetune")
def full_finetune() -> Figure:
    """The same network with everything in the accent colour: stem, class token, every block and the
    head are trained."""
    s = Sketch(2.3)
    at = network(s, 1.5, trained=True)
    brace(s, STEM - 0.22, HEAD + 0.26, at["bottom"] - 0.16, "every weight is trained")
    return s.finish()


@picture("bias")
def bias() -> Figure:
    """Inside one block. Each layer has a small trained tab b, its bias; the tab of the key
    projection is hollow, because it changes no output."""
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
    s.text(
        at["proj"], y - 0.98, "dashed: the shift of the keys is trained too, and changes no output"
    )
    return s.finish()


@picture("norm-tune")
def norm_tune() -> Figure:
    """Inside one block, then the last LayerNorm and the head. Both LayerNorms of the block and the
    last one are trained: each has a scale γ and a shift β per channel. Attention, projections
    and MLP stay grey."""
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
