"""Tasks in folders of pictures, as the field's code lays them out: three lists, and classes.txt for the names.

What is read is decided by the lists alone, and in one way: every file is a regular one, text is UTF-8, every picture
stands once in the three lists, under a path inside the folder. A symbolic link inside the folder may point elsewhere:
that is up to whoever made it.
"""

import codecs
import os
import re
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath

import numpy as np
import torch
from PIL import Image

from ..errors import BadInput, choose

LISTS = {"train": "train800.txt", "val": "val200.txt", "test": "test.txt"}
ROW = "relative/path label"
Row = tuple[str, PurePosixPath, int]  # file and line, path in the folder, label


def shown(value: object) -> str:
    """What a message shows of a path, a line or an argument: on one line, of a length that can be read."""
    text = str(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:100]}...{text[-97:]}"


def check_name(name: object) -> None:
    """Refuse whatever is not the plain name of a folder.

    Raises:
        BadInput: the name is no text, or empty, or a path, or holds characters that cannot be printed.
    """
    if not isinstance(name, str) or not name.isprintable() or name in ("", "..") or PurePath(name).name != name:
        raise BadInput(f"a task's name is the name of a folder or of an embedded task, not {shown(repr(name))}.")


def task_folder(data_dir: str | os.PathLike, name: str, embedded: Iterable[str]) -> Path | None:
    """The folder data_dir/name, or None where the name is an embedded task's and data_dir has no such folder.

    Raises:
        BadInput: data_dir is no folder or cannot be read, it has no such task, or one named like an embedded task.
    """
    if not isinstance(data_dir, (str, os.PathLike)) or not isinstance(os.fspath(data_dir), str) or data_dir == "":
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
        names = [path.name for path in data_dir.iterdir() if path.name.isprintable() and path.is_dir()]
    except OSError as error:
        raise BadInput(f"{where} cannot be read ({reason(error)}).") from error
    choose(f"task in {shown(data_dir)}", name, [*names, *embedded])


def read_folder(root: Path, size: int, resize: str) -> tuple[list[str], list[tuple[torch.Tensor, torch.Tensor]]]:
    """Names of the classes, and the splits train, val and test of a task's folder.

    Pictures become three channels of 8 bits, as they are with torchvision's ImageFolder: palettes are looked up,
    grey is repeated, CMYK is converted without a profile, an alpha channel is dropped (a pixel has the colour that
    is stored, however transparent it is), the orientation in EXIF is not followed, and of several frames the first
    is taken. A channel of 16 bits is brought to 8, 65535 to 255: grey is rounded, of colours Pillow keeps the upper
    byte. Pixels that mean different things to different programs (whole numbers of 32 bits, signed numbers, floats,
    12 bits) are refused.

    Args:
        root: the folder, with train800.txt, val200.txt, test.txt, and classes.txt for the names.
        size: pixels of a side.
        resize: "direct" or "crop", see `tasks.load_task`.

    Returns:
        names (one a class; without classes.txt the numbers up to the highest label), and for each split images
        (N, 3, size, size) uint8 and labels (N,) int64.

    Raises:
        BadInput: a list, classes.txt or a picture is missing, no regular file, or cannot be read in one way.
    """
    lists = _read_lists(root)
    names = _class_names(root / "classes.txt", lists)
    seen, splits = {}, []
    for where, path, _ in (row for rows in lists for row in rows):
        if seen.setdefault(path, where) != where:
            raise BadInput(f"{where}: '{shown(path)}' is listed in {seen[path]}, too; list every picture once.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of damaged EXIF and the like: a picture is read or refused
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for rows in lists:
            images = np.empty((len(rows), 3, size, size), np.uint8)
            for number, (where, path, _) in enumerate(rows):
                images[number] = _read_image(root / path, size, resize, where)
            splits.append((torch.from_numpy(images), torch.tensor([label for *_, label in rows])))
    return names, splits


def kind(path: Path, where: str) -> str:
    """What a path is, links followed: "file" (a regular one), "folder", "other", or "" for nothing.

    Raises:
        BadInput: it cannot be found out; the message begins with `where`.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:  # ValueError: NUL, or half of a surrogate pair
        raise BadInput(f"{where} cannot be read ({reason(error)}).") from error
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def reason(error: Exception) -> str:
    """What the system says of a failure, such as "Permission denied", else the error's name."""
    return getattr(error, "strerror", None) or type(error).__name__


def _lines(file: Path, hint: str) -> list[tuple[int, str]]:
    """The lines of a text file that are not blank, stripped, with their numbers; any line ends."""
    place = shown(file)
    found = kind(file, place)
    if found != "file":
        raise BadInput(f"{place} is {'not a regular file' if found else 'missing'}; {hint}.")
    try:
        content = file.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise BadInput(f"{place} cannot be read ({reason(error)}).") from error
    try:
        text, bad = content.decode("utf-8"), content.find(b"\0")  # UTF-16 of plain letters is UTF-8 with NULs
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
                raise BadInput(f"{where}: '{shown(path)}' leaves the folder; write a path that begins in it.")
            rows.append((where, path, label))
        if not rows:
            raise BadInput(f"{shown(file)} lists no image.")
        lists.append(rows)
    return lists


def _class_names(file: Path, lists: list[list[Row]]) -> list[str]:
    """The lines of classes.txt, one a class, else numbers; every label has one."""
    rows = [row for rows in lists for row in rows]
    if not os.path.lexists(file):
        for where, _, label in rows:
            if label < 0:
                raise BadInput(f"{where}: label {label} is negative; number the classes from 0.")
            if label >= len(rows):  # a bound, since a mistyped label would otherwise make a class each number below it
                raise BadInput(
                    f"{where}: label {label} is too high for {len(rows)} images; "
                    "number the classes from 0, or name them all in classes.txt."
                )
        return [str(number) for number in range(1 + max(label for *_, label in rows))]
    names = {}
    for number, name in _lines(file, "write the name of one class a line"):
        place = f"{shown(file)}, line"
        if number != len(names) + 1:
            raise BadInput(f"{place} {len(names) + 1}: write the name of class {len(names)}, not a blank line.")
        if name in names:
            raise BadInput(f"{place} {number}: '{shown(name)}' names the class of line {names[name]} too; rename one.")
        names[name] = number
    if not names:
        raise BadInput(f"{shown(file)} names no class; write one a line.")
    for where, _, label in rows:
        if not 0 <= label < len(names):
            raise BadInput(f"{where}: label {label} is none of {len(names)} classes, the lines of classes.txt.")
    return list(names)


def _read_image(path: Path, size: int, resize: str, where: str) -> np.ndarray:
    """An image file -> (3, size, size) uint8 by a resize rule."""
    where = f"{where}: image {shown(path)}"
    found = kind(path, where)
    if found != "file":
        raise BadInput(f"{where} {'is not a regular file' if found else 'does not exist'}.")
    try:
        with path.open("rb") as file, Image.open(file) as opened:
            image = _eight_bits(opened, where)
    except BadInput:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise BadInput(f"{where} has more than {Image.MAX_IMAGE_PIXELS:,} pixels; make it smaller.") from error
    except Exception as error:  # Pillow's readers raise all kinds on damaged files
        raise BadInput(f"{where} cannot be read ({reason(error)}); fetch it again or save it as PNG.") from error
    if resize == "direct":
        image = image.resize((size, size), Image.BILINEAR)
    else:
        short = -(-size * 8 // 7) / min(image.size)
        wide, high = (max(size, round(side * short)) for side in image.size)
        if wide * high > (Image.MAX_IMAGE_PIXELS or np.inf):
            raise BadInput(f"{where} is {image.width} x {image.height} pixels, too long for a centre; resize='direct'.")
        left, top = (wide - size) // 2, (high - size) // 2
        image = image.resize((wide, high), Image.BILINEAR).crop((left, top, left + size, top + size))
    return np.asarray(image).transpose(2, 0, 1)


def _eight_bits(image: Image.Image, where: str) -> Image.Image:
    """A picture in mode "RGB"; see `read_folder`. Left to itself, Pillow cuts off all above 255."""
    tags = image.tag_v2 if image.format == "TIFF" else {}
    bits, black, sample = tags.get(258, (16,)), tags.get(262, 1), tags.get(339, (1,))  # a TIFF says what numbers mean
    # Pillow reads a 16-bit PGM as "I", brought to 65535
    deep = image.mode.startswith("I;16") or (image.format, image.mode) == ("PPM", "I")
    known = image.format in ("PNG", "JPEG2000", "PPM", "TIFF") and bits == (16,) and black == 1
    if set(sample) != {1} or (deep and not known) or (not deep and image.mode in ("I", "F")):
        raise BadInput(f"{where} has pixels of more than one meaning (mode {image.mode}); convert it to 8 bits.")
    if deep:
        image = Image.fromarray(((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8))
    return image.convert("RGB")
