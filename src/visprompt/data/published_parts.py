"""What the published layouts share: their splits, and what a benchmark takes of these."""

from pathlib import Path

from . import catalogue
from .raw_layouts import TRAIN, VAL, Rows, Splits, few, inside

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".webp", ".tif", ".tiff", ".gif")
Pools = tuple[list[str], Rows, Rows | None, Rows]  # names, train, val if the authors have one, test


def shares(task: str, train: Rows, val: Rows | None, test: Rows) -> list[Rows]:
    """The pictures of train, val and test that a benchmark takes.

    VTAB-1k has 800 and 200, here other ones than its own draw; test is complete everywhere. Other
    benchmarks take the authors' val, or hold out the paper's share of train, a tenth if it states
    none.
    """
    entry = catalogue.entry_of(task)
    few_images, counts = entry.get("benchmark") == "vtab-1k", entry.get("splits", {})
    if few_images and val:
        return [few(train, TRAIN), few(val, VAL), test]
    if val:
        return [train, val, test]
    if few_images:
        held, left = VAL, TRAIN
        if len(train) < held + left:
            held, left = max(1, len(train) // 5), None
    else:
        share = counts["val"] / (counts["train"] + counts["val"]) if "val" in counts else 0.1
        held, left = max(1, round(share * len(train))), None
    order = few(range(len(train)), len(train))
    chosen = order[held:] if left is None else order[held : held + left]
    # in the order of the files
    rows = lambda numbers: [train[number] for number in sorted(numbers)]
    return [rows(chosen), rows(order[:held]), test]


class Full:
    """A published layout: a folder that has the files or folders `NAMES` fits, `pools` reads it."""

    name, wants = "", ""
    NAMES: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def fits(cls, root: Path) -> bool:
        """Whether a folder has this layout."""
        return all(inside(root, *parts) is not None for parts in cls.NAMES)

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        """Class names, and the pictures of train, val and test."""
        names, train, val, test = cls.pools(root)
        return names, shares(task, train, val, test)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        """Class names, and the pictures of the published splits."""
        raise NotImplementedError


def lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def matlab(path: Path) -> dict:
    """Content of a MATLAB file, its lists as arrays without singleton dimensions."""
    from scipy.io import loadmat

    return loadmat(path, squeeze_me=True)


def pictures_of(folder: Path) -> list[Path]:
    """The pictures in a folder and below, sorted by name."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)


def folders_of(folder: Path) -> list[Path]:
    """The folders in a folder."""
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def classes_of(folder: Path) -> tuple[list[str], Rows]:
    """Class names and pictures of a folder that has one folder per class."""
    every = folders_of(folder)
    return [path.name for path in every], [
        (file, label) for label, path in enumerate(every) for file in pictures_of(path)
    ]


def every_tenth(rows: Rows) -> tuple[Rows, Rows]:
    """The other rows, and every tenth."""
    return [row for number, row in enumerate(rows) if number % 10], rows[::10]


def fifths(count: int) -> tuple[int, int]:
    """Split indices (end of train, end of val) for `count` images: 70 % train, 10 % val."""
    return count * 7 // 10, count * 8 // 10


def drawn(names: list[str], every: Rows, cuts=fifths) -> Pools:
    """Random splits, class by class, of a data set that has none."""
    parts, of_class = ([], [], []), [[] for _ in names]
    for row in every:
        of_class[row[1]].append(row)
    for rows in of_class:
        order, (first, second) = few(range(len(rows)), len(rows)), cuts(len(rows))
        for part, numbers in zip(parts, (order[:first], order[first:second], order[second:])):
            part += [rows[number] for number in sorted(numbers)]
    return names, *parts
