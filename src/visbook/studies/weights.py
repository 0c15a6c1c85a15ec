"""Files of weights, as a command or a notebook names them for backbones."""

from collections.abc import Sequence
from pathlib import Path

from visprompt.errors import BadInput, choose
from visprompt.models.backbones import is_known, known_backbones


def named_files(weights: str | Sequence[str] | None) -> dict[str, str] | None:
    """Backbone -> file, where weights name backbones; None where they do not."""
    if isinstance(weights, str) and weights.startswith("["):  # a list as papermill -p hands it over
        weights = [word.strip() for word in weights.strip("[] ").split(",")]
    if isinstance(weights, str) and "=" in weights and not Path(weights).exists():
        weights = [weights]
    return None if weights is None or isinstance(weights, str) else files_of(weights)


def files_of(words: Sequence[str]) -> dict[str, str]:
    """Backbone -> file, of words NAME=FILE.

    Raises:
        BadInput: a word is not written so, names a backbone again or one that nobody knows, or its
            file is not there.
    """
    for word in words:
        if not all(word.partition("=")):
            raise BadInput(
                f"weights are given as NAME=FILE, the backbone's name first, not {word!r}."
            )
    found = dict(word.split("=", 1) for word in words)
    if len(found) < len(words):
        raise BadInput(f"weights name a backbone twice: {' '.join(words)}. Give one file for each.")
    for name, file in found.items():
        if not is_known(name):
            choose("backbone in weights", name, known_backbones())
        if not Path(file).is_file():
            raise BadInput(f"weights {name}={file}: there is no such file.")
    return found
