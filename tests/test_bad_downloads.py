"""What a server, a note, a lock or a command line may hold that is no good: one line each, and
nothing is kept of it."""

import gzip
import itertools
import json
import os
import resource
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable

import pytest
from test_fetching import BODY, SUM, given, known, one, server, states  # noqa: F401 (fixtures)

from visprompt.__main__ import main
from visprompt.data import downloading, fetching
from visprompt.errors import BadInput

ZIP, PAGE = b"PK\3\4" + bytes(99), b"<!DOCTYPE html><title>Log in</title>"


class Raw(socketserver.ThreadingTCPServer):
    """Sends every client the same pieces with a pause between two, whatever it asks, and hangs
    up."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, pieces: Callable[[str], Iterable[bytes]], pause: float):
        self.pieces, self.pause, self.asked = pieces, pause, 0
        super().__init__(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True, args=(0.02,)).start()

    def handle_error(self, request, address):
        pass  # clients that go are part of the tests


class Answering(socketserver.StreamRequestHandler):
    def handle(self):
        self.server.asked += 1
        while self.rfile.readline(65537).strip():
            pass
        for piece in self.server.pieces(self.server.url):
            self.wfile.write(piece)
            if self.server.pause:
                time.sleep(self.server.pause)


@pytest.fixture
def answers(monkeypatch, known, tmp_path):  # noqa: F811
    """Fetch one file without a checksum from a server that sends these pieces: exit status, stderr,
    the server."""
    monkeypatch.setattr(downloading, "PAUSE", 0.0)
    monkeypatch.setattr(downloading, "PATIENCE", 0.25)
    servers = []

    def fetched(capsys, name, pieces, pause=0.0):
        servers.append(Raw(pieces, pause))
        known["birds"] = given({"url": f"{servers[-1].url}/{name}"})
        status = main(["data", "fetch", "birds", "--data-dir", str(tmp_path)])
        return status, capsys.readouterr().err, servers[-1]

    yield fetched
    for each in servers:
        each.shutdown()
        each.server_close()


def answer(body: bytes = b"", status: str = "200 OK", **headers) -> Callable:
    """An HTTP answer; URL in a header becomes the server's address, a header None is left out."""
    headers = {
        "Content-Length": len(body),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    head = "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""])
    return lambda url: [head.replace("URL", url).encode("latin-1") + body]


def moved(place: str, body: bytes = b"") -> Callable:
    return answer(body, "302 Found", Location=place)


def chunked(body: bytes) -> Callable:
    return answer(body, Content_Length=None, Transfer_Encoding="chunked")


def encoded(kind: str) -> Callable:
    return answer(gzip.compress(bytes(2**20)), Content_Encoding=kind)


GONE, BROKE, NOWHERE = "answers {}", "broke off 5 times", "leads to no file"
ANSWERS = {
    f"status {code}": ("a.zip", answer(status=f"{code} No"), GONE.format(code))
    for code in downloading.GONE
}
for code in (199, 204, 206, 302, 304, 416, 418, 429, 500, 502, 503, 504, 999):
    ANSWERS[f"status {code}"] = ("a.zip", answer(status=f"{code} No"), BROKE)
for name, said in {
    "nothing": b"",
    "another protocol": b"SSH-2.0-OpenSSH_9.9\r\n",
    "noise": bytes(range(128, 256)) * 20,
    "zeros": bytes(5000),
    "a status that is no number": b"HTTP/1.1 OK 200\r\n\r\n",
    "a negative status": b"HTTP/1.1 -20 OK\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "a line without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99_999,
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 999,
}.items():
    ANSWERS[name] = ("a.zip", lambda url, said=said: [said], BROKE)
for length in (105, 10**9, -1, "abc", "²", None):
    ANSWERS[f"length {length}"] = ("a.zip", answer(ZIP, Content_Length=length), BROKE)
ANSWERS["two lengths"] = ("a.zip", answer(ZIP, Content_Length="4, 5"), NOWHERE)
ANSWERS["more bytes than any disk has"] = (
    "a.zip",
    answer(ZIP, Content_Length=10**30),
    "has no room for",
)
for name, body in {
    "chunks of no size": b"zz\r\nabc\r\n",
    "a chunk of negative size": b"-5\r\nabc\r\n",
    "a chunk cut short": b"ff\r\nabc",
    "a chunk that is too long": b"2\r\n" + ZIP,
    "chunks without end": b"3\r\nPK\3\r\n",
    "a chunk of any size": b"f" * 40 + b"\r\nabc",
    "no chunks": b"",
    "noise in chunks": bytes(range(256)),
}.items():
    ANSWERS[name] = ("a.zip", chunked(body), BROKE)
for kind in ("gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "GZIP"):
    ANSWERS[f"encoded by {kind}"] = ("a.bin", encoded(kind), "comes packed")
ANSWERS["a packed zip"] = ("a.zip", encoded("gzip"), "comes packed")
for kind in ("text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml"):
    ANSWERS[f"a file called {kind}"] = (
        "a.zip",
        answer(ZIP, Content_Type=kind),
        "gives a web page (",
    )
for end in (
    "zip",
    "tar.gz",
    "tgz",
    "tar",
    "tar.bz2",
    "tar.xz",
    "mat",
    "mat.gz",
    "h5",
    "pkl",
    "json.tar.gz",
    "bin",
):
    ANSWERS[f"a page as a.{end}"] = (
        f"a.{end}",
        answer(PAGE),
        f"gives a web page where a.{end} should be; open it",
    )
for name, page in {
    "spaced": b" \r\n\n" + PAGE,
    "marked": b"\xef\xbb\xbf" + PAGE,
    "bare": b"<HTML>\n<head>",
}.items():
    ANSWERS[f"a page, {name}"] = (
        "a.zip",
        answer(page, Content_Type="application/zip"),
        "gives a web page",
    )
for end in (
    "zip",
    "tar.gz",
    "tgz",
    "tar.bz2",
    "tar.xz",
    "mat",
    "mat.gz",
    "h5",
    "hdf5",
    "pkl",
    "pickle",
):
    ANSWERS[f"words as a.{end}"] = (
        f"a.{end}",
        answer(b"Quota exceeded"),
        f"gives no .{end.split('.')[-1]} file",
    )
    ANSWERS[f"nothing as a.{end}"] = (f"a.{end}", answer(), f"gives no .{end.split('.')[-1]} file")
for place in ("URL/a.zip", "/a.zip", "a.zip?again", ""):
    ANSWERS[f"moved in a circle to {place or 'nothing'}"] = (
        "a.zip",
        moved(place),
        NOWHERE if place else BROKE,
    )
for place in (
    "file:///etc/passwd",
    "ftp://127.0.0.1/a",
    "mailto:a@b",
    "http://",
    "http://[::1",
    "http://a b:x/",
    "//",
):
    ANSWERS[f"moved to {place}"] = ("a.zip", moved(place), NOWHERE)
ANSWERS["moved to no name"] = ("a.zip", moved("http://..nowhere.invalid:0/"), "")
ANSWERS["moved to a port that is none"] = ("a.zip", moved("http://127.0.0.1:99999/"), "")
for span in (
    "",
    "bytes",
    "bytes 5-103/103",
    "bytes 0-102/abc",
    "bytes */103",
    "items 0-102/103",
    "bytes 0-1/2\xff",
):
    ANSWERS[f"a piece {span!r}"] = (
        "a.zip",
        answer(ZIP, "206 Partial Content", Content_Range=span),
        BROKE,
    )
ANSWERS["a piece for the whole"] = (
    "a.zip",
    answer(ZIP, "206 Partial Content", Content_Range="bytes 0-102/999"),
    BROKE,
)


@pytest.mark.refused
@pytest.mark.parametrize("what", ANSWERS)
def test_a_bad_answer_is_one_line(answers, tmp_path, capsys, caplog, what):
    name, pieces, says = ANSWERS[what]
    status, err, _ = answers(capsys, name, pieces)
    said = [line for line in err.splitlines() if line.startswith("visprompt: ")]
    assert status == 2 and len(said) == 1 and says in said[0] and "Traceback" not in err, err
    assert not [entry for entry in caplog.records if entry.levelname == "WARNING"]
    assert not (tmp_path / "birds" / name).exists() and not (tmp_path / fetching.LOCK).exists()


def head(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + body


DRIPS = {
    "the head": lambda url: [head(b"X: "), *itertools.repeat(b"x", 10**6)],
    "headers": lambda url: itertools.chain(
        [head(b"")], itertools.repeat(b"X: x\r\n", 90), itertools.repeat(b"x")
    ),
    "go on": lambda url: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the body": lambda url: itertools.chain(
        [head(b"Content-Length: 999999\r\n\r\n")], itertools.repeat(b"x")
    ),
    "a body of no length": lambda url: itertools.chain([head(b"\r\n")], itertools.repeat(b"x")),
    "chunks": lambda url: itertools.chain(
        [head(b"Transfer-Encoding: chunked\r\n\r\n")], itertools.repeat(b"1\r\nx\r\n")
    ),
    "a chunk's size": lambda url: itertools.chain(
        [head(b"Transfer-Encoding: chunked\r\n\r\n1;")], itertools.repeat(b"x")
    ),
    "what moved": lambda url: itertools.chain(
        [b"HTTP/1.1 302 Found\r\nLocation: /a.bin\r\nContent-Length: 999999\r\n\r\n"],
        itertools.repeat(b"x"),
    ),
}


@pytest.mark.refused
@pytest.mark.parametrize("what", DRIPS)
def test_a_server_that_drips_holds_nobody(answers, tmp_path, capsys, what):
    start = time.monotonic()
    status, err, raw = answers(capsys, "a.bin", DRIPS[what], pause=0.05)
    said = [line for line in err.splitlines() if line.startswith("visprompt: ")]
    assert status == 2 and len(said) == 1 and "Traceback" not in err, err
    assert ("leads to no file" if what == "what moved" else "broke off 5 times") in said[0]
    assert time.monotonic() - start < 15 and not (tmp_path / "birds" / "a.bin").exists()


def test_what_came_slowly_is_gone_on_with(one, tmp_path, monkeypatch, capsys):  # noqa: F811
    """A connection below the bound is ended, and the next one asks for the rest."""
    monkeypatch.setattr(downloading, "PATIENCE", 0.3)
    # the server's "slow" brings about 2**20 bytes a second
    monkeypatch.setattr(downloading, "PACE", 2**22)
    one.mood, one.times = "slow", 2
    fetching.fetch("birds", data_dir=tmp_path)
    ranges = [asked for _, _, asked in one.asked if asked]
    assert ranges and (tmp_path / "birds" / "a.bin").read_bytes() == BODY


def test_a_head_that_drips_leaves_a_size_unknown(monkeypatch):
    monkeypatch.setattr(downloading, "PATIENCE", 0.1)
    raw = Raw(DRIPS["the head"], 0.02)
    assert downloading.remote_size(f"{raw.url}/a.bin") is None
    raw.shutdown()


def test_a_body_that_only_moves_is_not_read(answers, capsys):
    """A redirection with a body without end: it is left unread, not kept in memory."""
    block = bytes(2**20)
    pieces = lambda url: itertools.chain(
        [b"HTTP/1.1 302 Found\r\nLocation: /a.bin\r\n\r\n"], itertools.repeat(block)
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status, err, _ = answers(capsys, "a.bin", pieces)
    assert status == 2 and "leads to no file (TooManyRedirects)" in err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


@pytest.mark.parametrize("packed", [b"PK\3\4 is no gzip", None])
def test_a_gz_that_is_said_to_be_packed_stays_as_it_is(answers, tmp_path, capsys, packed):
    """Servers call a .gz encoded by gzip: its bytes are the published ones."""
    body = packed or gzip.compress(b"numbers")
    status, err, _ = answers(capsys, "a.mat.gz", answer(body, Content_Encoding="x-gzip"))
    if packed:
        assert status == 2 and "gives no .gz file" in err
    else:
        assert status == 0 and (tmp_path / "birds" / "a.mat.gz").read_bytes() == body
        assert (tmp_path / "birds" / "a.mat").read_bytes() == b"numbers"


@pytest.mark.parametrize("kind", ["identity", "none", "utf-8", "aws-chunked", ""])
def test_an_encoding_that_packs_nothing_is_none(answers, tmp_path, capsys, kind):
    status, _, _ = answers(capsys, "a.bin", answer(b"numbers", Content_Encoding=kind))
    assert status == 0 and (tmp_path / "birds" / "a.bin").read_bytes() == b"numbers"


def test_what_is_pinned_at_first_use_is_said(server, known, tmp_path, capsys):  # noqa: F811
    known["birds"] = given({"url": f"{server.url}/a.bin"})
    fetching.fetch("birds", data_dir=tmp_path)
    said = (
        f"birds/a.bin: no checksum was published; {SUM} is now pinned in {tmp_path / fetching.LOCK}"
    )
    assert said in capsys.readouterr().err.splitlines()
    fetching.fetch("birds", data_dir=tmp_path)
    assert "pinned" not in capsys.readouterr().err


@pytest.mark.refused
def test_a_page_that_a_person_saved_is_not_pinned(known, tmp_path):  # noqa: F811
    known["birds"] = given({"url": "http://127.0.0.1:1/a.zip"}, access="by hand", steps=["Log in."])
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds" / "a.zip").write_bytes(PAGE)
    with pytest.raises(BadInput, match="a.zip is a web page; delete it and fetch again"):
        fetching.fetch("birds", data_dir=tmp_path)
    assert not (tmp_path / fetching.LOCK).exists()


def test_a_page_in_place_of_a_file_with_a_checksum_is_called_one(server, known, tmp_path):  # noqa: F811
    server.files["/a.bin"] = PAGE
    known["birds"] = given({"url": f"{server.url}/a.bin", "checksum": SUM})
    with pytest.raises(BadInput, match="gives a web page where a.bin should be"):
        fetching.fetch("birds", data_dir=tmp_path)


NOTES = [
    b"",
    b"{",
    b"[]",
    b'[{"url": 1}]',
    b"null",
    b"5",
    b"NaN",
    b'"url"',
    b"\xff\xfe",
    b"\0" * 40,
    b"[" * 10**5,
]
NOTES += [
    b"{}",
    b'{"url": 5, "tag": 5}',
    b'{"tag": "x"}',
    b'{"url": "URL"}',
    b'{"url": "URL", "tag": null}',
]
NOTES += [
    b'{"url": "URL", "tag": ["x"]}',
    b'{"url": "URL", "tag": "a\\nb: c"}',
    b'{"url": "URL", "tag": "\\u20ac"}',
]
NOTES += [
    b'{"url": "URL", "tag": "\\ud800"}',
    b'{"url": "URL", "tag": %s}' % (b"9" * 5000),
    b'{"url": ["URL"], "tag": ""}',
]


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("note", NOTES, ids=lambda note: repr(note[:40]))
def test_a_damaged_note_is_no_hindrance(one, known, tmp_path, note, checked):  # noqa: F811
    """A part without a note goes on where a checksum tells whether it was one of this file, and is
    begun anew else."""
    url = f"{one.url}/a.bin"
    known["birds"] = given({"url": url, **({"checksum": SUM} if checked else {})})
    (tmp_path / "birds").mkdir()
    part = tmp_path / "birds" / "a.bin.part"
    part.write_bytes(BODY[: len(BODY) // 2] if checked else b"old" * 100)
    part.with_name("a.bin.part.json").write_bytes(note.replace(b"URL", url.encode()))
    assert states(fetching.fetch("birds", data_dir=tmp_path)) == ["fetched"]
    assert (tmp_path / "birds" / "a.bin").read_bytes() == BODY and len(one.asked) == 1
    assert sorted(path.name for path in (tmp_path / "birds").iterdir()) == [".turn", "a.bin"]


def test_a_part_of_another_file_is_tried_once(one, tmp_path):  # noqa: F811
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds" / "a.bin.part").write_bytes(b"old" * 100)
    (tmp_path / "birds" / "a.bin.part.json").write_bytes(b"")
    assert states(fetching.fetch("birds", data_dir=tmp_path)) == ["fetched"]
    assert [asked for _, _, asked in one.asked] == ["bytes=300-", None]
    one.files["/a.bin"] = BODY[::-1]
    (tmp_path / "birds" / "a.bin").unlink()
    (tmp_path / "birds" / "a.bin.part").write_bytes(b"old" * 100)
    with pytest.raises(BadInput, match="gives other bytes than"):
        fetching.fetch("birds", data_dir=tmp_path)
    assert len(one.asked) == 4


def test_a_full_disk_within_a_note_leaves_the_old_one(one, tmp_path):  # noqa: F811
    """The process may write ten bytes a file, as a full disk would let it."""
    part = tmp_path / "a.bin.part"
    part.write_bytes(BODY[:1000])
    note = json.dumps({"url": f"{one.url}/a.bin", "tag": ""})
    part.with_name("a.bin.part.json").write_text(note)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); from "
        "pathlib import Path\n"
    )
    code += (
        f"from visprompt.data.downloading import download; download('{one.url}/a.bin', "
        f"Path({str(tmp_path / 'a.bin')!r}), "
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code + f"{SUM!r}, 'x')"],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "CannotWrite: cannot write" in done.stderr and "File too large" in done.stderr
    assert (
        part.with_name("a.bin.part.json").read_text() == note and part.read_bytes() == BODY[:1000]
    )
    fetching.fetch("birds", data_dir=tmp_path)


def test_a_piece_shorter_than_asked_is_not_the_rest(one, known, tmp_path, monkeypatch):  # noqa: F811
    """A server may send less of a range than was asked: what it says of the whole counts."""
    monkeypatch.setattr(downloading, "PACE", 1)
    known["birds"] = given({"url": f"{one.url}/a.bin"})
    one.mood, one.times = "truncate", 1
    whole = one.RequestHandlerClass.end

    def end(handler, length):  # the second answer brings a kilobyte, and says so
        if "Range" in handler.headers and len(one.asked) == 2:
            handler.server.files["/a.bin"] = BODY
            handler.wfile, kept = Short(handler.wfile, 1024), length
            length = min(kept, 1024)
        return whole(handler, length)

    monkeypatch.setattr(one.RequestHandlerClass, "end", end)
    fetching.fetch("birds", data_dir=tmp_path)
    assert (tmp_path / "birds" / "a.bin").read_bytes() == BODY and len(one.asked) == 3


class Short:
    """A file to write to that takes a head, and of the body so many bytes."""

    def __init__(self, file, most):
        self.file, self.most, self.head = file, most, True

    def write(self, content):
        if self.head:
            self.head = not content.endswith(b"\r\n\r\n")
            return self.file.write(content)
        self.file.write(content[: self.most])
        self.most -= min(self.most, len(content))

    def __getattr__(self, name):
        return getattr(self.file, name)


PIN = '{"sha256": "%s", "size": 1, "address": "", "day": ""}' % ("0" * 64)
LOCKS = [
    "",
    "{",
    "[]",
    "5",
    "null",
    "NaN",
    '"x"',
    "[" * 10**5,
    '{"birds": 5}',
    '{"birds": []}',
    '{"birds": {"a.bin": 5}}',
]
LOCKS += [
    '{"birds": {"a.bin": {}}}',
    '{"birds": {"a.bin": {"sha256": 5}}}',
    '{"birds": {"a.bin": %s}}' % PIN.replace("1,", '"1",'),
]
LOCKS += [
    '{"birds": {"a.bin": %s}}' % PIN.replace('"0', '"x'),
    '{"birds": {"a.bin": %s}}' % PIN.replace('"0', '"\\n0'),
]
LOCKS += [
    '{"birds": {"a.bin": %s}}' % PIN.replace('"day"', '"date"'),
    "\ud800",
    '{"cats": {"a.bin": %s}}' % PIN,
]


@pytest.mark.refused
@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: repr(lock[:40]))
def test_a_damaged_lock_is_one_line(one, tmp_path, capsys, lock):  # noqa: F811
    (tmp_path / fetching.LOCK).write_bytes(lock.encode("utf-8", "surrogatepass"))
    assert main(["data", "verify", "--data-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and ("is damaged" in said or "unknown data set 'cats'" in said), (
        said
    )


COMMANDS = {
    "no action": [],
    "an action that is none": ["fetchh", "birds"],
    "no name": ["fetch"],
    "a name that is none": ["fetch", "bird"],
    "an empty name": ["fetch", ""],
    "a name of two lines": ["fetch", "a\nb"],
    "a name with NUL": ["fetch", "a\0b"],
    "half a letter": ["fetch", "\ud800"],
    "a path for a name": ["fetch", "../birds"],
    "a very long name": ["fetch", "x" * 10**5],
    "a second name that is none": ["fetch", "birds", "nothing"],
    "an option that is none": ["fetch", "birds", "--force"],
    "a folder with NUL": ["fetch", "birds", "--data-dir", "a\0b"],
    "a folder of half a letter": ["fetch", "birds", "--dry-run", "--data-dir", "/tmp/\ud800"],
    "a folder whose name is too long": ["fetch", "birds", "--data-dir", "/tmp/" + "x" * 300],
    "the same, dry": ["fetch", "birds", "--dry-run", "--data-dir", "/tmp/" + "x" * 300],
    "a folder that is a file": ["fetch", "birds", "--data-dir", "/dev/null"],
    "a folder below a file": ["fetch", "birds", "--data-dir", "/dev/null/a"],
    "a user that is none": ["fetch", "birds", "--data-dir", "~nobody-of-this-name/x"],
    "no folder": ["fetch", "birds", "--data-dir"],
    "to verify: a name that is none": ["verify", "bird"],
    "to verify: a folder with NUL": ["verify", "--data-dir", "a\0b"],
    "to verify: a folder whose name is too long": ["verify", "birds", "--data-dir", "x" * 5000],
    "to verify: what is not there": ["verify", "birds", "--data-dir", "/nowhere"],
    "where: a user that is none": ["where", "--data-dir", "~nobody-of-this-name"],
    "where: too much": ["where", "there"],
    "info: no name": ["info"],
    "info: a name that is none": ["info", "cats"],
    "info: an empty name": ["info", ""],
    "info: two names": ["info", "birds", "birds"],
    "info: what comes with the project": ["info", "digits"],
    "list: a name": ["list", "birds"],
}


@pytest.mark.refused
@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_that_cannot_be_done_is_one_line(known, tmp_path, capsys, what, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VISPROMPT_DATA", str(tmp_path))
    known["birds"] = given({"url": "http://127.0.0.1:1/a.bin"}, access="by hand", steps=["Ask."])
    try:
        status = main(["data", *COMMANDS[what]])
    except SystemExit as left:
        status = left.code
    assert status == 2 and capsys.readouterr().err.count("\n") == 1
    assert not [path for path in tmp_path.iterdir() if path.name != "birds"]


@pytest.mark.refused
@pytest.mark.parametrize(
    "what", ["a.bin", "a.bin.part", "a.bin.part.json", ".turn", "a.zip", "a.zip.part"]
)
def test_a_folder_in_the_place_of_a_file_is_one_line(server, known, tmp_path, capsys, what):  # noqa: F811
    server.files["/a.zip"] = ZIP
    known["birds"] = given({"url": f"{server.url}/{'a.zip' if 'zip' in what else 'a.bin'}"})
    (tmp_path / "birds" / what / "x").mkdir(parents=True)
    assert main(["data", "fetch", "birds", "--data-dir", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert (
        len([line for line in err.splitlines() if line.startswith("visprompt: ")]) == 1
        and "Traceback" not in err
    )
