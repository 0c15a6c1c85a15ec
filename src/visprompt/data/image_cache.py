"""Cache of decoded and resized images in the user's cache folder, read by `stored.Stored`.

An entry is a folder: `train.u8`, `val.u8`, `test.u8`, and `entry.json`. Its name is a digest of all
that decides its bytes: names, sizes and times of the pictures, labels, image size, resize rule, and
the decoding code. One process writes it, whole or not at all; others that need it wait.
"""

import contextlib
import errno
import functools
import glob
import hashlib
import json
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from PIL import __version__ as pillow

from ..errors import BadInput
from ..progress import progress
from ..records.locks import turn
from . import fine_layouts, full_layouts, pictures, raw_layouts
from .pictures import pixels, read_picture, reason, shown
from .stored import Entry, Stored

# a file, or what gives the picture when it is needed
Picture = Path | Callable[[], np.ndarray | Image.Image]
Item = tuple[Picture, int, str]  # a picture, its label, and what a message says of where it stands
Split = tuple[torch.Tensor, torch.Tensor]
PARTS = ("train", "val", "test")
SMALL = 2**26  # bytes of a task's images that are decoded anew each time: 445 images of 224 pixels
SPARE = 2**28  # bytes of a disk that are left free
CHUNK, SHARE = 128, 16  # images decoded side by side, and of these by one thread
UNDONE = ".undone-"


def load_images(
    task: str, root: Path, parts: Sequence[Sequence[Item]], size: int, resize: str
) -> list[Split]:
    """The images of a task's three splits, decoded now or memory-mapped from the cache folder.

    Args:
        task: its name.
        root: the folder of its pictures.
        parts: the items of train, val and test.
        size: side of an image in pixels.
        resize: one of `tasks.RESIZES`, see `tasks.load_task`.

    Returns:
        Images (N, 3, size, size) uint8 and labels (N,) int64 of each split.

    Raises:
        BadInput: pictures are missing or ambiguous, or the cache folder is full or cannot be
            written.
    """
    facts = check_all_there(root, parts)
    labels = [torch.tensor([label for _, label, _ in items]) for items in parts]
    shapes = [(len(items), 3, size, size) for items in parts]
    need, folder = sum(map(np.prod, shapes)), cache_folder()
    if need <= SMALL or folder is None:
        return [
            (in_memory(items, shape, resize), truth)
            for items, shape, truth in zip(parts, shapes, labels)
        ]
    digest = hashlib.sha256(
        repr((code(), str(root.resolve()), task, size, resize, facts)).encode()
    ).hexdigest()[:12]
    place = folder / f"{task[:60]}-{size}-{resize}-{digest}"
    if not whole(place, shapes):
        make(place, task, root, parts, labels, shapes, resize)
    entry = Entry(task, json.loads((place / "entry.json").read_text())["fingerprint"], labels)
    return [
        (Stored.at(place / f"{part}.u8", s, entry), l) for part, s, l in zip(PARTS, shapes, labels)
    ]


def in_memory(items: Sequence[Item], shape: tuple[int, ...], resize: str) -> torch.Tensor:
    """The decoded pictures of a split, (N, 3, S, S) uint8, without the cache."""
    images, start = np.empty(shape, np.uint8), 0
    for some in decoded(items, shape[-1], resize):
        images[start : start + len(some)] = some
        start += len(some)
    return torch.from_numpy(images)


def room(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros of a shape, uint8: in memory, or above `SMALL` bytes in a file of the cache folder.

    The file has no name and ends with the array; of its pages the system keeps those in use.
    """
    need, folder = int(np.prod(shape)), cache_folder()
    if need <= SMALL or folder is None:
        return np.zeros(shape, np.uint8)
    elsewhere = "name another folder in VISPROMPT_CACHE, or none there to decode into memory"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < need + SPARE:
            raise OSError(errno.ENOSPC, f"no {need / 2**30:.1f} GiB free")
        with tempfile.TemporaryFile(dir=folder) as file:
            with contextlib.suppress(AttributeError):  # not on every system
                os.posix_fallocate(file.fileno(), 0, need)
            return np.memmap(file, np.uint8, "w+", shape=shape)
    except OSError as error:
        raise BadInput(
            f"{shown(folder)} cannot hold images ({reason(error)}); {elsewhere}."
        ) from error


def cache_folder() -> Path | None:
    """VISPROMPT_CACHE, else a folder in the user's cache; None for "none" (decode in memory)."""
    given = os.environ.get("VISPROMPT_CACHE")
    if given:
        return None if given == "none" else Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("visprompt")) / "images"


@functools.cache
def code() -> str:
    """Digest of the decoding modules and Pillow's version."""
    files = (
        Path(module.__file__).read_bytes()
        for module in (pictures, raw_layouts, full_layouts, fine_layouts)
    )
    return hashlib.sha256(b"".join(files)).hexdigest() + pillow


def check_all_there(root: Path, parts: Sequence[Sequence[Item]]) -> list:
    """The identity of each picture and its label; for files with size and times.

    Raises:
        BadInput: pictures are missing; the message says how many of which split, and the first.
    """
    files, facts, missing, first = {}, [], {}, ""
    for part, items in zip(PARTS, parts):
        if not items:
            raise BadInput(
                f"{shown(root)}: split {part} has no picture; fetch the data set again, or "
                f"add some."
            )
        for picture, label, where in items:
            try:
                facts.append((part, label, *identity(picture, files)))
            except (
                OSError,
                ValueError,
            ) as error:  # ValueError: NUL in a path, or half of a surrogate pair
                if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                    raise BadInput(
                        f"{where}: image {shown(path_of(picture))} cannot be read "
                        f"({reason(error)})."
                    ) from error
                missing[part] = missing.get(part, 0) + 1
                first = first or f"{where}: image {shown(path_of(picture))} does not exist"
    if missing:
        counts = [
            f"{count:,} of {len(parts[PARTS.index(part)]):,} pictures of {part}"
            for part, count in missing.items()
        ]
        raise BadInput(
            f"{first}; missing: {' and '.join(counts)}. Put them there, or fetch the data "
            f"set again."
        )
    return facts


def identity(picture, files: dict) -> tuple:
    """Identity of a picture: a file's path, size and times, and its place in the file."""
    if isinstance(picture, Path):
        if picture not in files:
            about = os.stat(picture)
            # the time of the last change of any kind, which nobody can set: a picture that is
            # replaced by one of the same size and time has another. No inode, of which some network
            # disks make up new ones
            files[picture] = str(picture), about.st_size, about.st_mtime_ns, about.st_ctime_ns
        return files[picture]
    if isinstance(picture, partial):
        return (picture.func.__qualname__, *(identity(part, files) for part in picture.args))
    if isinstance(picture, (int, str)):
        return (picture,)
    return (type(picture).__qualname__, *(identity(part, files) for part in vars(picture).values()))


def path_of(picture) -> Path | str:
    """The file of a picture, or the function that draws it."""
    if isinstance(picture, partial):
        return next(
            (part for part in picture.args if isinstance(part, Path)), picture.func.__name__
        )
    return picture if isinstance(picture, Path) else picture.path


def numbers(picture) -> list[int]:
    """Position of a picture in its file."""
    return [part for part in getattr(picture, "args", ()) if isinstance(part, int)]


def decoded(items: Sequence[Item], size: int, resize: str) -> Iterator[np.ndarray]:
    """The decoded pictures of a split in batches (B, 3, size, size) uint8."""

    def one(item: Item) -> np.ndarray:
        picture, _, where = item
        if isinstance(picture, Path):
            return read_picture(picture, size, resize, where)
        where = (
            f"{where}: {shown(path_of(picture))}"
            f"{''.join(f', number {n}' for n in numbers(picture))}"
        )
        try:
            image = picture()
            return pixels(
                image if isinstance(image, Image.Image) else Image.fromarray(image),
                size,
                resize,
                where,
            )
        except (OSError, ValueError, KeyError, IndexError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(
                f"{where} cannot be read ({reason(error)}); fetch the data set again."
            ) from error

    def some(items: Sequence[Item]) -> np.ndarray:
        return np.ascontiguousarray([one(item) for item in items])

    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        # of damaged EXIF and the like: a picture is read or refused
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for start in range(0, len(items), CHUNK):
            few = [
                items[place : place + SHARE]
                for place in range(start, min(start + CHUNK, len(items)), SHARE)
            ]
            yield np.concatenate(list(pool.map(some, few)))


def whole(place: Path, shapes: Sequence[tuple]) -> bool:
    """Whether an entry exists, with files of the right lengths."""
    try:
        sizes = [(place / f"{part}.u8").stat().st_size for part in PARTS]
        return (place / "entry.json").is_file() and sizes == [
            int(np.prod(shape)) for shape in shapes
        ]
    except OSError:
        return False


def make(place: Path, task: str, root: Path, parts, labels, shapes, resize: str) -> None:
    """Decode the images of a task into an entry, or wait while another process does."""
    folder, need = place.parent, int(sum(map(np.prod, shapes)))
    gib = f"{need / 2**30:.1f} GiB"
    elsewhere = (
        "name another folder in VISPROMPT_CACHE, or VISPROMPT_CACHE=none to keep "
        "the images in memory"
    )
    try:
        with turn(folder / ".turns" / place.name) as alone:
            if whole(place, shapes):
                return
            undone = folder / f"{UNDONE}{place.name}"
            if alone:
                shutil.rmtree(undone, ignore_errors=True)  # of a process that was killed
            else:  # others may be at the same work, and the first one's will do
                undone = undone.with_name(f"{undone.name}-{platform.node()}-{os.getpid()}")
            about = {
                "task": task,
                "root": str(root.resolve()),
                "size": shapes[0][-1],
                "resize": resize,
            }
            for old in entries(folder, about):
                shutil.rmtree(old)
            free = shutil.disk_usage(folder).free
            if free < need + SPARE:
                room = f"has {free / 2**30:.1f} GiB free"
                raise BadInput(
                    f"the images of {task} take {gib}, and {shown(folder)} {room}; {elsewhere}."
                )
            undone.mkdir()
            try:
                label = f"decoding {task} to {shapes[0][-1]} px, {gib} in {folder}"
                about["fingerprint"] = write(undone, task, parts, labels, shapes, resize, label)
                (undone / "entry.json").write_text(json.dumps(about, indent=1))
                move(undone, place, shapes)
            finally:
                shutil.rmtree(undone, ignore_errors=True)
    except OSError as error:
        raise BadInput(
            f"{shown(folder)} cannot keep {gib} of images of {task} ({reason(error)}); {elsewhere}."
        ) from error


def move(undone: Path, place: Path, shapes: Sequence[tuple]) -> None:
    """Move a finished entry to its place, unless a complete one is there by now."""
    try:
        os.replace(undone, place)
    except OSError:  # a folder is there
        if not whole(place, shapes):
            shutil.rmtree(place, ignore_errors=True)
            os.replace(undone, place)


def entries(folder: Path, about: dict) -> list[Path]:
    """The entries of the same task, folder, size and rule, whose pictures have changed since."""
    places = []
    for path in folder.glob(f"{glob.escape(about['task'][:60])}-*/entry.json"):
        with contextlib.suppress(OSError, ValueError):
            if about.items() <= json.loads(path.read_text()).items():
                places.append(path.parent)
    return places


def write(folder: Path, task: str, parts, labels, shapes, resize: str, label: str) -> str:
    """Write the files of an entry, flushed to disk, and return the task's fingerprint."""
    digest = hashlib.sha256(task.encode())  # as `tasks.Task.fingerprint`
    with progress(None, label, total=sum(map(len, parts)), unit=" images") as bar:
        for part, items, truth, shape in zip(PARTS, parts, labels, shapes):
            digest.update(str(shape).encode())
            with open(folder / f"{part}.u8", "wb") as file:
                with contextlib.suppress(AttributeError):  # not on every system
                    os.posix_fallocate(file.fileno(), 0, int(np.prod(shape)))
                for images in decoded(items, shape[-1], resize):
                    file.write(images.data)
                    digest.update(images.data.cast("B"))
                    bar.update(len(images))
                file.flush()
                os.fsync(file.fileno())
            digest.update(truth.numpy().tobytes())
    return digest.hexdigest()[:12]
