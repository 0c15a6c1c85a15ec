"""An index of all records in build/, so that listing thousands opens only new ones.

The index may be deleted at any time. It is valid only while every file that it was made from is
unchanged: the record, its code list, and all sources of the packages and notebooks, which decide
whether a record is current, as do the variables and other files that its run read.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import CannotWrite
from ..paths import MANIFESTS, PACKAGES
from . import lists, source, store

# seconds: a file that was changed this short ago may change again without its times showing it
YOUNG = 1.0
# whose other versions a list and the pages of records name
COMPARED = ("torch", "torchvision", "timm")
SEEN: dict[str, str] = {}  # "tree": the state of the sources that this process has parsed


def entries(kind: str | None = None) -> Iterator[dict]:
    """The listing of every record, this machine's and the kept ones, sorted by name.

    Yields:
        "store" ("here" or "kept"), "path", "current", "carried", "settings" (flattened, see
        `flat`), and of the record "id", "key", "kind", "status", "weights", "data", "commit",
        "date", "seconds", "about", "versions", "test", "val".

    Raises:
        BadInput: a record is damaged.
    """
    tree = state_of_sources()
    known, codes, fresh = load(tree), {}, {}
    parsed_now = is_of(tree)
    for name, folder in zip(("here", "kept"), store.stores(), strict=True):
        for path in map(str, store.files(folder, kind or "*")):
            state = state_of(path)
            remembered: Any = known.get(path)
            if (
                remembered is None
                or remembered[0] != state
                or remembered[1] != state_of_code(remembered[2]["code"], codes)
                or remembered[2]["reads"] != read_now(remembered[2]["reads"])
            ):
                entry = entry_of(Path(path))
                remembered = [state, state_of_code(entry["code"], codes), entry]
            if not (is_young(state) or remembered[2]["about"].get("rehearsal")):
                fresh[path] = remembered
            yield {"store": name, "path": path, **remembered[2]}
    whole = fresh if kind is None else known | fresh
    if whole != known and parsed_now and state_of_sources() == tree:
        save(tree, whole)


def entry_of(path: Path) -> dict:
    """The listing of one record; see `entries`."""
    record = store.read_record(path)
    names = "id key kind code status weights data commit date seconds about versions".split()
    return {
        **{name: getattr(record, name) for name in names},
        "settings": flat(record.settings),
        "test": record.values.get("test"),
        "val": record.values.get("val"),
        "current": store.is_current(record),
        "carried": bool(record.carried),
        "reads": read_now(store.units_of(record)),
    }


def read_now(places: Iterable[str]) -> dict[str, str]:
    """Place -> today's hash of the variables, and of the files not in `state_of_sources`."""
    pairs = [place.split(":", 1) for place in places]
    return {
        f"{kind}:{name}": lists.READ[kind](name)
        for kind, name in pairs
        if kind in lists.READ and not name.startswith("data_manifests/")
    }


def flat(settings: Mapping, above: str = "") -> dict:
    """Nested settings as one level, names joined by dots; a list becomes its JSON."""
    level = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            level |= flat(value, f"{above}{name}.")
        else:
            level[f"{above}{name}"] = (
                json.dumps(value) if isinstance(value, (list, tuple, Mapping)) else value
            )
    return level


def minor(version: str) -> str:
    """Major and minor version: 2.15 of 2.15.0+cpu."""
    return ".".join(version.split("+")[0].split(".")[:2])


def other_versions(versions: Mapping) -> str:
    """Packages of a record that differ here in major or minor version: "torch 2.9", or ""."""
    pairs = [
        (name, versions[name], here)
        for name, here in store.versions().items()
        if name in COMPARED and name in versions
    ]
    return ", ".join(
        f"{name} {minor(made)}"
        for name, made, here in pairs
        if made != here and minor(made) != minor(here)
    )


def file() -> Path:
    """Path of the index."""
    return store.stores()[0].parent / "records-index.json"


def state_of(path: str | Path) -> list[int] | None:
    """Times, size and inode of a file, which change with it; None if there is none."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return [stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino]


def is_young(state: list[int] | None) -> bool:
    """Whether a file was changed so recently that its next change may not show in its state."""
    return state is None or time.time() - max(state[:2]) / 1e9 < YOUNG


def state_of_code(code: str, known: dict) -> list:
    """The state of a code list in each store.

    Args:
        known: caches the states.
    """
    if code not in known:
        known[code] = [state_of(folder / "code" / f"{code}.json") for folder in store.stores()]
    return known[code]


def state_of_sources() -> str:
    """A hash of versions and of the states of all files that decide what is current."""
    manifests = [path for path in MANIFESTS.rglob("*") if path.suffix in (".yaml", ".csv")]
    paths = sorted(
        map(
            str,
            [
                *(path for package in PACKAGES for path in package.rglob("*.py")),
                *source.NOTEBOOKS.glob("*.py"),
                *manifests,
            ],
        )
    )
    states = {path: state_of(path) for path in paths}
    return (
        "" if any(map(is_young, states.values())) else store.short_hash([states, store.versions()])
    )


def is_of(tree: str) -> bool:
    """Whether the sources that this process has parsed, or will parse, are those on disk."""
    if not source.MODULES:
        SEEN["tree"] = tree
    return tree != "" and SEEN.get("tree") == tree


def load(tree: str) -> dict[str, list[Any]]:
    """Path -> [state of the record, state of its code list, entry]; {} if the index is invalid."""
    try:
        head, _, body = file().read_bytes().partition(b"\n")
        if head.decode() != f"{tree} {hashlib.sha256(body).hexdigest()}":
            return {}
        return json.loads(body)
    except (OSError, ValueError):
        return {}


def save(tree: str, whole: dict[str, list]) -> None:
    """Write the index; if that fails, the next listing reads the records again."""
    body = json.dumps(whole, separators=(",", ":"))
    try:
        store.write_whole(file(), f"{tree} {hashlib.sha256(body.encode()).hexdigest()}\n{body}")
    except CannotWrite:
        return
