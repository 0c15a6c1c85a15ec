"""Lists of what runs used: places of code, files and variables, each with a hash of what it says,
and whether all still hold."""

import ast
import hashlib
import json
import os
from pathlib import Path

from ..paths import MANIFESTS, ROOT
from . import source


def read_by(at: source.Module, unit: str) -> dict[str, str]:
    """The constants that a unit reads, and the constants and calls that those are made of: place ->
    hash.

    What a cache of functools keeps counts as a constant, and so do the attributes of a class that
    is named.
    """
    found: dict[str, str] = {}

    def enter(there: source.Module, name: str) -> None:
        place = f"{there.name}:{name}"
        if place not in found:
            found[place] = source.hash_of(there, name)
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
    return found


def attributes(
    at: source.Module, kind: str, whole: bool = False
) -> list[tuple[source.Module, str]]:
    """A class, its bases, and what they bind beside methods.

    Args:
        whole: with methods, and with the fields of dataclasses and named tuples. Of what is made or
            called in a run, not at import, the watch sees which of these decide.
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


def as_list(found: dict[str, str]) -> dict[str, str]:
    """Units as a record lists them: with how often each is said, and which tell nothing by their
    names; see `stands`."""
    found = {place: bare(said) for place, said in sorted(found.items())}
    for place, said in found.items():
        if (
            place.split(":")[0] in source.paths()
            and (times := source.often(place.split(":")[1], said)) > 1
        ):
            found[place] = f"{said}*{times}"
    known = said_of(found)
    return {
        place: said if means_the_same(place, known) else f"{said}~" for place, said in found.items()
    }


def stands(units: dict[str, str]) -> bool:
    """Whether all units still say what they said; one that moved counts as there, as often as it
    was.

    A hash with "*3" was said by three units of one name; one with "~" is of a unit that names
    something which is called like a unit that ran and is another, so that names tell nothing there.
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
    """Twelve hex digits of a file that a run read, by its path below the project; of a YAML file,
    of what it holds.

    Args:
        name: a path, or `path#key.key` for one entry of a YAML file.
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
    """Twelve hex digits of an environment variable that a run read."""
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
    """Whether what a unit calls or reads by name is what it called or read then, wherever that
    lives now.

    Args:
        known: `said_of` the list that the unit is in.
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


def bare(said: str) -> str:
    """A hash of a list without its marks."""
    return said.rstrip("~").partition("*")[0]
