"""The pictures of the adapters."""

from matplotlib.figure import Figure
from matplotlib.patches import RegularPolygon

from .scenes import opened
from .sketch import EDGE, TRAINED, Sketch, picture


@picture("lora")
def lora() -> Figure:
    """Inside one block. Beside the frozen query and value projections runs a trained path of two
    wedges, A down to rank r and B up again; its result is added. Keys have none."""
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
    """Inside one block. After the attention's projection, and again after the MLP, the signal also
    takes a detour through two trained wedges, down to a few units and up again, and is added to
    itself before the skip connection joins."""
    s = Sketch(2.75)
    y = 1.5
    at = opened(s, y, room={"proj": 0.78, "fc2": 0.78}, skip=0.95)
    for name in ("proj", "fc2"):
        beside(s, at[f"{name}>"] - 0.35, at[f"{name}>"] + 0.31, y, y - 0.72)
        s.text(at[f"{name}>"] - 0.02, y - 1.03, "down, GELU, up")
    return s.finish()


@picture("adaptformer")
def adaptformer() -> Figure:
    """Inside one block. Parallel to the frozen MLP, from behind its LayerNorm to behind its second
    layer, runs a trained bottleneck with a ReLU, whose result is multiplied by s and added.
    Attention has none."""
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
    """Inside one block. On the wire after every layer, LayerNorms included, sits a trained diamond,
    a scale and a shift of each channel. No path is added."""
    s = Sketch(2.6)
    y = 1.5
    at = opened(s, y, skip=0.85)
    places = [(at[f"{name}>"] - 0.02, y) for name in ("norm1", "proj", "norm2", "fc1", "fc2")]
    places[0] = (at["norm1>"] - 0.05, y)
    places += [(at["qkv>"], y + shift) for shift in (0.48, 0, -0.48)]
    for x, height in places:
        s.ax.add_patch(
            RegularPolygon((x, height), 4, radius=0.11, fc=TRAINED, ec=EDGE, lw=1, zorder=3.5)
        )
    s.seen.add("trained")
    s.text(at["proj"], y - 0.98, "diamond: times γ, plus β, channel by channel")
    return s.finish()
