"""The layout of a data set on disk: three lists, one folder per class, or the published raw files.

A layout is a class: `fits` says whether a folder has it, `splits` names the pictures and labels of
train, val and test. VTAB-1k's 800 and 200 images come from an order that only TensorFlow Datasets
has; from raw files, equally many are drawn from the same pools, with a fixed seed. Its test splits
are complete.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput, choose
from . import catalogue, folders
from .folders import LISTS
from .full_layouts import FULL, Listed
from .image_cache import Item, Split, load_images
from .pictures import kind, shown
from .published_parts import ENDINGS as PICTURES
from .raw_layouts import RAW, Rows, Splits


@dataclass(frozen=True)
class Place:
    """Location of a task: the folder of its data set, and the task's name."""

    root: Path
    task: str


def task_folder(data_dir: str | os.PathLike, name: str, embedded: Iterable[str]) -> Place | None:
    """The folder of a task in data_dir, by its name, its data set's, or an alias; None if embedded.

    Raises:
        BadInput: as `folders.task_folder`.
    """
    dataset = set_of(name)
    if dataset and name not in embedded and not _is_folder(data_dir, name):
        for other in (dataset.name, *dataset.aliases):
            root = Path(data_dir) / other
            if _is_folder(data_dir, other) and not (other in dataset.tasks and has_lists(root)):
                its = [
                    task for task, about in dataset.tasks.items() if about["benchmark"] != "full"
                ]
                if has_lists(root) and its != [name]:
                    raise BadInput(
                        f"the lists in {shown(root)} may be another task's; rename the "
                        f"folder {name} if they are its."
                    )
                return Place(root, name)
    root = folders.task_folder(data_dir, name, embedded)
    return None if root is None else Place(root, name)


def set_of(name: str) -> catalogue.DataSet | None:
    """The data set that a name, an alias or a task belongs to."""
    return next(
        (dataset for dataset in catalogue.datasets().values() if name in dataset.names), None
    )


def has_lists(root: Path) -> bool:
    """Whether a folder has one of the three lists."""
    return any(kind(root / name, shown(root / name)) for name in LISTS.values())


def digest_of_lists(root: Path) -> str:
    """Twelve hex digits of the rows of the three lists, in any order; "" without lists."""
    if not has_lists(root):
        return ""
    rows = [
        sorted(" ".join(line.split()) for line in open(root / name, encoding="utf-8"))
        for name in LISTS.values()
    ]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]


def _is_folder(data_dir: str | os.PathLike, name: str) -> bool:
    try:
        return (Path(data_dir) / name).is_dir()
    except (OSError, ValueError, TypeError):
        return False  # said by `folders.task_folder`


def read_folder(place: Place, size: int, resize: str) -> tuple[list[str], list[Split]]:
    """Class names, and the splits train, val and test, by the first layout that fits.

    Args:
        place: what `task_folder` returned.
        size: side of an image in pixels.
        resize: one of `tasks.RESIZES`, see `tasks.load_task`.

    Returns:
        names (one per class), and for each split images (N, 3, size, size) uint8 and labels (N,)
        int64; large splits are in the cache folder, see `image_cache.load_images`.

    Raises:
        BadInput: no layout fits, files are missing or damaged, or the data set has no such task.
    """
    names, parts = read_items(place)
    return names, load_images(place.task, place.root, parts, size, resize)


def read_items(place: Place) -> tuple[list[str], list[list[Item]]]:
    """Class names, and the pictures of train, val and test with their names for messages."""
    layout = layout_of(place)
    if layout is None:
        return folders.read_lists(place.root)
    try:
        names, parts = layout.splits(place.root, place.task)
    except BadInput:
        raise
    except Exception as error:  # readers of all those forms raise all kinds on damaged files
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadInput(
            f"{shown(place.root)} is not as {layout.name} publishes it ({shown(what)}); "
            f"fetch it again."
        ) from error
    items = []
    for split, rows in zip(LISTS, parts):
        where = f"{shown(place.root)}, split {split}"
        for _, label in rows:
            if not 0 <= label < len(names):
                raise BadInput(
                    f"{where}: label {label} is none of {len(names)} classes; fetch the "
                    f"data set again."
                )
        items.append([(picture, label, where) for picture, label in rows])
    return names, items


def layout_of(place: Place):
    """A folder's layout: a raw one of its data set or folders of classes; None for the three lists.

    Raises:
        BadInput: the task has a raw layout, and the folder has neither that nor another.
    """
    if has_lists(place.root):
        return None
    dataset = set_of(place.task)
    raw = (
        [LAYOUTS[choose(f"layout of {dataset.name}", dataset.layout, LAYOUTS)]]
        if dataset and dataset.layout
        else []
    )
    if dataset and dataset.tasks.get(place.task, {}).get("benchmark") == "full":  # type: ignore[call-overload]
        raw.insert(0, Listed)
    for layout in [*raw, LAYOUTS["split folders"], LAYOUTS["class folders"]]:
        if layout.fits(place.root):
            return layout
    if raw:
        raise BadInput(
            f"{shown(place.root)} holds neither {LISTS['train']}, nor one folder per "
            f"class, nor {raw[-1].wants}; "
            f"see: visprompt data info {place.task}."
        )
    return None


def class_rows(folder: Path, names: Sequence[str]) -> Rows:
    """The pictures of a folder with one folder per class, sorted by name."""
    rows = []
    for name in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        files = sorted(
            path for path in (folder / name).rglob("*") if path.suffix.lower() in PICTURES
        )
        if files and name not in names:
            choose(f"class in {shown(folder)}", name, names)
        rows += [(path, names.index(name)) for path in files]
    return rows


def class_names(folder: Path) -> list[str]:
    """Names of the folders that contain pictures."""
    every = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return sorted(
        path.name
        for path in every
        if any(file.suffix.lower() in PICTURES for file in path.rglob("*"))
    )


class SplitFolders:
    """train/CLASS/picture, test/CLASS/picture and perhaps val/CLASS/picture.

    Without val, every fifth picture of train is val.
    """

    name, wants = "a folder a split", "train/CLASS/picture"

    @staticmethod
    def fits(root: Path) -> bool:
        return (
            (root / "train").is_dir()
            and (root / "test").is_dir()
            and bool(class_names(root / "train"))
        )

    @staticmethod
    def splits(root: Path, task: str) -> Splits:
        names = class_names(root / "train")
        train, test = class_rows(root / "train", names), class_rows(root / "test", names)
        if (root / "val").is_dir():
            return names, [train, class_rows(root / "val", names), test]
        return names, [[row for number, row in enumerate(train) if number % 5], train[::5], test]


class ClassFolders:
    """CLASS/picture, no splits: per class every fifth picture is test, the one before it val."""

    name, wants = "one folder per class", "CLASS/picture"

    @staticmethod
    def fits(root: Path) -> bool:
        return len(class_names(root)) > 1

    @staticmethod
    def splits(root: Path, task: str) -> Splits:
        names = class_names(root)
        rows = class_rows(root, names)
        turns, seen = [], {}
        for _, label in rows:
            seen[label] = seen.get(label, -1) + 1
            turns.append(seen[label] % 5)
        part = lambda wanted: [row for row, turn in zip(rows, turns) if turn in wanted]
        return names, [part((0, 1, 2)), part((3,)), part((4,))]


# a manifest names its raw one
LAYOUTS: dict[str, Any] = {
    "split folders": SplitFolders,
    "class folders": ClassFolders,
    **RAW,
    **FULL,
}
