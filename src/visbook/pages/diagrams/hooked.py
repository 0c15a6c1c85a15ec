"""The picture of a method that has no recipe of its own: the network, and a mark wherever the
method acts."""

from collections.abc import Callable

from matplotlib.figure import Figure

from visprompt.methods import method_class, names
from visprompt.methods.base import Method

from .scenes import BLOCKS, COLUMNS, HEAD, STEM, network
from .sketch import Sketch

# hook -> what it changes, and where its mark stands: columns, and above the network or below it
HOOKS = {
    "change_images": ("the image", (0.35,), "above"),
    "before_block": ("what enters a block", COLUMNS[:3], "above"),
    "around": ("layers of a block", BLOCKS, "below"),
    "extra": ("the keys and values of a block", BLOCKS, "above"),
    "after_blocks": ("what leaves the last block", COLUMNS[3:], "above"),
    "loss": ("the loss", (HEAD,), "above"),
    "trained": ("weights of the network itself", (STEM,), "below"),
}


def hooks_of(slug: str) -> list[str]:
    """The hooks that a method answers otherwise than one that adds nothing."""
    return [
        hook for hook in HOOKS if getattr(method_class(slug), hook) is not getattr(Method, hook)
    ]


def recipe(slug: str) -> Callable[[], Figure]:
    """The recipe that draws a method from its hooks, with the alternative text as its docstring."""
    hooks = hooks_of(slug)

    def drawn() -> Figure:
        s = Sketch(2.75 + 0.22 * len(hooks))
        at = network(s, 1.62 + 0.22 * len(hooks), trained="trained" in hooks)
        for number, hook in enumerate(hooks, 1):
            words, columns, side = HOOKS[hook]
            for x in columns:
                s.sign(
                    x,
                    at["top"] + 0.32 if side == "above" else at["bottom"] - 0.32,
                    str(number),
                    True,
                    size=8,
                )
            row = 0.45 + 0.22 * (len(hooks) - number)
            s.sign(2.2, row, str(number), True, size=8)
            s.text(2.4, row, words, ha="left")
        return s.finish()

    acts = ", ".join(f"{number} {HOOKS[hook][0]}" for number, hook in enumerate(hooks, 1))
    drawn.__doc__ = (
        f"The frozen network from image to trained head. {names()[slug]} acts "
        f"on: {acts or 'nothing before the head'}."
    )
    return drawn
