"""Some hundreds of damaged archives: each gives one line or the whole, none a traceback, none
writes outside."""

import bz2
import gzip
import io
import lzma
import random
import re
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from visprompt.data import unpacking
from visprompt.errors import BadInput

RANDOM = random.Random(0)
MEMBERS = {
    "set/a.txt": b"letters " * 900,
    "set/deep/er/b.bin": RANDOM.randbytes(9000),
    "set/empty.txt": b"",
    "set/c.bin": RANDOM.randbytes(3000),
}
PACKERS = {
    ".tar": lambda data: data,
    ".tar.gz": gzip.compress,
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
}
TIMES = 12  # damages of each kind for each form of archive


def tarred(members: dict[str, bytes], kind=tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(members: dict[str, bytes], compression=zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


WHOLE = {f"set{end}": packer(tarred(MEMBERS)) for end, packer in PACKERS.items()}
WHOLE |= {
    "set.tgz": gzip.compress(tarred(MEMBERS, tarfile.PAX_FORMAT)),
    "set.bin.gz": gzip.compress(MEMBERS["set/c.bin"]),
}
KINDS = ("deflated", "stored", "bzip2", "lzma")
METHODS = dict(
    zip(KINDS, (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
)
WHOLE |= {f"{kind}/set.zip": zipped(MEMBERS, METHODS[kind]) for kind in KINDS}


def cut(data, random):
    return data[: random.randrange(len(data))]


def flipped(data, random):
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ random.randrange(1, 256)]) + data[place + 1 :]


def head_flipped(data, random):
    return flipped(data[:600], random) + data[600:]


def tail_flipped(data, random):
    return data[:-200] + flipped(data[-200:], random)


def overwritten(data, random):
    place, length = random.randrange(len(data)), random.randrange(1, 700)
    return (
        data[:place] + random.randbytes(len(data[place : place + length])) + data[place + length :]
    )


def blanked(data, random):
    place, length = random.randrange(len(data)), random.randrange(1, 2000)
    return data[:place] + bytes(len(data[place : place + length])) + data[place + length :]


def left_out(data, random):
    place = random.randrange(len(data))
    return data[:place] + data[place + random.randrange(1, 700) :]


def put_in(data, random):
    place = random.randrange(len(data))
    return data[:place] + random.randbytes(random.randrange(1, 700)) + data[place:]


DAMAGES = (cut, flipped, head_flipped, tail_flipped, overwritten, blanked, left_out, put_in)


def tried(folder: Path, name: str, content: bytes) -> dict[str, bytes] | None:
    """What unpacking gives, path -> bytes, or None where it is refused, in one line and with
    nothing left."""
    folder.mkdir(parents=True)
    archive = folder / Path(name).name
    archive.write_bytes(content)
    around = sorted(path for path in folder.parent.iterdir())
    try:
        into = unpacking.unpack(archive)
    except BadInput as error:
        assert "\n" not in str(error) and str(archive) in str(error)
        assert [path.name for path in folder.iterdir()] == [archive.name]
        return None
    finally:
        assert sorted(path for path in folder.parent.iterdir()) == around
    assert sorted(path.name for path in folder.iterdir()) == sorted([into.name, archive.name])
    if into.is_file():
        return {"": into.read_bytes()}
    return {
        str(path.relative_to(into)): path.read_bytes() for path in into.rglob("*") if path.is_file()
    }


@pytest.mark.refused
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_archive_is_whole_or_refused(tmp_path, name, damage):
    """A damage that changes no content (the time of a file, say) may be taken; a tar's contents
    have no checksum."""
    whole = (
        {"": MEMBERS["set/c.bin"]}
        if name == "set.bin.gz"
        else {k[4:]: v for k, v in MEMBERS.items()}
    )
    assert tried(tmp_path / "whole", name, WHOLE[name]) == whole
    random_, refused = random.Random(f"{name} {damage.__name__}"), 0
    for number in range(TIMES):
        found = tried(tmp_path / str(number), name, damage(WHOLE[name], random_))
        refused += found is None
        if found is not None and name == "set.tar":
            assert {k: len(v) for k, v in found.items()} == {k: len(v) for k, v in whole.items()}
        elif found is not None:
            assert found == whole
    assert refused or (
        damage in (flipped, overwritten, blanked, head_flipped, tail_flipped) and name == "set.tar"
    )


def flags(data: bytes, bit: int) -> bytes:
    """A zip whose members all have a flag more, in its list and before each of them."""
    found = bytearray(data)
    for mark, place in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        for hit in re.finditer(re.escape(mark), data):
            (old,) = struct.unpack_from("<H", found, hit.start() + place)
            struct.pack_into("<H", found, hit.start() + place, old | bit)
    return bytes(found)


LATIN = zipped({"set/name": b"x"}).replace(b"set/name", b"set/\xff\xfe\xe9!")
# each says that the next has a longer name
LONG_NAMES = b"".join(tarred({"x" * 200: b""})[:1024] for _ in range(3000))
ODD = {
    "an encrypted zip": ("set.zip", flags(zipped({"a": b"x" * 99}), 1)),
    "a zip with strong encryption": ("set.zip", flags(zipped({"a": b"x" * 99}), 0x41)),
    "a patch as a zip": ("set.zip", flags(zipped({"a": b"x" * 99}), 0x20)),
    "a name in no encoding": ("set.zip", flags(LATIN, 0x800)),
    "a name of a zip with two dots": ("set.zip", zipped({"set/../../../out": b"x"})),
    "a name of a tar with two dots": ("set.tar", tarred({"set/../../../out": b"x"})),
    "an absolute name": ("set.tar", tarred({"/tmp/visprompt-out": b"x"})),
    "a name too long": ("set.tar", tarred({"x" * 300: b"x"})),
    "a name too long in a zip": ("set.zip", zipped({"x" * 300: b"x"})),
    "a name with nothing in it": ("set.zip", zipped({"q": b"x"}).replace(b"q", b".")),
    "the folder itself": ("set.tar", tarred({".": b"x"})),
    "a file that is a folder too": ("set.tar", tarred({"a": b"x", "a/b": b"x"})),
    "a file that is a folder too, in a zip": ("set.zip", zipped({"a": b"x", "a/b": b"x"})),
    "a tar that ends between two members": ("set.tar", tarred(MEMBERS)[: 512 + 7680]),
    "a tar whose second header is damaged": (
        "set.tar",
        tarred(MEMBERS)[:8192] + b"?" + tarred(MEMBERS)[8193:],
    ),
    "a tar with a header blanked": (
        "set.tar",
        tarred(MEMBERS)[:8192] + bytes(512) + tarred(MEMBERS)[8704:],
    ),
    "a tar that holds nothing": ("set.tar", bytes(10240)),
    "a zip that holds nothing": ("set.zip", zipped({})),
    "names of names without end": ("set.tar", LONG_NAMES),
    "a header that is larger than memory": (
        "set.tar",
        tarred({"x" * 200: b""}).replace(b"00000000311", b"77777777777"),
    ),
    "a packed tar cut in its last bytes": ("set.tar.gz", gzip.compress(tarred(MEMBERS))[:-6]),
    "a packed tar with another checksum": (
        "set.tar.gz",
        gzip.compress(tarred(MEMBERS))[:-8] + b"abcdefgh",
    ),
    "a web page": ("set.tar.gz", b"<!doctype html><title>Log in</title>"),
    "a web page as a zip": ("set.zip", b"<html>" * 99),
    "a zip called a tar": ("set.tar.gz", zipped(MEMBERS)),
    "a tar called a zip": ("set.zip", tarred(MEMBERS)),
    "zeros": ("set.tar.xz", bytes(9999)),
    "noise": ("set.tar.bz2", b"BZh9" + RANDOM.randbytes(9999)),
}


@pytest.mark.refused
@pytest.mark.parametrize("what", ODD)
def test_an_odd_archive_is_refused(tmp_path, what):
    name, content = ODD[what]
    assert tried(tmp_path / "in", name, content) is None


@pytest.mark.parametrize(
    "name",
    ["ünïcode", "a\nb", "café".encode("latin-1").decode("utf-8", "surrogateescape"), "a" * 250],
)
def test_an_odd_name_that_a_disk_takes_is_kept(tmp_path, name):
    assert tried(tmp_path / "in", "set.tar", tarred({f"set/{name}": b"x"})) == {name: b"x"}


def test_a_hole_counts_as_the_bytes_that_it_stands_for(tmp_path, monkeypatch):
    """A sparse file of a tar: few bytes in the archive, many on the disk."""
    monkeypatch.setattr(unpacking, "LEAST", 2**16)
    info = tarfile.TarInfo("set/hole")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    # a piece; the size in full
    head[386:410], head[483:495] = (b"00000000000\0" + b"00000001000\0", b"77777777777\0")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    (tmp_path / "set.tar").write_bytes(bytes(head) + bytes(512 + 10240))
    with pytest.raises(BadInput, match="grows to more than"):
        unpacking.unpack(tmp_path / "set.tar")
