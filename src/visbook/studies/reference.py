"""Runs by the code of an older commit, on this machine: what records of other machines are compared
with."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from visprompt import paths
from visprompt.errors import BadInput
from visprompt.records import Record, store

RUN = """
import json, sys
from pathlib import Path
from visprompt.progress import progress
from visprompt.records import read_record
from visbook.studies.from_record import again
files, weights, data_dir = json.loads(sys.stdin.read())
for file in progress(files, "running the reference"):
    again(read_record(Path(file)), weights, data_dir)
"""


def run_reference(
    commit: str, chosen: Iterable[Record], weights: Mapping[str, str], data_dir: str | None
) -> Path:
    """Run records by the code of a commit; what was done before is found again.

    Args:
        chosen: kept records, current at that commit.

    Returns:
        The folder of the records that it made.

    Raises:
        BadInput: there is no such commit, or a run failed.
    """
    root = checkout(commit)
    files = [
        str((store.stores()[1] / store.place(r.kind, r.settings, r.key)).resolve()) for r in chosen
    ]
    given = json.dumps(
        [
            files,
            {name: str(Path(file).resolve()) for name, file in weights.items()},
            absolute(data_dir),
        ]
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "VISPROMPT_ROOT": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=given, text=True, env=environment, cwd=root
    )
    if done.returncode:
        raise BadInput(
            f"the code of {commit} did not do all runs, see above. Name a commit by which "
            f"the records are current."
        )
    return root / "build" / "records"


def absolute(path: str | None) -> str | None:
    """A path that holds in another folder too."""
    return None if path is None else str(Path(path).resolve())


def checkout(commit: str) -> Path:
    """The files of a commit without the kept records, in build/reference.

    Raises:
        BadInput: there is no such commit.
    """
    whole = store.git("rev-parse", "--verify", "--short=12", f"{commit}^{{commit}}")
    if whole is None:
        raise BadInput(f"there is no commit {commit!r} here; see: git log --oneline.")
    root = paths.ROOT / "build" / "reference" / whole
    if not (root / "src").is_dir():
        part = root.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        packed = subprocess.run(
            ["git", "archive", whole], cwd=paths.ROOT, capture_output=True, check=True
        ).stdout
        subprocess.run(
            ["tar", "-x", "-C", str(part), "--exclude=book/records"], input=packed, check=True
        )
        root.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, root)
    return root
