"""Lists of the code, files and variables that runs used (place -> hash), and whether they hold."""

import ast
import hashlib
import json
import os
from pathlib import Path

from ..paths import MANIFESTS, ROOT
from . import source


def read_by(at: source.Module, unit: str) -> dict[str, str]:
    """Place -> hash of the constants that a unit reads, and of what those are computed from.

    Results cached by functools count as constants, and so do attributes of a class that is named.
    """
    constants: dict[str, str] = {}

    def enter(there: source.Module, name: str) -> None:
        place = f"{there.name}:{name}"
        if place not in constants:
            constants[place] = source.hash_of(there, name)
            follow(there, name, True)

    def follow(at: source.Module, unit: str, whole: bool) -> None:
        for there, name, called in source.targets(at, unit):
            if source.is_silent_module(there.name) or (
                there.name.startswith("notebooks.") and name in source.NOT_READ
            ):
                continue
            if isinstance(there.units[name][0], ast.ClassDef):
                for owner, part in attributes(there, name, whole):
                    enter(owner, part)
            elif (
                source.is_constant(there, name)
                or source.is_cached(there, name)
                or (whole and called)
            ):
                enter(there, name)

    follow(at, unit, source.is_cached(at, unit))
    return constants


def attributes(
    at: source.Module, kind: str, whole: bool = False
) -> list[tuple[source.Module, str]]:
    """A class, its bases, and what they bind except methods.

    Args:
        whole: with methods, and with the fields of dataclasses and named tuples, for what is
            created or called at import; in a run the watch sees which of these are used.
    """
    own = [
        unit
        for unit in at.units
        if unit.startswith(f"{kind}.") and (whole or source.is_constant(at, unit))
    ]
    found = [
        (at, kind),
        *((at, unit) for unit in own if whole or not source.is_field(at, unit, at.units[unit][0])),
    ]
    bases = (source.defined(base, at) for base in at.bases.get(kind, []))
    return found + [
        p
        for base in bases
        if base and not source.is_silent_module(base[0].name)
        for p in attributes(*base, whole)
    ]


def as_list(units: dict[str, str]) -> dict[str, str]:
    """Units as a record lists them: hash, count of units with that name and hash, and a mark.

    See `stands` for the marks.
    """
    units = {place: bare(digest) for place, digest in sorted(units.items())}
    for place, digest in units.items():
        if (
            place.split(":")[0] in source.paths()
            and (times := source.often(place.split(":")[1], digest)) > 1
        ):
            units[place] = f"{digest}*{times}"
    known = said_of(units)
    return {
        place: digest if means_the_same(place, known) else f"{digest}~"
        for place, digest in units.items()
    }


def stands(units: dict[str, str]) -> bool:
    """Whether all units still have their hashes; a moved unit counts, in the same number of copies.

    A hash with "*3" belonged to three units of one name. One with "~" belongs to a unit that uses a
    name which also belongs to another unit of that run, so that names are ambiguous there.
    """
    for place, said_then in units.items():
        name, unit = place.split(":", 1)
        if name in READ:
            if READ[name](unit) != said_then:
                return False
            continue
        wanted, _, times = said_then.rstrip("~").partition("*")
        at = source.module(name)
        if at is not None and unit in at.units:
            if source.hash_of(at, unit) != wanted:
                return False
        elif source.often(unit, wanted) < int(times or 1):
            return False
    known = said_of(units)
    return all(
        said_then.endswith("~") or means_the_same(place, known)
        for place, said_then in units.items()
    )


def file_said(name: str) -> str:
    """Twelve hex digits of a file that a run read; for YAML of its content.

    Args:
        name: a path below the project, or `path#key.key` for one entry of a YAML file.
    """
    from ..errors import BadInput
    from ..manifests import load_yaml

    path, _, keys = name.partition("#")
    try:
        if Path(path).suffix in (".yaml", ".yml"):
            content = load_yaml(ROOT / path if (ROOT / path).exists() else MANIFESTS.parent / path)
            for key in filter(None, keys.split(".")):
                content = content[key]
            content = json.dumps(content, sort_keys=True, default=str).encode()
        else:
            content = (ROOT / path).read_bytes()
    except (OSError, BadInput, KeyError, TypeError):
        return "none"
    return hashlib.sha256(content).hexdigest()[:12]


def variable_said(name: str) -> str:
    """Twelve hex digits of an environment variable that a run read; "none" if it is unset."""
    return (
        hashlib.sha256(os.environ[name].encode()).hexdigest()[:12] if name in os.environ else "none"
    )


# what a run read, beside code: kind -> what it says today
READ = {"file": file_said, "variable": variable_said}


def said_of(units: dict[str, str]) -> dict[str, set[str]]:
    """Name of a unit -> the hashes under that name in a list of units."""
    known: dict[str, set[str]] = {}
    for place, value in units.items():
        known.setdefault(place.split(":", 1)[1], set()).add(bare(value))
    return known


def means_the_same(place: str, known: dict[str, set[str]]) -> bool:
    """Whether the names that a unit uses still have the hashes they had then, wherever they moved.

    Args:
        known: `said_of` of the list that contains the unit.
    """
    name, unit = place.split(":", 1)
    at = None if name in READ else source.module(name)
    if at is None or unit not in at.units:
        return True  # it moved; what it says still stands
    if isinstance(at.units[unit][0], ast.ClassDef):
        return True  # its bases are units of the list themselves
    for there, original, _ in source.targets(at, unit):
        if original in known and source.hash_of(there, original) not in known[original]:
            return False
    return True


def bare(digest: str) -> str:
    """A hash of a list without its marks."""
    return digest.rstrip("~").partition("*")[0]
