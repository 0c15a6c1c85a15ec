"""Read the YAML and CSV files of `data_manifests/`, each YAML file checked against its schema."""

import copy
import csv
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import BadInput
from .validation import Source, validated


def load_yaml(path: Path) -> Any:
    """Content of a YAML file, checked once.

    Raises:
        BadInput: the file is missing or damaged; the message names the line.
    """
    # what a caller changes is its own
    return copy.deepcopy(_checked(Path(path), stamp(path)).content)


class Entries(dict):
    """The entries of a YAML file below one key; records name the entries that a run read."""

    def __init__(self, path: Path, key: str):
        super().__init__(copy.deepcopy(_checked(Path(path), stamp(path)).content[key]))
        self.path, self.key = path, key

    def __getitem__(self, name):
        return entry(self.path, (self.key, str(name)), super().__getitem__(name))

    def get(self, name, default=None):
        """The entry of a name, or the default."""
        return self[name] if name in self else default

    def values(self):
        """All entries."""
        return entry(self.path, (self.key,), super().values())

    def items(self):
        """All pairs of name and entry."""
        return entry(self.path, (self.key,), super().items())


def entry(path: Path, keys: tuple[str, ...], value):
    """Return `value`, the entry below these keys of a YAML file; `records.watch` notes the call."""
    return value


def stamp(path: Path) -> tuple | None:
    """Time, size and inode of a file, which change with it; None if it cannot be read."""
    try:
        status = os.stat(path)
    except OSError:
        return None  # reading it says what is wrong
    return status.st_mtime_ns, status.st_size, status.st_ino


@functools.lru_cache(maxsize=64)
def _checked(path: Path, stamp: tuple | None) -> Source:
    """A file parsed and checked once while it is unchanged: chapters read it thousands of times."""
    return validated(path)


@contextmanager
def located(path: Path, *steps: str | int) -> Iterator[None]:
    """Prefix errors raised inside with file and line of a place in a YAML file."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{_checked(path, stamp(path)).place(steps)}{error}") from error


def read_table(path: Path) -> pd.DataFrame:
    """A CSV file with every cell as the string in the file, empty cells as "".

    Raises:
        BadInput: it is missing or not CSV, or has rows of unequal length or a column twice.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; restore it from the repository.") from None
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read ({error.strerror}); restore it from the repository."
        ) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not a readable table: {error}. Correct its quotes.") from error
    header = rows[0] if rows else []
    if not header or len(set(header)) < len(header):
        raise BadInput(f"{path}: the first row must name each column once; it is {header}.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise BadInput(
                f"{path}: row {number} has {len(row)} cells, not {len(header)}; quote commas."
            )
    return pd.DataFrame(rows[1:], columns=header, dtype=str)
