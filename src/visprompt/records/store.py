"""Read and write records: one JSON file per run, written whole or not at all."""

import functools
import hashlib
import json
import os
import platform
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from importlib import metadata
from pathlib import Path

import numpy as np

from ..errors import BadInput, CannotWrite
from ..paths import REHEARSAL, ROOT
from ..words import REHEARSED
from . import lists, test_images
from .locks import turn


@dataclass(frozen=True)
class Record:
    """One finished or failed run.

    `kind`, `settings`, `data` and `weights` were decided before it, and `key` is their hash: a
    folder has one record per key. `code` names the file that lists what ran. Everything else
    describes how it went.
    """

    id: str  # twelve digits over everything below, so that an edited record is noticed
    key: str
    kind: str
    settings: dict
    data: str  # fingerprint of the data
    weights: str  # fingerprint of a checkpoint, or "random, seed 0"
    code: str  # name of the list of units below code/
    values: dict
    status: str = "done"  # or "failed", and then `error` says why
    error: str = ""
    seconds: float = 0.0
    peak_memory_mb: float = 0.0  # of the whole process so far, not of this run alone
    hardware: dict = field(default_factory=dict)
    versions: dict = field(default_factory=dict)
    commit: str = ""
    date: str = ""
    # profile, recipe's name, folder of the data, evidence
    about: dict = field(default_factory=dict)
    # of one that was not run again after a change of form: see `carrying`
    carried: dict = field(default_factory=dict)

    @property
    def right(self) -> np.ndarray | None:
        """Whether each test image was classified correctly, (N,) bool; None if not recorded."""
        return test_images.unpacked(self.values)


def stores() -> list[Path]:
    """The folders where records are looked up: this machine's runs, then the kept ones."""
    return [ROOT / "build" / "records", ROOT / "book" / "records"]


def new_record(
    kind, key, settings, values, start: float, *, data="", weights="", code="", about=None, **how
) -> Record:
    """A record made now on this machine; `start` is the run's start by `time.perf_counter`."""
    made = Record(
        "",
        key,
        kind,
        settings,
        data,
        weights,
        code,
        values,
        seconds=round(time.perf_counter() - start, 3),
        peak_memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        hardware=hardware(),
        versions=versions(),
        commit=commit(),
        date=date.today().isoformat(),
        about={**(about or {}), **({"rehearsal": REHEARSED} if REHEARSAL else {})},
        **how,
    )
    return with_id(made)


def with_id(record: Record) -> Record:
    """The record with its id, the hash of its content."""
    return replace(record, id=digest(asdict(record)))


def completed(record: Record, about: dict) -> Record:
    """File a record again with profile, recipe and data of the asking study, if it lacks them."""
    done = with_id(replace(record, about=about))
    write_record(done, record)
    return done


def digest(content: dict) -> str:
    """The id of a record with this content."""
    return short_hash(
        {
            name: value
            for name, value in content.items()
            if name != "id" and (value or name != "carried")
        }
    )


def place(kind: str, settings: dict, key: str) -> Path:
    """Path of a record in a store: kind/method/task/backbone.seed.key.json."""
    what = [settings[name] for name in ("method", "task") if isinstance(settings.get(name), str)]
    if not what:
        what = [settings[name] for name in ("what", "name") if isinstance(settings.get(name), str)]
    seed = settings.get("seed")
    label = [settings.get("backbone"), None if seed is None else f"seed{seed}", key]
    label = ".".join(plain(part) for part in label if isinstance(part, (str, int)))
    return Path(plain(kind), *map(plain, what), f"{label}.json")


def plain(name) -> str:
    """A name made fit for a file name."""
    return re.sub(r"[^\w.+-]+", "-", str(name)).strip(".")[:60] or "-"


def write_record(record: Record, known: Record | None = None) -> Record | None:
    """Write a record to this machine's own, replacing the one with its key.

    Args:
        known: the record that was there before the run.

    Returns:
        None, or the record that another process wrote since, which then stays.
    """
    path = stores()[0] / place(record.kind, record.settings, record.key)
    try:
        # two chapters with the same runs end them in the same moment
        with turn(stores()[0] / ".turn"):
            if path.exists():
                there = read_record(path)
                if known is None or there.id != known.id:
                    return there
            write_whole(path, as_text(record))
    except OSError as error:
        raise cannot_write(path, error) from error
    return None


def as_text(record: Record) -> str:
    """A record as JSON, one line per field."""
    fields = {name: value for name, value in asdict(record).items() if value or name != "carried"}
    lines = [
        f" {json.dumps(name)}: {json.dumps(value, allow_nan=False)}"
        for name, value in fields.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_record(path: Path) -> Record:
    """Read one record file.

    Raises:
        BadInput: the file is incomplete, or was changed after writing.
    """
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        content = json.loads(path.read_text(encoding="utf-8"))
        record = Record(**content)
        if record.id != digest(content):
            raise ValueError("it is not as it was written")
        if record.status == "done" and not path.stem.endswith(record.key):
            raise ValueError("its name belongs to another run")
        if record.about.get("rehearsal") and not REHEARSAL:
            raise ValueError("it was made in a rehearsal, whose numbers mean nothing")
        for name in ("test", "val"):
            value = record.values.get(name, 0)
            if record.kind == "tune" and not (
                isinstance(value, (int, float)) and 0 <= value <= 100
            ):
                raise ValueError(f"{name} is {value!r}, no percentage")
        if record.kind == "tune":
            test_images.unpacked(record.values)
        return record
    except (ValueError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise BadInput(
            f"record {path} is damaged ({' '.join(str(error).split())}). Delete that file "
            f"and run again."
        ) from None


def kinds() -> set[str]:
    """The kinds of which there is a record, here or kept."""
    return {path.relative_to(folder).parts[0] for folder in stores() for path in files(folder)}


def files(store: Path, kind: str = "*") -> Iterator[Path]:
    """The record files of a store, sorted by name."""
    for folder in sorted(store.glob(kind)) if store.is_dir() else ():
        if folder.name not in ("code", "failed") and folder.is_dir():
            yield from sorted(folder.rglob("*.json"))


def all_records(kind: str = "*", of: Iterable[Path] | None = None) -> list[Record]:
    """All records of a kind, the `best` of each key."""
    records: dict[tuple, list[Record]] = {}
    for store in stores() if of is None else of:
        for path in files(store, kind):
            record = read_record(path)
            records.setdefault((record.kind, record.key), []).append(record)
    return [best(same) for same in records.values()]


def find(kind: str, settings: dict, key: str) -> Record | None:
    """The `best` record of a key in both stores."""
    paths = [store / place(kind, settings, key) for store in stores()]
    records = [read_record(path) for path in paths if path.exists()]
    return best(records) if records else None


def best(records: list[Record]) -> Record:
    """The first current record, this machine's first; if none is current the last, the kept one."""
    return next((record for record in records if is_current(record)), records[-1])


def find_records(ids: Iterable[str]) -> dict[str, Record]:
    """Id -> record, from this machine's runs or the kept ones.

    Raises:
        BadInput: an id does not exist, or a record is damaged.
    """
    every = {id_of(path): path for store in reversed(stores()) for path in files(store)}
    wanted = list(dict.fromkeys(ids))
    for id in wanted:
        if id not in every:
            raise BadInput(
                f"no record {id!r} in {' or '.join(map(str, stores()))}. Run the notebook again."
            )
    return {id: read_record(every[id]) for id in wanted}


def id_of(path: Path) -> str:
    """The id in the first line of a record file, without reading the rest; "" if there is none."""
    with open(path, "rb") as file:
        match = re.match(rb'\{\s*"id": "(\w+)"', file.read(64))
    return match[1].decode() if match else ""


def find_record(record_id: str) -> Record:
    """The record with this id; see `find_records`."""
    return find_records([record_id])[record_id]


def write_code(units: dict[str, str]) -> str:
    """Write a list of units under its own hash, once for all records; return the hash."""
    name = short_hash(units)
    path = stores()[0] / "code" / f"{name}.json"
    if read_code(path) is None:
        write_whole(path, code_text(units))
    return name


def code_text(units: dict[str, str]) -> str:
    """A list of units as JSON, one line per unit."""
    return json.dumps(units, indent=0, sort_keys=True)


def read_code(path: Path) -> dict[str, str] | None:
    """A list of units; None if it is missing, or does not match its name."""
    try:
        units = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return units if isinstance(units, dict) and short_hash(units) == path.stem else None


def is_current(record: Record) -> bool:
    """Whether all code that ran for a record is unchanged today; pages mark the others."""
    for store in stores():
        path = store / "code" / f"{record.code}.json"
        if record.code and path.is_file():
            return code_stands(path, path.stat().st_mtime_ns)
    return False


@functools.lru_cache(maxsize=4096)
def code_stands(path: Path, changed: int) -> bool:
    """Whether the units of a list are unchanged today."""
    units = read_code(path)
    return units is not None and lists.stands(units)


def units_of(record: Record) -> dict[str, str]:
    """The units of a record; {} if its list is missing."""
    lists = (read_code(store / "code" / f"{record.code}.json") for store in stores())
    return next((units for units in lists if units is not None), {})


def write_whole(path: Path, text: str) -> None:
    """Write a file so that readers see all of it or nothing, whatever happens in between.

    Raises:
        CannotWrite: the disk is full or the folder cannot be written.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8"
        ) as file:
            temporary = Path(file.name)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # temporary files are private, records are shared
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            temporary.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> CannotWrite:
    """The error for a file or folder that cannot be written."""
    return CannotWrite(
        f"cannot write {path}: {error.strerror}. Free some space (or mend the folder) and "
        f"run again; finished runs are kept."
    )


def sweep_parts(store: Path, age: float = 3600) -> None:
    """Delete left-overs of interrupted writes that are older than `age` seconds."""
    for path in store.rglob("*.part"):
        try:
            if time.time() - path.stat().st_mtime > age:
                path.unlink()
        except OSError:
            continue  # another process was faster, or the folder cannot be written


def short_hash(value) -> str:
    """Twelve hex digits of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def fingerprint_file(path: Path) -> str:
    """Twelve hex digits of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def hardware() -> dict:
    """Processor, cores, threads and accelerator of this machine."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    parts = {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }
    if gpu:  # whether float32 is shortened to nineteen bits there
        parts["tf32"] = {
            "matrix products": torch.backends.cuda.matmul.allow_tf32,
            "convolutions": torch.backends.cudnn.allow_tf32,
        }
        # else two runs of a seed may differ in the last bits: scatter, index_add, attention's
        # backward pass
        parts["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return parts


@functools.cache
def processor() -> str:
    """Name of the processor."""
    if Path("/proc/cpuinfo").exists():
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


@functools.cache
def versions() -> dict:
    """Versions of the packages that compute."""
    names = ("torch", "torchvision", "timm", "numpy", "scikit-learn", "visprompt")
    packages = {}
    for name in names:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    return {"python": platform.python_version(), **packages}


def git(*words: str) -> str | None:
    """Output of a git command in the repository; None if it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


DECIDES = ("src", "notebooks", "data_manifests")  # folders whose files decide values


@functools.cache
def commit() -> str:
    """The commit this runs from, with "+changes" if files that decide values differ from it.

    For a copy of a commit's files, VISPROMPT_COMMIT states the commit.
    """
    if stated := os.environ.get("VISPROMPT_COMMIT"):
        return stated
    head = git("rev-parse", "--short=12", "HEAD")
    if head is None:
        return "unknown"
    return head + ("+changes" if git("status", "--porcelain", "--", *DECIDES) else "")
