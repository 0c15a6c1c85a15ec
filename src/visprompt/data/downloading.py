"""One file over HTTP: goes on where a broken download stopped, tries again, and never takes half a file for a whole.

pooch asks for the bytes, checks them and puts the file in its place; `Resuming` gives it those bytes.
"""

import json
import os
import shutil
import time
from pathlib import Path

from ..errors import BadInput
from ..progress import progress
from .pictures import reason, shown

PATIENCE = 60  # seconds without a byte after which a connection is given up
TRIES = 5  # connections in a row that bring nothing new
PAUSE = 1.0  # seconds before the second try; twice as long before each further one
CHUNK = 2**18
GONE = (400, 401, 403, 404, 405, 410, 451)  # trying again does not help


class Broken(Exception):
    """A connection ended before the file did, or brought no file."""


class Resuming:
    """A downloader for pooch: bytes go to NAME.part, which a later call continues.

    Args:
        part: the unfinished file; what identifies its source lies beside it as NAME.part.json.
        label: what the progress bar calls it.
        checked: whether the whole has a known checksum, so that any old part may be tried.
    """

    def __init__(self, part: Path, label: str, checked: bool):
        self.part, self.label, self.checked = part, label, checked
        self.note = part.with_name(f"{part.name}.json")

    def __call__(self, url: str, output: str | os.PathLike, pooch=None) -> None:
        """Bring the file at `url` to the path `output`.

        Raises:
            BadInput: the place has no such file, the disk is full, or the connection breaks again and again.
        """
        import requests  # slow to import

        bare, why = 0, ""
        while bare < TRIES:
            if bare:
                time.sleep(PAUSE * 2 ** (bare - 1))
            before = self.have()
            try:
                self.once(requests, url)
                os.replace(self.part, output)
                self.note.unlink(missing_ok=True)
                return
            except (requests.RequestException, Broken) as error:
                why = str(error) if isinstance(error, Broken) else type(error).__name__
                bare = 1 if self.have() > before else bare + 1
        raise BadInput(f"{url} broke off {TRIES} times ({why}); the same command goes on at byte {self.have():,}.")

    def have(self) -> int:
        """Bytes that there are already."""
        return self.part.stat().st_size if self.part.exists() else 0

    def once(self, requests, url: str) -> None:
        """One connection: ask for the rest, and write what comes."""
        known = json.loads(self.note.read_text()) if self.note.exists() else {}
        tag = known.get("tag", "")
        start = self.have() if known.get("url") == url and (tag or self.checked) else 0
        headers = {"Accept-Encoding": "identity"}  # bytes as they are, so that positions mean the same each time
        if start:
            headers |= {"Range": f"bytes={start}-"} | ({"If-Range": tag} if tag else {})
        with requests.get(url, headers=headers, stream=True, timeout=(PATIENCE, PATIENCE)) as answer:
            if answer.status_code in GONE:
                raise BadInput(f"{url} answers {answer.status_code} ({answer.reason}); the file may have moved.")
            span = answer.headers.get("Content-Range", "")
            if answer.status_code == 416 and span == f"bytes */{start}":
                return  # the part is the whole
            if answer.status_code == 416:
                self.part.unlink(missing_ok=True)
            if answer.status_code not in (200, 206):
                raise Broken(f"status {answer.status_code}")
            if answer.status_code == 206 and not span.startswith(f"bytes {start}-"):
                self.part.unlink(missing_ok=True)
                raise Broken(f"asked for byte {start}, was given {span!r}")
            start = start if answer.status_code == 206 else 0
            tag = answer.headers.get("ETag", "") or answer.headers.get("Last-Modified", "")
            self.note.write_text(json.dumps({"url": url, "tag": "" if tag.startswith("W/") else tag}))
            length = answer.headers.get("Content-Length")
            total = None if length is None else start + int(length)
            self.receive(answer, start, total)

    def receive(self, answer, start: int, total: int | None) -> None:
        """Write the body behind the `start` bytes that there are."""
        if total is not None and total - start > shutil.disk_usage(self.part.parent).free:
            raise BadInput(f"{shown(self.part.parent)} has no room for {total - start:,} bytes more; give another data_dir.")
        bar = dict(total=total, initial=start, unit="B", unit_scale=True)
        with open(self.part, "r+b" if start else "wb") as file, progress(None, self.label, **bar) as shown_bytes:
            file.seek(start)
            file.truncate()
            for chunk in answer.iter_content(CHUNK):
                file.write(chunk)
                shown_bytes.update(len(chunk))
            file.flush()
            os.fsync(file.fileno())
            if total is not None and file.tell() != total:
                raise Broken(f"{file.tell():,} of {total:,} bytes came")


def download(url: str, file: Path, checksum: str, label: str) -> None:
    """Bring one file to its place, whole and with this checksum ("" for any), or not at all.

    Raises:
        BadInput: it cannot be had, written, or has other bytes; the message says which.
    """
    import pooch

    pooch.get_logger().setLevel("ERROR")
    fetcher = Resuming(file.with_name(f"{file.name}.part"), label, bool(checksum))
    resumed = fetcher.have() > 0
    try:
        pooch.retrieve(url, checksum or None, file.name, file.parent, downloader=fetcher)
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        if resumed:  # perhaps the old part was of another file: once more from the first byte
            return download(url, file, checksum, label)
        raise BadInput(f"{url} gives other bytes than {checksum}; nothing was kept.") from error
    except OSError as error:
        raise BadInput(f"{shown(file)} cannot be written ({reason(error)}); give another data_dir.") from error


def remote_size(url: str) -> int | None:
    """The length that a place says of its file; None where it says none or does not answer."""
    import requests

    try:
        answer = requests.head(url, headers={"Accept-Encoding": "identity"}, timeout=PATIENCE, allow_redirects=True)
    except requests.RequestException:
        return None
    length = answer.headers.get("Content-Length", "")
    return int(length) if answer.ok and length.isdigit() else None
