"""Archives, unpacked whole or not at all, and never outside their folder.

Links, devices, absolute names and names with ".." are refused rather than mended, since no data set of the papers has
them; what an archive grows to is bounded before the disk is full.
"""

import gzip
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import BadInput
from .pictures import reason, shown

ENDS = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tar", ".zip", ".gz")
LEAST, RATIO = 2**30, 200  # an archive may grow to a gibibyte, or to so many times its own size
MEMBERS = 5_000_000
UNDONE = ".unpacking-"
Member = tuple[str, IO[bytes] | None]  # name in the archive, its bytes; None for a folder


def stem(name: str) -> str:
    """An archive's name without its ending, the folder (of a .gz the file) it becomes; "" for what is no archive."""
    return next((name.removesuffix(end) for end in ENDS if name.endswith(end) and name != end), "")


def unpack(archive: Path) -> Path:
    """Unpack an archive beside itself: as a folder of its name without the ending, or as a file if it is one .gz.

    A folder in the archive that has that name already becomes the folder itself. What is there already is kept.

    Raises:
        BadInput: the archive is damaged, leaves its folder, holds links, grows too much, or cannot be written.
    """
    into = archive.parent / stem(archive.name)
    if os.path.lexists(into):
        return into
    try:
        if not archive.stat().st_size:
            raise EOFError("it is empty")
        undone = Path(tempfile.mkdtemp(prefix=UNDONE, dir=archive.parent))
        try:
            single = archive.name.endswith(".gz") and not archive.name.endswith(".tar.gz")
            members = [(into.name, gzip.open(archive))] if single else members_of(archive)
            write(archive, members, undone)
            parts = list(undone.iterdir())
            alone = [part.name for part in parts] == [into.name] and (single or parts[0].is_dir())
            os.replace(parts[0] if alone else undone, into)
            into.chmod(0o644 if single else 0o755)  # mkdtemp gives 0o700
        finally:
            shutil.rmtree(undone, ignore_errors=True)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile, NotImplementedError) as error:
        raise BadInput(f"{shown(archive)} is a damaged archive ({error}); delete it and fetch it again.") from error
    except OSError as error:
        raise BadInput(f"{shown(archive)} cannot be unpacked ({reason(error)}); mend that and fetch again.") from error
    return into


def leftovers(folder: Path) -> Iterator[Path]:
    """What an unpacking that was killed left in a folder."""
    return folder.glob(f"{UNDONE}*")


def members_of(archive: Path) -> Iterator[Member]:
    """The folders and plain files of a zip or a tar.

    Raises:
        BadInput: a member is a link, a device, or another thing that is no plain file.
    """
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise BadInput(f"{shown(archive)} holds the link or device '{shown(info.filename)}'; do not use it.")
                yield info.filename, None if info.is_dir() else opened.open(info)
    else:
        with tarfile.open(archive) as opened:
            for member in opened:
                if not (member.isreg() or member.isdir()):
                    raise BadInput(f"{shown(archive)} holds the link or device '{shown(member.name)}'; do not use it.")
                yield member.name, opened.extractfile(member) if member.isreg() else None


def write(archive: Path, members: Iterator[Member], folder: Path) -> None:
    """Write the members of an archive into an empty folder."""
    allowed = max(LEAST, RATIO * archive.stat().st_size)
    left = allowed
    for number, (name, content) in enumerate(members):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise BadInput(f"{shown(archive)} would write '{shown(name)}' outside its folder; do not use it.")
        place = folder / path
        if content is None:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with content, open(place, "xb") as file:  # a name that stands twice is refused
            while chunk := content.read(2**20):
                left -= len(chunk)
                if left < 0 or number > MEMBERS:
                    raise BadInput(f"{shown(archive)} grows to more than {allowed:,} bytes or is endless; do not use it.")
                file.write(chunk)
