"""Tasks in folders of pictures with three lists, and classes.txt for the names.

The lists alone decide what is read, and in one way: every file is a regular one, text is UTF-8,
every picture occurs once in the three lists, with a path inside the folder. A symbolic link inside
the folder may point elsewhere; that is the responsibility of whoever made it.
"""

import codecs
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath

from ..errors import BadInput, choose
from .image_cache import Item
from .pictures import kind, reason, shown

LISTS = {"train": "train800.txt", "val": "val200.txt", "test": "test.txt"}
ROW = "relative/path label"
Row = tuple[str, PurePosixPath, int]  # file and line, path in the folder, label


def check_name(name: object) -> None:
    """Check that a name is a plain folder name.

    Raises:
        BadInput: it is not text, empty, a path, or has characters that cannot be printed.
    """
    if (
        not isinstance(name, str)
        or not name.isprintable()
        or name in ("", "..")
        or PurePath(name).name != name
    ):
        raise BadInput(
            f"a task's name is the name of a folder or of an embedded task, not "
            f"{shown(repr(name))}."
        )


def task_folder(data_dir: str | os.PathLike, name: str, embedded: Iterable[str]) -> Path | None:  # type: ignore[return]
    """The folder data_dir/name; None if the name is an embedded task's and there is no such folder.

    Raises:
        BadInput: data_dir is not a folder or cannot be read, it has no such task, or one named like
            an embedded task.
    """
    if (
        not isinstance(data_dir, (str, os.PathLike))
        or not isinstance(os.fspath(data_dir), str)
        or data_dir == ""
    ):
        raise BadInput(f"data_dir must be a path, not {shown(repr(data_dir))}.")
    data_dir, embedded = Path(data_dir), list(embedded)
    where = f"data_dir {shown(data_dir)}"
    if kind(data_dir, where) != "folder":
        raise BadInput(f"{where} is not a folder; give the one that holds the tasks.")
    root = data_dir / name
    there = kind(root, shown(root)) == "folder"
    if there and name in embedded:
        raise BadInput(f"{name!r} is an embedded task; rename the folder {shown(root)}.")
    if there or name in embedded:
        return root if there else None
    try:
        names = [
            path.name for path in data_dir.iterdir() if path.name.isprintable() and path.is_dir()
        ]
    except OSError as error:
        raise BadInput(f"{where} cannot be read ({reason(error)}).") from error
    choose(f"task in {shown(data_dir)}", name, [*names, *embedded])


def read_lists(root: Path) -> tuple[list[str], list[list[Item]]]:
    """Class names, and the pictures of train, val and test, from a task's lists.

    Pictures become three channels of 8 bits, as with torchvision's ImageFolder: palettes are
    resolved, grey is repeated, CMYK is converted without a profile, an alpha channel is dropped (a
    pixel has the stored colour, however transparent), the EXIF orientation is ignored, and of
    several frames the first is used. A channel of 16 bits is scaled to 8, 65535 to 255: grey is
    rounded, of colours Pillow keeps the upper byte. Pixels that programs interpret differently
    (32-bit integers, signed numbers, floats, 12 bits) are refused.

    Args:
        root: the folder, with train800.txt, val200.txt, test.txt, and classes.txt for the names.

    Returns:
        names (one per class; without classes.txt the numbers up to the highest label), and the
        items of each split.

    Raises:
        BadInput: a list or classes.txt is missing, not a regular file, or ambiguous.
    """
    lists = _read_lists(root)
    names, seen = _class_names(root / "classes.txt", lists), {}
    for where, path, _ in (row for rows in lists for row in rows):
        if seen.setdefault(path, where) != where:
            raise BadInput(
                f"{where}: '{shown(path)}' is listed in {seen[path]}, too; list every picture once."
            )
    return names, [[(root / path, label, where) for where, path, label in rows] for rows in lists]


def _lines(file: Path, hint: str) -> list[tuple[int, str]]:
    """Stripped lines of a text file that are not blank, with their numbers; any line ends."""
    place = shown(file)
    form = kind(file, place)
    if form != "file":
        raise BadInput(f"{place} is {'not a regular file' if form else 'missing'}; {hint}.")
    try:
        content = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise BadInput(f"{place} cannot be read ({reason(error)}).") from error
    try:
        # UTF-16 of plain letters is UTF-8 with NULs
        text, bad = (content.decode("utf-8"), content.find(b"\0"))
    except UnicodeDecodeError as error:
        bad = error.start
    if bad >= 0:
        line = content[:bad].count(b"\n") + 1
        raise BadInput(f"{place}, line {line}: this is not plain text; save the file as UTF-8.")
    lines = [line.strip(" \t") for line in re.split("\r\n|\r|\n", text)]
    return [(number, line) for number, line in enumerate(lines, 1) if line]


def _read_lists(root: Path) -> list[list[Row]]:
    """The rows of the three lists."""
    lists = []
    for file in (root / name for name in LISTS.values()):
        rows = []
        for number, line in _lines(file, f"write one '{ROW}' a line"):
            where = f"{shown(file)}, line {number}"
            match = re.fullmatch(r"(.*[^ \t])[ \t]+(-?[0-9]{1,18})", line)
            if not match:
                raise BadInput(f"{where}: '{shown(line)}' is not '{ROW}'.")
            path, label = PurePosixPath(match[1]), int(match[2])
            if path.is_absolute() or ".." in path.parts:
                raise BadInput(
                    f"{where}: '{shown(path)}' leaves the folder; write a path that begins in it."
                )
            rows.append((where, path, label))
        if not rows:
            raise BadInput(f"{shown(file)} lists no image.")
        lists.append(rows)
    return lists


def _class_names(file: Path, lists: list[list[Row]]) -> list[str]:
    """The lines of classes.txt, one per class, else numbers; every label must have one."""
    rows = [row for rows in lists for row in rows]
    if not os.path.lexists(file):
        for where, _, label in rows:
            if label < 0:
                raise BadInput(f"{where}: label {label} is negative; number the classes from 0.")
            # a bound, since a mistyped label would otherwise make a class each number below it
            if label >= len(rows):
                raise BadInput(
                    f"{where}: label {label} is too high for {len(rows)} images; "
                    "number the classes from 0, or name them all in classes.txt."
                )
        return [str(number) for number in range(1 + max(label for *_, label in rows))]
    names = {}
    for number, name in _lines(file, "write the name of one class a line"):
        place = f"{shown(file)}, line"
        if number != len(names) + 1:
            raise BadInput(
                f"{place} {len(names) + 1}: write the name of class {len(names)}, not a blank line."
            )
        if name in names:
            raise BadInput(
                f"{place} {number}: '{shown(name)}' names the class of line {names[name]} "
                f"too; rename one."
            )
        names[name] = number
    if not names:
        raise BadInput(f"{shown(file)} names no class; write one a line.")
    for where, _, label in rows:
        if not 0 <= label < len(names):
            raise BadInput(
                f"{where}: label {label} is none of {len(names)} classes, the lines of classes.txt."
            )
    return list(names)
