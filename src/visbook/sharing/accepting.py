"""Check what another sends, and write it whole or not at all."""

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

from visprompt import records
from visprompt.errors import BadInput
from visprompt.progress import progress
from visprompt.records import Record, store

from . import form, origins, others, possible, reruns
from .reruns import Rerun


@dataclass(frozen=True)
class Found:
    """A submission of which all holds.

    Attributes:
        name: of its folder, twelve digits of its content.
        equal: ids of records that have the values of one of ours to the last digit.
        checked: what was checked, a line each.
    """

    name: str
    given: form.Submission
    records: list[Record]
    equal: list[str]
    checked: list[str]


def look(path: Path, where: origins.Origins) -> Found:
    """Check a file in all that can be seen without running anything.

    Raises:
        BadInput: something does not hold; one line says what.
    """
    given = form.read(path)
    name = store.short_hash([asdict(given.sender), given.records, given.code])
    if (others.home() / name).exists():
        raise BadInput(f"{path} was accepted already, as {name}.")
    found = [
        possible.checked(content, sent)
        for content, sent in zip(given.records, given.sent, strict=True)
    ]
    twice = [key for key, count in Counter(record.key for record in found).items() if count > 1]
    if twice:
        raise BadInput(f"the file has two records of the run {twice[0]}.")
    equal = copies(found)
    checked = [f"form and identity of {len(found)} records", *origins.code(found, given.code)]
    for record in progress(found, "data and weights"):
        where.check(record)
    checked += ["data, weights and parameters are the manifests'", *sorted(where.unknown)]
    checked += ["values are possible; none is a copy of another run"]
    if equal:
        checked.append(f"{len(equal)} are equal to ours to the last digit and count for nobody")
    return Found(name, given, found, equal, checked)


def copies(found: list[Record]) -> list[str]:
    """Ids of the records that have the values of one of ours.

    Raises:
        BadInput: a record is a copy of another run's, here or in the same file.
    """
    before = [record for one in others.accepted() for record in one.records]
    curves, equal = possible.Curves([*records.all_records("tune"), *before]), []
    for record in found:
        try:
            same = curves.check(record)
        except BadInput as error:
            raise BadInput(f"record {record.id}: {error}") from None
        equal += [record.id] * (same is not None)
        curves.add(record)
    return equal


def run_again(
    found: Found, where: origins.Origins, count: int, seed: int, epochs: int | None
) -> tuple[Found, list[Rerun]]:
    """Do a drawn few of the runs again.

    Raises:
        BadInput: one came out otherwise than two machines differ by.
    """
    drawn = reruns.draw(found.records, count, seed, where)
    done = []
    for record in progress(drawn, "running drawn records again"):
        done.append(reruns.rerun(record, where, epochs, found.given.code[record.code]))
        reruns.all_agree(done)
    told = f"{len(done)} of {len(found.records)} runs were done again (seed {seed}) and agree"
    if not done:
        told = "no run was done again" + ("; none can be on this machine" if count else "")
    return replace(found, checked=[*found.checked, told]), done


def write(found: Found, done: list[Rerun], seed: int) -> Path:
    """Write an accepted submission under its name, whole or not at all; return its folder.

    Raises:
        CannotWrite: the disk is full or the folder cannot be written.
    """
    home, part = others.home(), None
    target = home / found.name
    try:
        home.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=home))
        for record in found.records:
            at = part / store.place(record.kind, record.settings, record.key)
            store.write_whole(at, store.as_text(record))
        for name, units in found.given.code.items():
            store.write_whole(part / "code" / f"{name}.json", store.code_text(units))
        about = {
            "sender": asdict(found.given.sender),
            "date": date.today().isoformat(),
            "commit": store.commit(),
            "checked": found.checked,
            "equal": found.equal,
            "seed": seed,
            "reruns": [asdict(one) for one in done],
        }
        store.write_whole(part / "accepted.json", json.dumps(about, indent=1) + "\n")
        part.chmod(0o755)
        os.rename(part, target)
    except OSError as error:
        raise store.cannot_write(target, error) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)
    return target


def accept(
    path: Path,
    files: Mapping[str, str] = {},
    data_dir: str | None = None,
    *,
    count: int,
    seed: int,
    epochs: int | None = None,
    dry_run: bool = False,
) -> tuple[Found, list[Rerun], Path | None]:
    """Check a file, run a drawn few of its runs again and, if all holds, write it.

    Args:
        files: backbone -> file, for weights that are not published under its name.
        data_dir: folder of the tasks that are not embedded.
        count: how many runs to do again.
        seed: which ones; the sender must not know it.
        epochs: only the first of each.
        dry_run: write nothing.

    Raises:
        BadInput: something does not hold, and nothing was written.
        CannotWrite: the disk is full or the folder cannot be written.
    """
    where = origins.Origins(files, data_dir)
    found, done = run_again(look(path, where), where, count, seed, epochs)
    return found, done, None if dry_run else write(found, done, seed)
