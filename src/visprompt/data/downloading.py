"""Download one file over HTTP: resumes, retries, and never takes half a file for a whole one."""

import json
import logging
import os
import re
import shutil
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import BadInput
from ..progress import progress
from ..records.store import write_whole
from .pictures import reason, shown

PATIENCE = 60  # seconds without a byte after which a connection is given up
PACE = 1024  # bytes a second, over PATIENCE, that a connection must bring
TRIES = 5  # connections in a row that bring nothing to speak of
PAUSE = 1.0  # seconds before the second try; twice as long before each further one
CHUNK = 2**14  # so few that a connection that is just fast enough fills one in time
GONE = (400, 401, 403, 404, 405, 410, 451)  # trying again does not help
# what Content-Encoding may say
PACKINGS = {"gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"}
HDF5 = b"\x89HDF\r\n\x1a\n"
FIRST = {  # the first bytes of a file by its name's ending
    ".zip": (b"PK\3\4", b"PK\5\6", b"PK\7\x08"),
    ".gz": (b"\x1f\x8b",),
    ".tgz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\0",),
    ".mat": (b"MATLAB", HDF5),
    ".h5": (HDF5,),
    ".hdf5": (HDF5,),
    ".pkl": (b"\x80",),
    ".pickle": (b"\x80",),
}


class Broken(Exception):
    """A connection ended before the file did, or brought no file."""


def unlike(file: Path, name: str) -> str:
    """What a file's first bytes show it to be, if its name promises something else; else ""."""
    with open(file, "rb") as opened:
        head = opened.read(512)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(
        (b"<!doctype html", b"<html")
    ) and not name.endswith("html"):
        return "a web page"
    return (
        "" if head.startswith(FIRST.get(Path(name).suffix, b"")) else f"no {Path(name).suffix} file"
    )


class Resuming:
    """A download into NAME.part, which a later one resumes.

    Args:
        part: the unfinished file; NAME.part.json beside it identifies its source.
        label: what the progress bar calls it.
        checked: whether the whole file has a known checksum, so that any old part may be tried.
    """

    def __init__(self, part: Path, label: str, checked: bool):
        self.part, self.label, self.checked = part, label, checked
        self.note = part.with_name(f"{part.name}.json")

    def __call__(self, url: str) -> None:
        """Download the file at `url` into the part.

        Raises:
            BadInput: the address has no such file, the disk is full, or the connection breaks or is
                too slow repeatedly.
        """
        import requests  # slow to import
        from urllib3.exceptions import HTTPError

        bare, why = 0, ""
        while bare < TRIES:
            if bare:
                time.sleep(PAUSE * 2 ** (bare - 1))
            before = self.have()
            try:
                return self.once(url)
            except BadInput:
                raise
            except (requests.RequestException, HTTPError, Broken, ValueError) as error:
                why = str(error) if isinstance(error, Broken) else type(error).__name__
                bare = 1 if self.have() - before >= PACE * PATIENCE else bare + 1
        raise BadInput(
            f"{url} broke off {TRIES} times ({why}); the same command goes on at byte "
            f"{self.have():,}."
        )

    def have(self) -> int:
        """Number of bytes downloaded so far."""
        return self.part.stat().st_size if self.part.exists() else 0

    def forget(self) -> None:
        """Start again with the first byte next time."""
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def tag(self, url: str) -> str | None:
        """The server's tag of the partial file; "" if unknown, None if from another address."""
        try:
            known = json.loads(self.note.read_text(encoding="utf-8"))
            tag = known["tag"] if known["tag"].isascii() and known["tag"].isprintable() else ""
            return tag if known["url"] == url else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return ""  # none, or damaged

    def once(self, url: str) -> None:
        """One connection: request the rest and write what arrives."""
        tag = self.tag(url)
        start = self.have() if tag or (tag is not None and self.checked) else 0
        headers = {}
        if start:
            headers = {"Range": f"bytes={start}-"} | ({"If-Range": tag} if tag else {})
        with asked("GET", url, headers) as answer:
            if answer.status_code in GONE:
                raise BadInput(
                    f"{url} answers {answer.status_code} ({shown(answer.reason)}); the "
                    f"file may have moved."
                )
            span = answer.headers.get("Content-Range", "")
            if answer.status_code == 416 and span == f"bytes */{start}":
                return  # the part is the whole
            if answer.status_code == 416:
                self.forget()
            if answer.status_code not in (200, 206):
                raise Broken(f"status {answer.status_code}")
            piece = re.fullmatch(rf"bytes {start}-[0-9]+/([0-9]+|\*)", span)
            if answer.status_code == 206 and not piece:
                self.forget()
                raise Broken(f"asked for byte {start}, was given '{shown(span)}'")
            self.check_kind(answer, url)
            length = answer.headers.get("Content-Length", "")
            length = int(length) if length.isdecimal() else None
            if length is None and not answer.raw.chunked and not self.checked:
                raise Broken("it does not say how long the file is, which has no checksum either")
            if answer.status_code == 206:
                total = (
                    int(piece[1]) if piece[1] != "*" else None if length is None else start + length
                )
            else:
                start, total = 0, length
                # before the note says that there is a part of another file
                self.part.unlink(missing_ok=True)
            tag = answer.headers.get("ETag", "") or answer.headers.get("Last-Modified", "")
            write_whole(
                self.note, json.dumps({"url": url, "tag": "" if tag.startswith("W/") else tag})
            )
            self.receive(answer, start, total)

    def check_kind(self, answer, url: str) -> None:
        """Refuse web pages and compressed transfers, which would be stored as they come."""
        name, kind = (
            self.part.name.removesuffix(".part"),
            answer.headers.get("Content-Type", "").partition(";")[0].strip().lower(),
        )
        if (
            kind in ("text/html", "application/xhtml+xml")
            and not self.checked
            and not name.endswith("html")
        ):
            raise BadInput(
                f"{url} gives a web page ({kind}), not {name}; open it in a browser to see "
                f"what it asks for."
            )
        packed = PACKINGS.intersection(
            re.split("[ ,]+", answer.headers.get("Content-Encoding", "").lower())
        )
        if packed and not (packed <= {"gzip", "x-gzip"} and name.endswith((".gz", ".tgz"))):
            what = f"comes packed ({', '.join(sorted(packed))}), though asked for as it is"
            raise BadInput(f"{url} {what}; the manifest needs another address.")

    def receive(self, answer, start: int, total: int | None) -> None:
        """Write the body, bytes as sent, after the first `start` bytes."""
        if total is not None and total - start > shutil.disk_usage(self.part.parent).free:
            raise BadInput(
                f"{shown(self.part.parent)} has no room for {total - start:,} bytes more; "
                f"give another data_dir."
            )
        bar = dict(total=total, initial=start, unit="B", unit_scale=True)
        with (
            open(self.part, "r+b" if start else "wb") as file,
            progress(None, self.label, **bar) as shown_bytes,
        ):
            file.seek(start)
            file.truncate()
            with watched(answer.raw, file.tell):
                for chunk in answer.raw.stream(CHUNK, decode_content=False):
                    file.write(chunk)
                    shown_bytes.update(len(chunk))
            file.flush()
            os.fsync(file.fileno())
            if total is not None and file.tell() != total:
                raise Broken(f"{file.tell():,} of {total:,} bytes came")


def asked(method: str, url: str, headers: dict):
    """Response to a request, body unread, within four times PATIENCE however slow its head is.

    Raises:
        BadInput: the address is invalid, or leads nowhere.
        Broken: it took longer; the waiting thread ends with the process.
    """
    import requests

    logging.getLogger("urllib3").setLevel("ERROR")  # its warnings are tracebacks
    more = {
        "headers": {"Accept-Encoding": "identity", **headers},
        "timeout": (PATIENCE, PATIENCE),
        "stream": True,
    }
    # its body is not read
    more["hooks"] = {"response": lambda answer, **_: answer.close() if answer.is_redirect else None}
    response = Future()

    def ask() -> None:
        try:
            response.set_result(requests.request(method, url, **more))
        except BaseException as error:
            response.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        return response.result(4 * PATIENCE)
    except TimeoutError as error:
        raise Broken("no answer in time") from error
    except (requests.TooManyRedirects, ValueError) as error:
        raise BadInput(
            f"{url} leads to no file ({type(error).__name__}); the manifest needs another address."
        ) from error


@contextmanager
def watched(body, count):
    """Close a response whose bytes arrive too slowly.

    Args:
        body: urllib3's response.
        count: returns the number of bytes received.

    Raises:
        Broken: fewer than PACE bytes per second over PATIENCE.
    """
    ended, slow = threading.Event(), threading.Event()

    def watch() -> None:
        before = count()
        while not ended.wait(PATIENCE):
            if count() - before < PACE * PATIENCE:
                slow.set()
                with suppress(Exception):  # the body may end by itself in this moment
                    body.shutdown()
                return
            before = count()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:  # a connection that is ended while it is read raises all kinds
        if not slow.is_set():
            raise
        raise Broken(f"fewer than {PACE:,} bytes a second came") from error
    finally:
        ended.set()
        watcher.join()
    if slow.is_set():
        raise Broken(f"fewer than {PACE:,} bytes a second came")


def download(url: str, file: Path, checksum: str, label: str) -> None:
    """Download one file, whole and with this checksum ("" for any), or not at all.

    Raises:
        BadInput: it cannot be fetched or written, has another checksum, or is not what its name
            promises; the message says which.
    """
    import pooch

    fetcher = Resuming(file.with_name(f"{file.name}.part"), label, bool(checksum))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        resumed = fetcher.have() > 0
        fetcher(url)
        kind, _, digits = checksum.partition(":")
        right = not checksum or pooch.file_hash(str(fetcher.part), alg=kind) == digits
        wrong = "" if right and checksum else unlike(fetcher.part, file.name)
        if right and not wrong:
            os.replace(fetcher.part, file)
            fetcher.note.unlink(missing_ok=True)
            return
        fetcher.forget()
    except OSError as error:
        raise BadInput(
            f"{shown(file)} cannot be written ({reason(error)}); give another data_dir."
        ) from error
    if wrong:
        raise BadInput(
            f"{url} gives {wrong} where {file.name} should be; open it in a browser to see "
            f"what it asks for."
        )
    if resumed:  # perhaps the old part was of another file: once more from the first byte
        return download(url, file, checksum, label)
    raise BadInput(f"{url} gives other bytes than {checksum}; nothing was kept.")


def remote_size(url: str) -> int | None:
    """Length of the file at an address; None if the server does not say or does not answer."""
    import requests
    from urllib3.exceptions import HTTPError

    try:
        with asked("HEAD", url, {}) as answer:
            length = answer.headers.get("Content-Length", "")
            return int(length) if answer.ok and length.isdecimal() else None
    except (requests.RequestException, HTTPError, Broken, ValueError):
        return None
