"""The pictures of what is added to the image or to activations."""

from matplotlib.figure import Figure

from .scenes import COLUMNS, brace, network
from .sketch import Sketch, picture


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
    """Above, image plus a trained perturbation of the same size goes through a frozen network to
    the trained head. Below, the three templates: every pixel is trained, only a frame of some width
    is trained, or the image is shrunk into the hole of a trained frame."""
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
    """In front of block 2 a trained tensor with one vector for each token, the class token's
    included, is added to the tokens; a bracket says that everything before it is computed once and
    cached. Below, the three kinds: sum, product entry by entry, and further tokens set beside the
    others."""
    s = Sketch(4.0)
    y = 2.85
    columns = (*COLUMNS[:2], COLUMNS[2] - 0.22, COLUMNS[3])
    at = network(s, y, names=("0", "1", "2"), columns=columns)
    x = columns[2] + 0.28
    for place in (at["class"][2], *at["patches"][2]):
        s.sign(x - 0.14, place[1], radius=0.06, size=8)
        s.token(x, place[1], "trained")
    s.text(x - 0.1, at["top"] + 0.2, "z + δ")
    brace(
        s,
        0.1,
        columns[2] + 0.08,
        at["bottom"] - 0.16,
        "never changes: computed once for each image, then kept",
    )
    s.text(0.1, 1.5, "The kinds:", ha="left")
    for left, words, sign in (
        (1.1, "add (AP)", "+"),
        (3.1, "product", "×"),
        (5.0, "concatenate", ""),
    ):
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
