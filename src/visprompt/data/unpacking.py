"""Unpack archives whole or not at all, and never outside their folder.

Python's own `tarfile` and `zipfile` unpack. Links, devices, absolute names and names with ".." are
refused, not repaired, since no data set of the papers has them. The unpacked size is bounded before
the disk is full.
"""

import bz2
import errno
import gzip
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ..errors import BadInput
from .pictures import reason, shown

ENDS = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tar", ".zip", ".gz")
# first bytes -> what reads such a file
OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
LEAST, RATIO = 2**30, 200  # an archive may grow to a gibibyte, or to so many times its own size
MEMBERS = 5_000_000
UNDONE = ".unpacking-"


def stem(name: str) -> str:
    """An archive's name without its ending (what it becomes); "" if it is not an archive."""
    return next((name.removesuffix(end) for end in ENDS if name.endswith(end) and name != end), "")


def unpack(archive: Path) -> Path:
    """Unpack an archive beside itself, to its name without the ending (a folder; of a .gz a file).

    A folder in the archive that has that name already becomes the folder itself. What is there
    already is kept.

    Raises:
        BadInput: the archive is damaged, leaves its folder, holds links, grows too much, or cannot
            be written.
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
            if single:
                with gzip.open(archive) as packed, open(undone / into.name, "wb") as file:
                    shutil.copyfileobj(Bounded(archive, packed), file, 2**20)  # type: ignore[arg-type, type-var]
            else:
                (unzip if archive.name.endswith(".zip") else untar)(archive, undone)
            parts = list(undone.iterdir())
            if not parts:
                raise EOFError("it holds nothing")
            alone = [part.name for part in parts] == [into.name] and (single or parts[0].is_dir())
            os.replace(parts[0] if alone else undone, into)
            into.chmod(0o644 if single else 0o755)  # mkdtemp gives 0o700
        finally:
            shutil.rmtree(undone, ignore_errors=True)
    except BadInput:
        raise
    except Exception as error:  # the readers of archives raise all kinds on damaged ones
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise BadInput(
                f"{shown(archive)} cannot be unpacked ({reason(error)}); mend that and fetch again."
            ) from error
        what = shown(str(error) or type(error).__name__)
        raise BadInput(
            f"{shown(archive)} is a damaged archive ({what}); delete it and fetch it again."
        ) from error
    return into


def leftovers(folder: Path) -> Iterator[Path]:
    """What a killed unpacking left in a folder."""
    return folder.glob(f"{UNDONE}*")


class Bounded:
    """An archive's unpacked bytes as a file with a maximum size; its members are checked too."""

    def __init__(self, archive: Path, file=None):
        self.archive, self.file = archive, file
        self.left = self.allowed = max(LEAST, RATIO * archive.stat().st_size)
        self.members = 0

    def read(self, size: int) -> bytes:
        """At most `size` bytes."""
        block = self.file.read(size)
        self.grow(len(block))
        return block

    def grow(self, size: int) -> None:
        """Count bytes, and refuse an archive that has too many."""
        self.left -= size
        if self.left < 0 or self.members > MEMBERS:
            raise BadInput(
                f"{shown(self.archive)} grows to more than {self.allowed:,} bytes or is "
                f"endless; do not use it."
            )

    def check(self, name: str, plain: bool, size: int) -> None:
        """Refuse a member that is not a plain file or folder, or lies outside; count its size."""
        if not plain:
            raise BadInput(
                f"{shown(self.archive)} holds the link or device '{shown(name)}'; do not use it."
            )
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
            raise BadInput(
                f"{shown(self.archive)} would write '{shown(name)}' outside its folder; do "
                f"not use it."
            )
        self.members += 1
        self.grow(size)


def unzip(archive: Path, folder: Path) -> None:
    """Unpack a zip; members keep to the size that the directory states, and to their checksums."""
    bound = Bounded(archive)
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
            bound.check(info.filename, plain, info.file_size)
            opened.extract(info, folder)


class Member(tarfile.TarInfo):
    """A tar member with an intact header; tarfile takes a damaged one for the archive's end."""

    @classmethod
    def fromtarfile(cls, opened: tarfile.TarFile) -> tarfile.TarInfo:  # type: ignore[override]
        try:
            return super().fromtarfile(opened)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise  # the block of zeros behind the last member
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from error


def untar(archive: Path, folder: Path) -> None:
    """Unpack a tar (plain, gzip, bzip2 or xz) and read it to its end, where checksums are."""
    with open(archive, "rb") as file:
        head = file.read(6)
    opener = next((opener for magic, opener in OPENERS.items() if head.startswith(magic)), open)
    with opener(archive, "rb") as packed:  # type: ignore[operator]
        stream = Bounded(archive, packed)

        def allowed(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
            size = member.size if member.issparse() else 0  # which takes no bytes of the stream
            stream.check(member.name, member.isreg() or member.isdir(), size)
            return tarfile.data_filter(member, path)

        with tarfile.open(fileobj=stream, mode="r|", tarinfo=Member) as opened:  # type: ignore[call-overload]
            opened.extractall(folder, filter=allowed)
            while rest := opened.fileobj.read(2**20):
                if rest.strip(b"\0"):
                    raise tarfile.ReadError("it goes on behind its end")
