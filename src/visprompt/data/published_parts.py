"""What the forms of whole data sets have in common: their parts, and what a benchmark takes of
these."""

from pathlib import Path

from . import catalogue
from .raw_layouts import TRAIN, VAL, Rows, Splits, few, inside

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".webp", ".tif", ".tiff", ".gif")
Pools = tuple[list[str], Rows, Rows | None, Rows]  # names, train, val if the authors have one, test


def shares(task: str, train: Rows, val: Rows | None, test: Rows) -> list[Rows]:
    """The pictures of train, val and test that a benchmark takes.

    VTAB-1k draws 800 and 200, here not the ones that it drew; test is whole everywhere. Others take
    the authors' val, or else hold out as large a share of train as the paper did, a tenth where it
    does not say.
    """
    found = catalogue.entry_of(task)
    few_images, counts = found.get("benchmark") == "vtab-1k", found.get("splits", {})
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
    """A published form: `NAMES` are files or folders that show it, `pools` reads it."""

    name, wants = "", ""
    NAMES: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def fits(cls, root: Path) -> bool:
        """Whether a folder holds it."""
        return all(inside(root, *parts) is not None for parts in cls.NAMES)

    @classmethod
    def splits(cls, root: Path, task: str) -> Splits:
        """Names of the classes, and the pictures of train, val and test."""
        names, train, val, test = cls.pools(root)
        return names, shares(task, train, val, test)

    @classmethod
    def pools(cls, root: Path) -> Pools:
        """What the authors publish."""
        raise NotImplementedError


def lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def matlab(path: Path) -> dict:
    """A MATLAB file, its lists as arrays without needless dimensions."""
    from scipy.io import loadmat

    return loadmat(path, squeeze_me=True)


def pictures_of(folder: Path) -> list[Path]:
    """The pictures in a folder and below, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)


def folders_of(folder: Path) -> list[Path]:
    """The folders in a folder."""
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def classes_of(folder: Path) -> tuple[list[str], Rows]:
    """A folder a class: names, and all pictures."""
    every = folders_of(folder)
    return [path.name for path in every], [
        (file, label) for label, path in enumerate(every) for file in pictures_of(path)
    ]


def every_tenth(rows: Rows) -> tuple[Rows, Rows]:
    """The other rows, and every tenth."""
    return [row for number, row in enumerate(rows) if number % 10], rows[::10]


def fifths(count: int) -> tuple[int, int]:
    """Of so many pictures of a class, where train and val end: a fifth is for test, a tenth for
    val."""
    return count * 7 // 10, count * 8 // 10


def drawn(names: list[str], every: Rows, cuts=fifths) -> Pools:
    """Parts of a data set that has none, drawn class by class."""
    parts, of_class = ([], [], []), [[] for _ in names]
    for row in every:
        of_class[row[1]].append(row)
    for rows in of_class:
        order, (first, second) = few(range(len(rows)), len(rows)), cuts(len(rows))
        for part, numbers in zip(parts, (order[:first], order[first:second], order[second:])):
            part += [rows[number] for number in sorted(numbers)]
    return names, *parts
