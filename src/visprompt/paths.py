"""Paths of the project's folders."""

import importlib.util
import os
from pathlib import Path

PACKAGE = Path(__file__).parent
BOOK_SPEC = importlib.util.find_spec("visbook")  # found, not imported
# The book's package, where it is installed: records watch its code as they watch this one's.
BOOK = Path(BOOK_SPEC.origin).parent if BOOK_SPEC is not None else None  # type: ignore[arg-type]
PACKAGES = tuple(path for path in (PACKAGE, BOOK) if path is not None)
GIVEN = os.environ.get("VISPROMPT_ROOT")
# The repository: the one that is named, else the one around this package, else, of an installed
# package, the folder that one works in, where its records go.
ROOT = (
    Path(GIVEN)
    if GIVEN
    else PACKAGE.parents[1]
    if (PACKAGE.parents[1] / "data_manifests").is_dir()
    else Path.cwd()
)
# A folder that holds this file is the stage of a rehearsal: its numbers mean nothing, and they stay
# there.
REHEARSAL = (ROOT / "REHEARSAL").is_file()
# An installed package brings its own copy; a folder of one's own, named as ROOT, has none.
MANIFESTS = next(
    (
        folder / "data_manifests"
        for folder in (PACKAGE, ROOT, PACKAGE.parents[1])
        if (folder / "data_manifests").is_dir()
    ),
    ROOT / "data_manifests",
)
