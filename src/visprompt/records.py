"""What a run leaves behind: one JSON file, written whole or not at all, found again by what decides it."""

import ast
import functools
import hashlib
import json
import os
import platform
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib import metadata
from pathlib import Path

import torch

from .errors import BadInput
from .manifests import ROOT
from .progress import progress

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class Record:
    """One finished or failed run.

    `settings` and the fingerprints decide `id`; everything else describes how the run went.
    `fingerprints` holds "code" (module name -> hash), "data" and "weights".
    """

    id: str
    kind: str
    settings: dict
    fingerprints: dict
    values: dict
    status: str = "done"  # or "failed", and then `error` says why
    error: str = ""
    seconds: float = 0.0
    peak_memory_mb: float = 0.0  # of the whole process so far, not of this run alone
    hardware: dict = field(default_factory=dict)
    versions: dict = field(default_factory=dict)
    commit: str = ""
    date: str = ""


def stores() -> list[Path]:
    """Where records are looked up: this machine's own runs first, then the runs the project keeps."""
    return [ROOT / "build" / "records", ROOT / "book" / "records"]


def recorded(
    kind: str,
    settings: Mapping,
    compute: Callable[[], Mapping],
    *,
    code: Sequence[str],
    data: str = "",
    weights: str = "",
    run: bool = True,
) -> Record | None:
    """Return the record of this run, computing it only if none is there.

    Args:
        kind: folder of the record, such as "tune".
        settings: everything that was chosen, as JSON-able values.
        compute: does the run and returns its values, JSON-able, without NaN.
        code: modules under `visprompt` whose source decides the values; docstrings and comments do not count.
        data, weights: fingerprints of the data and of the weights used.
        run: False only looks: it returns a record of the same settings made by other code, data or weights
            (see `is_current`) rather than none, and None where there is none at all.

    Raises:
        BadInput: the record on disk is damaged, or the disk is full. What `compute` raises passes
            through, after a record of the failure has been written.
    """
    fingerprints = {"code": {name: fingerprint_code(name) for name in code}, "data": data, "weights": weights}
    settings = json.loads(json.dumps(dict(settings)))  # tuples become lists, as they will on reading
    name = f"{short_hash([kind, settings])}-{short_hash(fingerprints)}"
    for store in stores():
        if (store / kind / f"{name}.json").exists():
            return read_record(store / kind / f"{name}.json")
    if not run:
        hashes = dict.fromkeys(short_hash([kind, older]) for older in (settings, before_later_fields(settings)))
        others = [p for store in stores() for start in hashes for p in store.glob(f"{kind}/{start}-*.json")]
        others = [p for p in others if ".failed" not in p.name]
        return read_record(max(others, key=lambda p: p.stat().st_mtime)) if others else None
    path = stores()[0] / kind / f"{name}.json"
    start = time.perf_counter()
    try:
        done = new_record(name, kind, settings, fingerprints, dict(compute()), start)
        text = json.dumps(asdict(done), allow_nan=False, indent=1)
    except Exception as error:
        record_failure(kind, settings, error, fingerprints, start)
        raise
    write_whole(path, text)
    path.with_suffix(".failed.json").unlink(missing_ok=True)
    return done


LATER_FIELDS = {"recipe": {"augmentation": "none"}}  # fields younger than some kept records, with what these had


def before_later_fields(settings: dict) -> dict:
    """Settings as a record older than `LATER_FIELDS` has them; unchanged where a field has another value."""
    older = dict(settings)
    for part, fields in LATER_FIELDS.items():
        if isinstance(older.get(part), dict) and fields.items() <= older[part].items():
            older[part] = {key: value for key, value in older[part].items() if key not in fields}
    return older


def new_record(name, kind, settings, fingerprints, values, start: float, **how) -> Record:
    """A record of this machine, now; `start` is when the run began by `time.perf_counter`."""
    return Record(
        name, kind, settings, fingerprints, values,
        seconds=round(time.perf_counter() - start, 3),
        peak_memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        hardware=hardware(), versions=versions(), commit=commit(), date=date.today().isoformat(), **how,
    )  # fmt: skip


def record_failure(kind: str, settings: dict, error: Exception, fingerprints=None, start: float | None = None) -> None:
    """Leave a record of a run that failed, also of one that failed before its data or weights were there."""
    fingerprints = fingerprints or {"code": {}, "data": "", "weights": ""}
    name, why = f"{short_hash([kind, settings])}-{short_hash(fingerprints)}", f"{type(error).__name__}: {error}"
    start = time.perf_counter() if start is None else start
    failed = new_record(name, kind, settings, fingerprints, {}, start, status="failed", error=why)
    write_whole(stores()[0] / kind / f"{name}.failed.json", json.dumps(asdict(failed), indent=1))


def is_current(record: Record) -> bool:
    """Whether today's code would give this record; a page that shows another one says so."""
    return all(
        PACKAGE.joinpath(*name.split(".")).with_suffix(".py").exists() and fingerprint_code(name) == value
        for name, value in record.fingerprints["code"].items()
    )


def run_all(jobs: Iterable[tuple[str, Callable[[], Record]]], label: str) -> list[Record]:
    """Run named jobs in turn with a progress bar; a failed one does not stop the others.

    Raises:
        BadInput: after the last job, when any failed; each failure is named.
    """
    jobs, done, failures = list(jobs), [], {}
    for name, job in progress(jobs, label):
        try:
            done.append(job())
        except Exception as error:
            why = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
            failures.setdefault(why, []).append(name)
    if failures:
        count = sum(map(len, failures.values()))
        told = [f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {why}" for why, names in failures.items()]
        raise BadInput(f"{count} of {len(jobs)} runs failed; their records say so. " + " | ".join(told))
    return done


def read_record(path: Path) -> Record:
    """Read one record file.

    Raises:
        BadInput: the file is no whole record.
    """
    try:
        record = Record(**json.loads(path.read_text(encoding="utf-8")))
        if record.id != path.name.split(".")[0]:
            raise ValueError(f"it holds {record.id}")
        return record
    except (ValueError, TypeError) as error:
        raise BadInput(f"record {path} is damaged ({error}). Delete that file and run again.") from None


def find_record(record_id: str) -> Record:
    """The record with this id, from this machine's runs or the kept ones.

    Raises:
        BadInput: there is none, or it is damaged.
    """
    for store in stores():
        for path in store.glob(f"*/{record_id}.json"):
            return read_record(path)
    raise BadInput(f"no record {record_id!r} in {' or '.join(map(str, stores()))}. Run the notebook again.")


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds all of it or nothing, whatever happens in between.

    Raises:
        BadInput: the disk is full or the folder cannot be written.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # temporary files are private, records are shared
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            temporary.unlink(missing_ok=True)
        raise BadInput(
            f"cannot write {path}: {error.strerror}. Free some space (or mend the folder) and run again; "
            "finished runs are kept."
        ) from error


def short_hash(value) -> str:
    """Twelve hex digits that stand for a JSON-able value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@functools.cache
def fingerprint_code(module: str) -> str:
    """Hash of a module's syntax tree without docstrings, so that prose does not outdate a record."""
    path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
                body[0].value.value = ""
    return short_hash(ast.dump(tree))


def fingerprint_file(path: Path) -> str:
    """Twelve hex digits of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


@functools.cache
def hardware() -> dict:
    """Processor, cores, threads and accelerator of this machine."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
        cpu = names[0] if names else cpu
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    return {"cpu": cpu, "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpu": gpu}


@functools.cache
def versions() -> dict:
    """Versions of what computes."""
    names = ("torch", "torchvision", "timm", "numpy", "scikit-learn", "visprompt")
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return {"python": platform.python_version(), **found}


@functools.cache
def commit() -> str:
    """The commit this runs from, with "+changes" when files differ from it."""
    git = functools.partial(subprocess.run, cwd=ROOT, capture_output=True, text=True)
    try:
        head = git(["git", "rev-parse", "--short=12", "HEAD"])
        if head.returncode:
            return "unknown"
        return head.stdout.strip() + ("+changes" if git(["git", "status", "--porcelain", "-uno"]).stdout else "")
    except OSError:
        return "unknown"
