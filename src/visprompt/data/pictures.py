"""Read one picture and convert it to three channels of 8 bits and a size."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ..errors import BadInput


def shown(value: object) -> str:
    """A path, line or argument for messages: one line of limited length."""
    text = str(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:100]}...{text[-97:]}"


def kind(path: Path, where: str) -> str:
    """Type of a path, links followed: "file" (a regular one), "folder", "other", or "" for nothing.

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
    """The system's reason of a failure, such as "Permission denied", else the error's name."""
    return getattr(error, "strerror", None) or type(error).__name__


def read_picture(path: Path, size: int, resize: str, where: str) -> np.ndarray:
    """Read an image file as (3, size, size) uint8, by a resize rule.

    Raises:
        BadInput: it is missing, not a regular file, or ambiguous; the message begins with `where`.
    """
    where = f"{where}: image {shown(path)}"
    found = kind(path, where)
    if found != "file":
        raise BadInput(f"{where} {'is not a regular file' if found else 'does not exist'}.")
    with readable(where), path.open("rb") as file, Image.open(file) as opened:
        return pixels(opened, size, resize, where)


@contextlib.contextmanager
def readable(where: str) -> Iterator[None]:
    """Turn any error raised inside into one line that names the picture.

    Raises:
        BadInput: instead of any other error; the message begins with `where`.
    """
    try:
        yield
    except BadInput:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise BadInput(
            f"{where} has more than {Image.MAX_IMAGE_PIXELS:,} pixels; make it smaller."
        ) from error
    except Exception as error:  # Pillow's readers raise all kinds on damaged files
        raise BadInput(
            f"{where} cannot be read ({reason(error)}); fetch it again or save it as PNG."
        ) from error


def pixels(image: Image.Image, size: int, resize: str, where: str) -> np.ndarray:
    """A picture as (3, size, size) uint8 by a resize rule; see `tasks.load_task`."""
    if not min(image.size):
        raise BadInput(f"{where} has no pixel; give another picture.")
    image = _eight_bits(image, where)
    kernel = Image.BICUBIC if resize.endswith("bicubic") else Image.BILINEAR
    if resize.startswith("direct"):
        image = image.resize((size, size), kernel)
    else:
        short = -(-size * 8 // 7) / min(image.size)
        wide, high = (max(size, round(side * short)) for side in image.size)
        if wide * high > (Image.MAX_IMAGE_PIXELS or np.inf):
            raise BadInput(
                f"{where} is {image.width} x {image.height} pixels, too long for a centre; "
                f"resize='direct'."
            )
        left, top = (wide - size) // 2, (high - size) // 2
        image = image.resize((wide, high), kernel).crop((left, top, left + size, top + size))
    return np.asarray(image).transpose(2, 0, 1)


def _eight_bits(image: Image.Image, where: str) -> Image.Image:
    """A picture in mode "RGB"; see `folders.read_lists`. Pillow alone would clip above 255."""
    tags = image.tag_v2 if image.format == "TIFF" else {}
    # a TIFF says what numbers mean
    bits, black, sample = (tags.get(258, (16,)), tags.get(262, 1), tags.get(339, (1,)))
    # Pillow reads a 16-bit PGM as "I", brought to 65535
    deep = image.mode.startswith("I;16") or (image.format, image.mode) == ("PPM", "I")
    known = image.format in ("PNG", "JPEG2000", "PPM", "TIFF") and bits == (16,) and black == 1
    if set(sample) != {1} or (deep and not known) or (not deep and image.mode in ("I", "F")):
        raise BadInput(
            f"{where} has pixels of more than one meaning (mode {image.mode}); convert it "
            f"to 8 bits."
        )
    if deep:
        image = Image.fromarray(
            ((np.asarray(image).astype(np.uint32) + 128) // 257).astype(np.uint8)
        )
    return image.convert("RGB")
