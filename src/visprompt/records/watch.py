"""Find the code that a run uses by watching it: functions, and the constants that they read."""

import functools
import multiprocessing
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass

from .. import paths
from ..manifests import load_yaml
from . import lists, source
from .calls import calls
from .code_objects import (
    CELLS,
    ROOTS,
    UNKNOWN,
    is_a_users,
    is_ours,
    module_of,
    said_by,
    unit_of,
    units_of_class,
    units_of_field,
)


class Seen:
    """What ran and was read.

    Attributes:
        codes: code objects, by their id.
        classes: the classes whose methods these were.
        defaults: (class, name) of fields of dataclasses and named tuples left at their defaults.
        read: places of files and of environment variables; see `lists.READ`.
        elsewhere: place -> hash, from another process.
    """

    def __init__(self):
        self.codes: dict[int, types.CodeType] = {}
        self.classes: set[type] = set()
        self.defaults: set[tuple[type, str]] = set()
        self.read: dict[str, str] = {}
        self.elsewhere: dict[str, str] = {}

    def add(self, other: "Seen") -> None:
        """Add what another watch saw."""
        self.codes |= other.codes
        self.classes |= other.classes
        self.defaults |= other.defaults
        self.read = other.read | self.read
        self.elsewhere |= other.elsewhere

    def units(self) -> dict[str, str]:
        """Place -> hash of all that ran and of the constants it read; see `source`.

        Raises:
            BadInput: a file was changed after this process had imported it.
        """
        places, tops = self.elsewhere | self.read, set()
        for code in self.codes.values():
            tops.add(unit_of(code))
        for kind in self.classes:
            tops |= set(units_of_class(kind))
        for kind, name in self.defaults:
            tops |= set(units_of_field(kind, name))
        for name, unit in sorted(filter(None, tops)):
            hashed = said_by(name, unit)
            if name.startswith(UNKNOWN):
                # such a unit is nowhere in the tree, so that the record is never current
                places[f"{name}:{unit}"] = hashed
                continue
            at = source.module(name) or CELLS[name]
            places[
                f"{name}:statement {hashed}" if unit.startswith("statement ") else f"{name}:{unit}"
            ] = hashed
            places |= lists.read_by(at, unit)
        return lists.as_list(places)

    def __deepcopy__(self, memo: dict) -> "Seen":
        twin = Seen()
        twin.add(self)
        return twin  # in this process nothing need be looked up, as `__getstate__` does

    def __getstate__(self):
        # code objects cannot go to another process
        return vars(Seen()) | {"elsewhere": self.units()}


STACK: list[Seen] = []  # the watches that are on, innermost last
KNOWN: dict[
    int, tuple
] = {}  # id of a code object -> it, whether it is ours, whether it is a method
# code of modules of ours that are being imported: what they run once decides no value
IMPORTING: list = []


def called(frame) -> bool:
    """Note a call while a watch is on; True if later calls of its code add nothing."""
    code = frame.f_code
    known = KNOWN.get(id(code))
    if known is None:
        known = KNOWN[id(code)] = (
            code,
            look_of(code, frame),
            code.co_varnames[:1] in (("self",), ("cls",)),
        )
    if known[1] is None:
        return True
    if known[1] is not note_call:
        known[1](frame)
    elif code.co_name == "<module>":
        IMPORTING.append(code)
    elif not IMPORTING and STACK:
        seen = STACK[-1]
        seen.codes[id(code)] = code
        if not known[2]:
            return True
        mine = frame.f_locals.get(code.co_varnames[0])
        kind = mine if isinstance(mine, type) else type(mine)
        seen.classes.add(kind)
        if hasattr(kind, "__dataclass_fields__") and mine is not kind:
            seen.defaults |= {
                (kind, f.name) for f in fields(kind) if getattr(mine, f.name, None) == f.default
            }
    return False


def returned(code) -> None:
    """Note that a module has been imported."""
    if IMPORTING and IMPORTING[-1] is code:
        IMPORTING.pop()


def note_call(frame) -> None:
    """Marks code whose calls are watched; `called` handles these itself."""


def look_of(code: types.CodeType, frame) -> Callable | None:
    """How a watch handles calls of some code: `note_call`, a function for reads, or None."""
    if is_ours(code) or is_a_users(code, frame.f_globals.get("__name__")):
        return note_call
    if code is ENVIRONMENT:
        return note_variable
    if code.co_filename == READER and code.co_name in ("load_yaml", "read_table", "entry"):
        return note_manifest
    generated = code.co_filename == "<string>" and code.co_name in ("__init__", "<lambda>")
    return note_defaults if generated and code.co_varnames[:1] in (("self",), ("_cls",)) else None


def note_defaults(frame) -> None:
    """Note the fields at their defaults when one of our dataclasses or named tuples is created."""
    given = frame.f_locals
    mine = given.get("self", given.get("_cls"))
    kind = mine if isinstance(mine, type) else type(mine)
    if not STACK or IMPORTING or module_of(kind) is None:
        return
    usual = getattr(kind, "_field_defaults", None)
    if usual is None:
        usual = {f.name: f.default for f in fields(kind)} if is_dataclass(kind) else {}
    for name, default in usual.items():
        # a field with a factory is given a sentinel, which is no value of the field
        value = given.get(name, default)
        if (
            value is default
            or "FACTORY" in type(value).__name__
            or (type(value) is type(default) and value == default)
        ):
            STACK[-1].defaults.add((kind, name))


def note_read(place: str) -> None:
    """Note a file or variable with its present hash, before it can change."""
    if place not in STACK[-1].read:
        STACK[-1].read[place] = ""  # looking it up reads it too
        kind, name = place.split(":", 1)
        STACK[-1].read[place] = lists.READ[kind](name)


def note_variable(frame) -> None:
    """Note an environment variable; this project's own are paths and decide no value."""
    name, caller = frame.f_locals.get("key"), frame.f_back
    while caller is not None and caller.f_code.co_filename in (ENVIRONMENT.co_filename, MAPPING):
        caller = caller.f_back
    if STACK and isinstance(name, str) and not name.startswith("VISPROMPT_") and decides(caller):
        note_read(f"variable:{name}")


def note_manifest(frame) -> None:
    """Note a YAML or CSV file of the project, or one entry of it."""
    if STACK and not IMPORTING:
        place, keys = (
            within_project(frame.f_locals["path"]),
            ".".join(frame.f_locals.get("keys", ())),
        )
        if place is not None and (keys or frame.f_code.co_name != "entry"):
            note_read(f"file:{place}#{keys}" if keys else f"file:{place}")


def opened(event: str, args: tuple) -> None:
    """Audit hook: Python calls it for every file that is opened."""
    if not STACK or event != "open" or IMPORTING or not isinstance(args[0], (str, os.PathLike)):
        return
    if isinstance(args[1], str) and args[1][:1] in "wax":
        return
    place = within_project(args[0])
    if place is None or place.endswith((".py", ".pyc")) or place.startswith(("build", ".", "book")):
        return
    caller = sys._getframe(1)
    while caller is not None and not (
        source.is_users(caller.f_code.co_filename) or caller.f_code.co_filename.startswith(ROOTS)
    ):
        caller = caller.f_back
    if decides(caller):
        note_read(f"file:{place}")


def decides(frame) -> bool:
    """Whether a frame is of watched code, outside rooms whose files have own fingerprints."""
    if frame is None or frame.f_code.co_filename.startswith(FINGERPRINTED):
        return False
    return is_ours(frame.f_code) or is_a_users(frame.f_code, frame.f_globals.get("__name__"))


def within_project(path) -> str | None:
    """Path of a file below the project; None if it lies elsewhere."""
    real = os.path.realpath(path)
    for root in (os.path.realpath(paths.ROOT), os.path.realpath(paths.MANIFESTS.parent)):
        if real.startswith(root + os.sep):
            return real[len(root) + 1 :]
    return None


ENVIRONMENT = type(os.environ).__getitem__.__code__
MAPPING = Mapping.get.__code__.co_filename
READER = load_yaml.__code__.co_filename
# tasks and weights: what they read is known by its bytes
FINGERPRINTED = tuple(f"{ROOTS[0]}{room}/" for room in ("data", "models"))
sys.addaudithook(opened)
TELLING = calls(called, returned)


@contextmanager
def watching() -> Iterator[Seen]:
    """Collect the code that runs inside; of nested watches the outer sees what the inner saw."""
    seen = Seen()
    STACK.append(seen)
    before = TELLING.switch(True)
    try:
        yield seen
    finally:
        TELLING.restore(before, others=bool(STACK[:-1]))
        STACK.remove(seen)
        note(seen)


@contextmanager
def unwatched() -> Iterator[None]:
    """Run without the watch, for timing; the same code must have run watched before."""
    before = TELLING.switch(False)
    try:
        yield
    finally:
        TELLING.restore(before, others=True)


def note(seen: Seen) -> None:
    """Add code that ran earlier to the active watch, because its result is used now."""
    if STACK:
        STACK[-1].add(seen)


def remember(function: Callable) -> Callable:
    """Like `functools.cache`, but a cached result counts as computed for the watch.

    Without an active watch the function runs unwatched, which is faster, and once more when a watch
    needs its code.
    """
    kept: dict = {}

    @functools.wraps(function)
    def wrapped(*args):
        if STACK and (args not in kept or kept[args][1] is None):
            with watching() as seen:
                kept[args] = function(*args), seen
        elif STACK:
            note(kept[args][1])
        elif args not in kept:
            kept[args] = function(*args), None
        return kept[args][0]

    wrapped.cache_clear = kept.clear  # type: ignore[attr-defined]
    return wrapped


def in_own_process(function: Callable, *args):
    """Call a module's function in a new process (own memory); the watch sees what runs there."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        result, units = pool.submit(watched_call, function, args).result()
    seen = Seen()
    seen.elsewhere = units
    note(seen)
    return result


def watched_call(function: Callable, args: tuple) -> tuple:
    """What `in_own_process` runs there."""
    with watching() as seen:
        result = function(*args)
    return result, seen.units()
