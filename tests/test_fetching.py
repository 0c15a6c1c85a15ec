"""Data sets are fetched from a server of the tests' own, which breaks off, lies, stalls and
moves."""

import errno
import gzip
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from visprompt.__main__ import main
from visprompt.data import catalogue, downloading, fetching, unpacking
from visprompt.data.catalogue import DataSet
from visprompt.errors import BadInput
from visprompt.models import loading

BODY = bytes(range(256)) * 4096  # a mebibyte
SUM = f"sha256:{hashlib.sha256(BODY).hexdigest()}"


class Server(http.server.ThreadingHTTPServer):
    """Serves `files`; what it does wrong is said by `mood`, for so many answers as `times`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.mood, self.times, self.asked = {"/a.bin": BODY}, "", 0, []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        pass  # clients that go are part of the tests


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server = self.server
        server.asked.append((self.command, self.path, self.headers.get("Range")))
        mood = server.mood if server.times > 0 and self.command == "GET" else ""
        server.times -= bool(mood)
        self.close_connection = True
        if self.path == "/moved.bin":
            self.send_response(302)
            self.send_header("Location", "/a.bin")
            return self.end(0)
        if self.path not in server.files or mood == "missing":
            self.send_response(404)
            return self.end(0)
        if mood == "busy":
            self.send_response(503)
            return self.end(0)
        body = server.files[self.path]
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        start = int(self.headers["Range"][6:-1]) if "Range" in self.headers else 0
        if start and (mood == "no ranges" or self.headers.get("If-Range", tag) != tag):
            start = 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", tag)
        rest = body[start:]
        self.end(len(rest))
        if self.command == "HEAD":
            return
        if mood == "corrupt":
            rest = b"?" + rest[1:]
        if mood in ("truncate", "stall", "no ranges"):
            self.wfile.write(rest[: len(rest) // 2])
            self.wfile.flush()
            if mood == "stall":
                time.sleep(1.5)
            return
        if mood == "slow":
            for number in range(0, len(rest), 2**17):
                self.wfile.write(rest[number : number + 2**17])
                self.wfile.flush()
                time.sleep(0.1)
            return
        self.wfile.write(rest)

    def end(self, length):
        self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(downloading, "PAUSE", 0.01)
    monkeypatch.setattr(downloading, "PATIENCE", 5)
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


def given(*files: dict, name="birds", access="open", steps=()) -> DataSet:
    about = {
        "title": name,
        "about": "x",
        "citation": "x",
        "year": 2020,
        "home": "http://x",
        "licence": "x",
    }
    return DataSet(name, **about, access=access, tasks={}, unverified=[], steps=steps, listed=files)


@pytest.fixture
def known(monkeypatch):
    """The catalogue holds what a test puts in."""
    sets = {}
    monkeypatch.setattr(catalogue, "datasets", lambda: sets)
    return sets


@pytest.fixture
def one(server, known):
    """One data set of one file without an archive."""
    known["birds"] = given(
        {"url": f"{server.url}/a.bin", "checksum": SUM, "bytes": len(BODY), "source": "x"}
    )
    return server


def states(found):
    return [row.state for row in found]


def test_a_file_comes_whole_is_pinned_and_is_kept(one, tmp_path):
    assert states(fetching.fetch("birds", data_dir=tmp_path)) == ["fetched"]
    assert (tmp_path / "birds" / "a.bin").read_bytes() == BODY
    (pin,) = fetching.read_lock(tmp_path)["birds"].values()
    assert (f"sha256:{pin.sha256}", pin.size, pin.address) == (SUM, len(BODY), f"{one.url}/a.bin")
    asked = len(one.asked)
    assert (
        states(fetching.fetch("birds", data_dir=tmp_path)) == ["there"] and len(one.asked) == asked
    )
    assert states(fetching.verify(data_dir=tmp_path)) == ["there"]
    assert sorted(path.name for path in (tmp_path / "birds").iterdir()) == [".turn", "a.bin"]


@pytest.mark.parametrize("mood", ["truncate", "stall", "busy", "slow", "no ranges"])
def test_what_breaks_off_is_gone_on_with(one, tmp_path, monkeypatch, mood):
    monkeypatch.setattr(downloading, "PATIENCE", 0.5)
    one.mood, one.times = mood, 2
    fetching.fetch("birds", data_dir=tmp_path)
    assert (tmp_path / "birds" / "a.bin").read_bytes() == BODY
    ranges = [asked for _, _, asked in one.asked if asked]
    if mood in ("truncate", "stall"):
        assert ranges == [f"bytes={len(BODY) // 2}-", f"bytes={3 * len(BODY) // 4}-"]


def test_a_download_that_was_killed_goes_on(one, tmp_path):
    """The process is killed while bytes come; the next one asks for the rest only."""
    one.mood, one.times = "slow", 1
    folder = tmp_path / "birds"
    folder.mkdir()
    code = (
        f"from pathlib import Path; from visprompt.data.downloading import download; "
        f"download('{one.url}/a.bin', "
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code + f"Path({str(folder / 'a.bin')!r}), {SUM!r}, 'x')"]
    )
    part = folder / "a.bin.part"
    while not (part.exists() and part.stat().st_size):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "a.bin").exists()
    have = part.stat().st_size
    assert 0 < have < len(BODY)
    assert states(fetching.fetch("birds", data_dir=tmp_path)) == ["fetched"]
    assert one.asked[-1][2] == f"bytes={have}-" and (folder / "a.bin").read_bytes() == BODY


def test_a_file_that_changed_meanwhile_is_begun_anew(server, known, tmp_path):
    known["birds"] = given({"url": f"{server.url}/a.bin"})
    folder = tmp_path / "birds"
    folder.mkdir()
    (folder / "a.bin.part").write_bytes(b"old" * 1000)
    (folder / "a.bin.part.json").write_text(
        json.dumps({"url": f"{server.url}/a.bin", "tag": '"old"'})
    )
    fetching.fetch("birds", data_dir=tmp_path)
    assert (folder / "a.bin").read_bytes() == BODY


@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("corrupt", "gives other bytes than sha256"),
        ("missing", r"answers 404 \(Not Found\)"),
        ("busy", "broke off 5 times .status 503.; the same command goes on"),
    ],
)
def test_what_cannot_be_had_is_said_and_nothing_is_kept(one, tmp_path, mood, says):
    one.mood, one.times = mood, 99
    with pytest.raises(BadInput, match=says):
        fetching.fetch("birds", data_dir=tmp_path)
    assert not (tmp_path / "birds" / "a.bin").exists() and not (tmp_path / fetching.LOCK).exists()


def test_a_mirror_stands_in_and_a_redirection_is_followed(server, known, tmp_path):
    mirrors = [f"{server.url}/moved.bin"]
    known["birds"] = given(
        {"url": f"{server.url}/gone.bin", "name": "a.bin", "mirrors": mirrors, "checksum": SUM}
    )
    fetching.fetch("birds", data_dir=tmp_path)
    assert (tmp_path / "birds" / "a.bin").read_bytes() == BODY
    assert fetching.read_lock(tmp_path)["birds"]["a.bin"].address == mirrors[0]


def test_bytes_without_a_checksum_are_pinned_and_refused_if_they_change(server, known, tmp_path):
    known["birds"] = given({"url": f"{server.url}/a.bin"})
    fetching.fetch("birds", data_dir=tmp_path)
    place = tmp_path / "birds" / "a.bin"
    place.unlink()
    server.files["/a.bin"] = BODY[::-1]
    with pytest.raises(
        BadInput, match="If the new bytes are right, delete its entry in .*datasets.lock.json"
    ):
        fetching.fetch("birds", data_dir=tmp_path)
    assert not place.exists()
    place.write_bytes(BODY[::-1])
    with pytest.raises(BadInput, match="that was pinned at the first download; delete it"):
        fetching.fetch("birds", data_dir=tmp_path)
    assert states(fetching.verify("birds", data_dir=tmp_path)) == ["other bytes"]
    known["birds"] = given({"url": f"{server.url}/a.bin", "checksum": f"sha256:{'0' * 64}"})
    with pytest.raises(BadInput, match="the manifest now says"):
        fetching.fetch("birds", data_dir=tmp_path)


def test_a_dry_run_sums_bytes_and_leaves_nothing(server, known, tmp_path, capsys):
    known["birds"] = given(
        {"url": f"{server.url}/a.bin"},
        {"url": f"{server.url}/none.bin"},
        {"url": "http://x/b", "bytes": 5},
    )
    folder = tmp_path / "data"
    assert main(["data", "fetch", "birds", "--dry-run", "--data-dir", str(folder)]) == 0
    assert (
        f"to fetch: {len(BODY) + 5:,} bytes and 1 files of unknown size" in capsys.readouterr().out
    )
    assert not folder.exists() and {method for method, *_ in server.asked} == {"HEAD"}


def test_two_processes_fetch_once(one, tmp_path):
    one.mood, one.times = "slow", 1
    threads = [
        threading.Thread(target=fetching.fetch, args=("birds",), kwargs={"data_dir": tmp_path})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(one.asked) == 1 and (tmp_path / "birds" / "a.bin").read_bytes() == BODY


def test_a_disk_without_locks_is_no_hindrance(one, tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", none)
    fetching.fetch("birds", data_dir=tmp_path)
    assert (tmp_path / "birds" / "a.bin").read_bytes() == BODY and fetching.read_lock(tmp_path)[
        "birds"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(one, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="cannot be written .*give another data_dir"):
        fetching.fetch("birds", data_dir=tmp_path)


def test_a_folder_that_is_none_is_said(one, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be written .*give another data_dir"):
        fetching.fetch("birds", data_dir=tmp_path / "file")


def test_a_full_disk_is_said_before_the_bytes_come(one, tmp_path, monkeypatch):
    monkeypatch.setattr(
        downloading.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10})
    )
    with pytest.raises(BadInput, match="has no room for 1,048,576 bytes more"):
        fetching.fetch("birds", data_dir=tmp_path)


def test_what_a_person_gets_is_explained_then_checked(known, tmp_path, capsys):
    known["birds"] = given(
        {"url": "http://x/a.bin", "checksum": SUM}, access="registration", steps=["Ask them."]
    )
    words = ["data", "fetch", "birds", "--data-dir", str(tmp_path)]
    assert main(words) == 2
    said = capsys.readouterr()
    assert (
        "1. Ask them." in said.out
        and "still missing: birds (a.bin)" in said.err
        and said.err.count("\n") == 1
    )
    (tmp_path / "birds" / "a.bin").write_bytes(b"no")
    assert main(words) == 2 and "that was published; delete it" in capsys.readouterr().err
    (tmp_path / "birds" / "a.bin").write_bytes(BODY)
    assert main(words) == 0
    assert main(["data", "verify", "--data-dir", str(tmp_path)]) == 0


def test_what_a_person_put_there_is_counted(tmp_path, capsys):
    for name in ("airport", "beach"):
        (tmp_path / "resisc45" / name).mkdir(parents=True)
        for number in range(20):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(
                tmp_path / "resisc45" / name / f"{number}.png"
            )
    words = ["data", "verify", "resisc45", "--data-dir", str(tmp_path)]
    assert main(words) == 2
    assert (
        "resisc45 has 2 classes" in (error := capsys.readouterr().err)
        and "and 45 where it is whole" in error
    )
    for number in range(43):
        shutil.copytree(tmp_path / "resisc45" / "beach", tmp_path / "resisc45" / f"class_{number}")
    assert main(words) == 0 and "resisc45: 45 classes, train" in capsys.readouterr().out


def test_an_artifact_stands_for_all_that_its_runs_need(tmp_path, capsys, monkeypatch):
    assert (
        main(["data", "fetch", "spt.table-3", "dtd", "--dry-run", "--data-dir", str(tmp_path)]) == 0
    )
    said = capsys.readouterr().out
    sets = {line.partition("\t")[0] for line in said.splitlines() if line.count("\t") == 3}
    assert sets == {"cub_200_2011", "oxford_flowers102", "stanford_dogs", "stanford_cars", "dtd"}
    assert (
        "nabirds needs a person" in said
        and "weights of vit_base_patch16_224.augreg_in21k: fetched" in said
    )
    fetched = []
    monkeypatch.setattr(loading, "load_backbone", lambda name, weights: fetched.append(name))
    monkeypatch.setattr(fetching, "fetch", lambda *names, **more: [])
    assert main(["data", "fetch", "spt.table-3", "--weights", "--data-dir", str(tmp_path)]) == 0
    assert fetched and "weights are there" in capsys.readouterr().out
    assert main(["data", "fetch", "ap.theorem-1"]) == 2
    assert "ap.theorem-1 needs no data set" in capsys.readouterr().err


def test_a_damaged_lock_is_said(one, tmp_path):
    (tmp_path / fetching.LOCK).write_text("{")
    with pytest.raises(BadInput, match="is damaged .*; restore your copy"):
        fetching.verify(data_dir=tmp_path)


def test_the_folder_is_given_by_option_then_variable(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("VISPROMPT_DATA", str(tmp_path / "env"))
    assert main(["data", "where"]) == 0 and capsys.readouterr().out == f"{tmp_path / 'env'}\n"
    assert (
        main(["data", "where", "--data-dir", str(tmp_path)]) == 0
        and capsys.readouterr().out == f"{tmp_path}\n"
    )
    monkeypatch.delenv("VISPROMPT_DATA")
    assert fetching.data_folder().name == "data"


@pytest.mark.parametrize("name", sorted(catalogue.datasets()))
def test_every_data_set_can_be_shown(name, capsys):
    assert main(["data", "info", name]) == 0
    assert "licence: " in capsys.readouterr().out
    assert main(["data", "info", name, "--croissant"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == name


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """An archive of these members, a zip or a tar by the name."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["set.zip", "set.tar.gz", "set.tgz"])
@pytest.mark.parametrize("top", ["", "set/", "other/"])
def test_an_archive_becomes_a_folder_of_its_name(tmp_path, name, top):
    into = unpacking.unpack(
        packed(tmp_path / name, {f"{top}x/1.txt": b"one", f"{top}2.txt": b"two"})
    )
    assert into == tmp_path / "set"
    inner = into / "other" if top == "other/" else into
    assert (inner / "x" / "1.txt").read_bytes() == b"one" and (
        inner / "2.txt"
    ).read_bytes() == b"two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", name]


def test_one_packed_file_becomes_a_file(tmp_path):
    (tmp_path / "a.h5.gz").write_bytes(gzip.compress(b"numbers"))
    assert unpacking.unpack(tmp_path / "a.h5.gz").read_bytes() == b"numbers"
    assert unpacking.stem("a.h5") == unpacking.stem("a.mat") == ""


@pytest.mark.parametrize("name", ["set.zip", "set.tgz"])
@pytest.mark.parametrize("member", ["../out.txt", "/out.txt", "a/../../out.txt", "a\\..\\out.txt"])
def test_an_archive_stays_in_its_folder(tmp_path, name, member):
    (tmp_path / "in").mkdir()
    with pytest.raises(BadInput, match="outside its folder; do not use it"):
        unpacking.unpack(packed(tmp_path / "in" / name, {"good.txt": b"x", member: b"x"}))
    assert [path.name for path in (tmp_path / "in").iterdir()] == [name] and not (
        tmp_path / "out.txt"
    ).exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_refused(tmp_path, kind):
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "../.."
        archive.addfile(info)
    with pytest.raises(BadInput, match="holds the link or device 'link'"):
        unpacking.unpack(tmp_path / "set.tar")
    assert not (tmp_path / "set").exists()


def test_a_link_in_a_zip_is_refused(tmp_path):
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr(info, "../..")
    with pytest.raises(BadInput, match="holds the link"):
        unpacking.unpack(tmp_path / "set.zip")


@pytest.mark.parametrize("name", ["set.zip", "set.tgz", "set.bin.gz"])
def test_an_archive_that_grows_without_end_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(unpacking, "LEAST", 2**16)
    monkeypatch.setattr(unpacking, "RATIO", 2)
    zeros = bytes(2**22)
    if name.endswith(".bin.gz"):
        (tmp_path / name).write_bytes(gzip.compress(zeros))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", zeros)
    else:
        packed(tmp_path / name, {"zeros": zeros})
    with pytest.raises(BadInput, match="grows to more than 65,536 bytes"):
        unpacking.unpack(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["set.zip", "set.tgz", "set.mat.gz"])
def test_a_damaged_archive_is_said_and_leaves_nothing(tmp_path, name):
    if name == "set.mat.gz":
        (tmp_path / name).write_bytes(gzip.compress(os.urandom(9999)))
    else:
        packed(tmp_path / name, {"a": os.urandom(9999)})
    whole = (tmp_path / name).read_bytes()
    for content in (whole[: len(whole) // 2], b"no archive", b""):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match="is a damaged archive"):
            unpacking.unpack(tmp_path / name)
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_kill_while_unpacking_leaves_no_half_folder(server, known, tmp_path):
    """The unpacking process is killed at its second file; the next fetch clears that up and unpacks
    all."""
    members = {f"{number}.txt": bytes([number]) * 1000 for number in range(20)}
    server.files["/set.zip"] = packed(tmp_path / "set.zip", members).read_bytes()
    (tmp_path / "birds").mkdir()
    archive = packed(tmp_path / "birds" / "set.zip", members)
    code = (
        "import os, shutil, sys; from pathlib import Path; from visprompt.data import unpacking\n"
        "def copied(*given, made=[], copy=shutil.copyfileobj):\n"
        "    made.append(1)\n"
        "    if len(made) > 1: os.kill(os.getpid(), 9)\n"
        "    return copy(*given)\n"
        "shutil.copyfileobj = copied\n"
        "unpacking.unpack(Path(sys.argv[1]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(archive)]).returncode == -signal.SIGKILL
    assert (
        not (tmp_path / "birds" / "set").exists()
        and len(list(unpacking.leftovers(tmp_path / "birds"))) == 1
    )
    known["birds"] = given({"url": f"{server.url}/set.zip"})
    assert states(fetching.fetch("birds", data_dir=tmp_path)) == ["there"]
    assert len(list((tmp_path / "birds" / "set").iterdir())) == 20
    assert not list(unpacking.leftovers(tmp_path / "birds"))
    archive.unlink()
    assert states(fetching.fetch("birds", data_dir=tmp_path)) == ["deleted after unpacking"]
    assert states(fetching.verify("birds", data_dir=tmp_path)) == ["deleted after unpacking"]
