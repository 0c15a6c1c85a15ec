"""The exception for a user's mistake, and the message for a wrong name."""

import difflib
from collections.abc import Iterable

# What to do where the book's package, `visbook`, is not installed.
INSTALL_BOOK = (
    "Install it from the repository, as in: pip install . ./src/visbook "
    "(make book and make test do)."
)


# What is not here on purpose, or has another place, by the word that other packages have for it.
ELSEWHERE = {
    "early_stopping": "vp.fit stops where its callback returns True",
    "loss": "vp.fit takes a loss",
    "label_smoothing": "give vp.fit loss=torch.nn.CrossEntropyLoss(label_smoothing=...)",
    "class_weights": "give vp.fit loss=torch.nn.CrossEntropyLoss(weight=...)",
    "seed": "vp.fit and vp.tune take a seed",
    "device": "vp.load_backbone takes a device",
}


class BadInput(ValueError):
    """An input that cannot be used; the message says what to give instead."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in a notebook: the message alone."""
        return [f"BadInput: {self}"]


def brief(value: object) -> str:
    """A value as one line of at most 80 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def choose(kind: str, given: str, allowed: Iterable[str]) -> str:
    """Return `given` if it is allowed.

    Raises:
        BadInput: it is not; the message names the nearest match and all allowed values.
    """
    allowed = list(allowed)
    if given in allowed:
        return given
    near = difflib.get_close_matches(str(given), allowed, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    hint = f" Here {ELSEWHERE[given]}." if str(given) in ELSEWHERE else hint
    raise BadInput(f"unknown {kind} {brief(given)}.{hint} Allowed: {', '.join(sorted(allowed))}.")


class CannotWrite(BadInput):
    """A result cannot be saved (disk full, no permission); going on would lose more."""
