"""Fetch data sets, with the checksums that were published or those of the first download.

A data folder has one folder per data set, and `datasets.lock.json`: what was fetched, from where,
when, and its checksum.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from ..errors import BadInput
from ..progress import log
from ..records.locks import turn
from ..records.store import write_whole
from . import catalogue
from .catalogue import DataSet, File
from .downloading import download, remote_size, unlike
from .pictures import kind, reason, shown
from .unpacking import leftovers, stem, unpack

LOCK = "datasets.lock.json"


@dataclass(frozen=True)
class Pin:
    """The lock's entry of a file."""

    sha256: str
    size: int
    address: str  # "" where a person put it there
    day: str


@dataclass(frozen=True)
class Finding:
    """The state of one file.

    "fetched", "there", "to fetch", "missing", "deleted after unpacking" or "other bytes".
    """

    dataset: str
    file: str
    state: str
    size: int | None = None


def data_folder(given: str | os.PathLike | None = None) -> Path:
    """The data folder: the given one, else VISPROMPT_DATA, else one in the user's cache.

    Raises:
        BadInput: not a possible folder name, or the folder cannot be read.
    """
    if given or os.environ.get("VISPROMPT_DATA"):
        given = given or os.environ["VISPROMPT_DATA"]
        try:
            folder = Path(given).expanduser()
        except RuntimeError as error:
            raise BadInput(
                f"data_dir {shown(given)} names a user that is not known; give a whole path."
            ) from error
        kind(folder, f"data_dir {shown(given)}")
        return folder
    import pooch

    return Path(pooch.os_cache("visprompt")) / "data"


def fetch(
    *names: str, data_dir: str | os.PathLike | None = None, dry_run: bool = False
) -> list[Finding]:
    """Download data sets to the data folder, check each file, and unpack archives.

    Existing files are kept.

    Args:
        names: data sets, their aliases or tasks; see `catalogue.find`.
        dry_run: only report what there is and how large the rest is.

    Returns:
        One finding per file; "missing" for those to be got by hand, by the steps of
        `catalogue.find(name).steps`.

    Raises:
        BadInput: an unknown name, a file that cannot be fetched, or a checksum that is not the
            published or pinned one.
    """
    folder, findings = data_folder(data_dir), []
    for dataset in catalogue.chosen(names):
        if dry_run:
            findings += planned(dataset, folder)
            continue
        with own_turn(folder / dataset.name, f"{dataset.name}") as alone:
            for undone in leftovers(folder / dataset.name) if alone else ():
                shutil.rmtree(undone, ignore_errors=True)
            findings += [fetch_file(dataset, file, folder) for file in dataset.files]
    return findings


def planned(dataset: DataSet, folder: Path) -> list[Finding]:
    """What `fetch` would return, without doing it."""
    findings, pins = [], read_lock(folder).get(dataset.name, {})
    for file in dataset.files:
        place = folder / dataset.name / file.name
        if place.exists() or (
            stem(file.name) and (folder / dataset.name / stem(file.name)).exists()
        ):
            findings.append(
                Finding(
                    dataset.name,
                    file.name,
                    "there",
                    place.stat().st_size if place.exists() else None,
                )
            )
            continue
        size = file.size or (pins[file.name].size if file.name in pins else None)
        if dataset.access == "open":
            size = size or next(filter(None, map(remote_size, file.addresses)), None)
        findings.append(
            Finding(
                dataset.name, file.name, "to fetch" if dataset.access == "open" else "missing", size
            )
        )
    return findings


def fetch_file(dataset: DataSet, file: File, folder: Path) -> Finding:
    """Download one file of a data set, check it, pin it and unpack it."""
    place, pin = (
        folder / dataset.name / file.name,
        read_lock(folder).get(dataset.name, {}).get(file.name),
    )
    unpacked = place.parent / stem(file.name) if stem(file.name) else None
    if not place.exists():
        if pin and unpacked and unpacked.exists():
            return Finding(dataset.name, file.name, "deleted after unpacking")
        if dataset.access != "open" or not file.addresses:
            return Finding(dataset.name, file.name, "missing", file.size)
        address = first_that_works(dataset, file, place, pin, folder)
        state = "fetched"
    else:
        address, state = "", "there"
        if wrong := differs(place, file, pin):
            raise BadInput(f"{shown(place)} {wrong}; delete it and fetch again.")
        if not pin and not file.checksum and (wrong := unlike(place, file.name)):
            raise BadInput(f"{shown(place)} is {wrong}; delete it and fetch again.")
    if pin is None:
        digits = (
            file.checksum.removeprefix("sha256:")
            if file.checksum.startswith("sha256:")
            else digest(place, "sha256")
        )
        add_pin(
            folder,
            dataset.name,
            file.name,
            Pin(digits, place.stat().st_size, address, date.today().isoformat()),
        )
        if not file.checksum:
            what = (
                f"{dataset.name}/{file.name}: no checksum was published; "
                f"sha256:{digits} is now pinned in {shown(folder / LOCK)}"
            )
            print(what, file=log(), flush=True)
    if unpacked:
        unpack(place)
    return Finding(dataset.name, file.name, state, place.stat().st_size)


def first_that_works(
    dataset: DataSet, file: File, place: Path, pin: Pin | None, folder: Path
) -> str:
    """Download from the first address that gives the right file, and return that address.

    Raises:
        BadInput: none does; the message names all failures.
    """
    failures = []
    for address in file.addresses:
        try:
            download(
                address,
                place,
                file.checksum or (f"sha256:{pin.sha256}" if pin else ""),
                f"{dataset.name}/{file.name}",
            )
            if pin and (wrong := differs(place, file, pin)):
                place.unlink()
                raise BadInput(f"{address} {wrong}.")
            return address
        except BadInput as error:
            failures.append(str(error))
    pinned = (
        f" If the new bytes are right, delete its entry in {folder / LOCK}."
        if pin and not file.checksum
        else ""
    )
    raise BadInput(" | ".join(failures) + pinned)


def verify(*names: str, data_dir: str | os.PathLike | None = None) -> list[Finding]:
    """Compare files of data sets with published and pinned checksums.

    Args:
        names: data sets; without names all those in the lock.
    """
    folder = data_folder(data_dir)
    lock, findings = read_lock(folder), []
    for dataset in catalogue.chosen(names or lock):
        pins = lock.get(dataset.name, {})
        for file in dataset.files:
            place, size = folder / dataset.name / file.name, None
            if place.exists():
                size = place.stat().st_size
                state = "other bytes" if differs(place, file, pins.get(file.name)) else "there"
            elif (
                file.name in pins and stem(file.name) and (place.parent / stem(file.name)).exists()
            ):
                state = "deleted after unpacking"
            else:
                state = "missing"
            findings.append(Finding(dataset.name, file.name, state, size))
    return findings


def differs(place: Path, file: File, pin: Pin | None) -> str:
    """How a file differs from the published and pinned one; "" if it does not."""
    wanted = [file.checksum] if file.checksum else []
    if pin and not file.checksum.startswith("sha256:"):
        wanted.append(f"sha256:{pin.sha256}")
    if (
        pin
        and file.checksum.startswith("sha256:")
        and pin.sha256 != file.checksum.removeprefix("sha256:")
    ):
        return f"was pinned with sha256:{pin.sha256}, and the manifest now says {file.checksum}"
    for checksum in wanted:
        kind, _, digits = checksum.partition(":")
        if digest(place, kind) != digits:
            whose = "pinned at the first download" if checksum not in file.checksum else "published"
            return f"has not the {checksum} that was {whose}"
    return ""


def digest(place: Path, kind: str) -> str:
    """Checksum of a file, hexadecimal."""
    import pooch

    try:
        return pooch.file_hash(str(place), alg=kind)
    except OSError as error:
        raise BadInput(f"{shown(place)} cannot be read ({reason(error)}).") from error


def read_lock(folder: Path) -> dict[str, dict[str, Pin]]:
    """The pins of a data folder: data set -> file -> pin.

    Raises:
        BadInput: the lock is damaged.
    """
    path = folder / LOCK
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        pins = {
            name: {file: Pin(**pin) for file, pin in files.items()}
            for name, files in content.items()
        }
        for pin in (pin for files in pins.values() for pin in files.values()):
            if not (isinstance(pin.size, int) and re.fullmatch("[0-9a-f]{64}", pin.sha256)):
                raise ValueError(f"{pin} is no pin")
        return pins
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"{shown(path)} is damaged ({shown(error)}); restore your copy, or delete it "
            f"to pin anew."
        ) from error
    except OSError as error:
        raise BadInput(f"{shown(path)} cannot be read ({reason(error)}).") from error


def add_pin(folder: Path, dataset: str, file: str, pin: Pin) -> None:
    """Write a pin to the lock, whole or not at all."""
    with own_turn(folder, LOCK):
        pins = read_lock(folder)
        pins.setdefault(dataset, {})[file] = pin
        content = {
            name: {file: asdict(pin) for file, pin in sorted(files.items())}
            for name, files in sorted(pins.items())
        }
        write_whole(folder / LOCK, json.dumps(content, indent=1) + "\n")


@contextlib.contextmanager
def own_turn(folder: Path, what: str) -> Iterator[bool]:
    """Lock a folder, waiting for other processes; yields False if the file system has no locks."""
    try:
        with turn(folder / ".turn") as alone:
            yield alone
    except OSError as error:
        raise BadInput(
            f"{shown(folder)} cannot be written for {what} ({reason(error)}); give another "
            f"data_dir."
        ) from error


def total(findings: Sequence[Finding]) -> tuple[int, int]:
    """Bytes still to fetch, and the number of files of unknown size."""
    rest = [finding for finding in findings if finding.state in ("to fetch", "missing")]
    return sum(finding.size or 0 for finding in rest), sum(finding.size is None for finding in rest)
