"""Which code a run used, found by watching it run: functions, and the constants that they read."""

import ast
import functools
import linecache
import multiprocessing
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import fields

from ..errors import BadInput
from . import source


class Seen:
    """The code that ran: code objects, the classes whose methods they were, and units seen elsewhere."""

    def __init__(self):
        self.codes: dict[int, types.CodeType] = {}
        self.classes: set[type] = set()
        self.elsewhere: dict[str, str] = {}  # place -> hash, from another process

    def add(self, other: "Seen") -> None:
        """Take over what another one saw."""
        self.codes |= other.codes
        self.classes |= other.classes
        self.elsewhere |= other.elsewhere

    def units(self) -> dict[str, str]:
        """Place -> hash of all that ran and of the constants it read; see `source`.

        Raises:
            BadInput: a file was changed while this process ran the code that it held before.
        """
        found, tops = dict(self.elsewhere), set()
        for code in self.codes.values():
            tops.add(unit_of(code))
        for kind in self.classes:
            tops |= set(units_of_class(kind))
        for name, unit in sorted(filter(None, tops)):
            at, said = source.module(name) or CELLS[name], said_by(name, unit)
            found[f"{name}:statement {said}" if unit.startswith("statement ") else f"{name}:{unit}"] = said
            found |= source.read_by(at, unit)
        times = {
            place: source.often(place.split(":")[1], said)
            for place, said in found.items()
            if "*" not in said and "~" not in said
        }
        found = {place: f"{said}*{times[place]}" if times.get(place, 1) > 1 else said for place, said in sorted(found.items())}
        known = source.said_of(found)
        unsure = [place for place in found if not source.means_the_same(place, known)]
        return found | {place: f"{found[place].rstrip('~')}~" for place in unsure}

    def __deepcopy__(self, memo: dict) -> "Seen":
        twin = Seen()
        twin.add(self)
        return twin  # in this process nothing need be looked up, as `__getstate__` does

    def __getstate__(self):
        return {"codes": {}, "classes": set(), "elsewhere": self.units()}  # code objects cannot go to another process


STACK: list[Seen] = []  # the watches that are on, innermost last
KNOWN: dict[int, tuple] = {}  # id of a code object -> it, whether it is ours, whether it is a method
IMPORTING: list = []  # frames of modules of ours that are being imported: what they run once decides no value
CELLS: dict[str, source.Module] = {}  # cells of a notebook that stand in no file of the tree
CELL = re.compile(r"\bipykernel_\d+\b")  # the folder of a cell's file; the kernel's own lie in ipykernel/
ROOT = f"{source.PACKAGE}/"


def hook(frame, event, arg) -> None:
    """Called by Python at every call and return while a watch is on."""
    if event == "call":
        code = frame.f_code
        known = KNOWN.get(id(code))
        if known is None:
            known = KNOWN[id(code)] = (code, is_ours(code), code.co_varnames[:1] in (("self",), ("cls",)))
        if not known[1]:
            return
        if code.co_name == "<module>":
            IMPORTING.append(frame)
        elif not IMPORTING and STACK:
            seen = STACK[-1]
            seen.codes[id(code)] = code
            if known[2]:
                mine = frame.f_locals.get(code.co_varnames[0])
                seen.classes.add(mine if isinstance(mine, type) else type(mine))
    elif event == "return" and IMPORTING and IMPORTING[-1] is frame:
        IMPORTING.pop()


def is_ours(code: types.CodeType) -> bool:
    """Whether a code object is of this package or of a notebook's cell."""
    name, dynamo = code.co_filename, sys.modules.get("torch._dynamo.convert_frame")
    if dynamo is not None and (code in dynamo.output_codes or code.co_name.startswith("torch_dynamo_resume_in")):
        return False  # torch.compile's own, under the name and in the file of the function that it stands for
    if name.startswith(ROOT):
        return not source.is_silent_module(name[len(ROOT) :].removesuffix(".py").replace("/", "."))
    return CELL.search(name) is not None or name.startswith("<ipython-input")


@contextmanager
def watching() -> Iterator[Seen]:
    """Collect the code that runs inside; watches nest, and the outer one sees all that the inner one saw."""
    seen, before = Seen(), sys.getprofile()
    STACK.append(seen)
    sys.setprofile(hook)
    threading.setprofile(hook)
    try:
        yield seen
    finally:
        restore(before)
        threading.setprofile(before if STACK[:-1] else None)
        STACK.remove(seen)
        note(seen)


@contextmanager
def unwatched() -> Iterator[None]:
    """Run without the watch, for what is timed; the same code must have run watched before."""
    before = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        restore(before)


def restore(before) -> None:
    """Give the hook back to who had it; a profiler in C, such as cProfile, cannot be given it, and ends here."""
    sys.setprofile(before if callable(before) else None)


def note(seen: Seen) -> None:
    """Tell the watch that is on of code that ran before, for the sake of what is used now."""
    if STACK:
        STACK[-1].add(seen)


def remember(function: Callable) -> Callable:
    """Cache results like `functools.cache`; a result found again counts as computed, for the watch.

    Where no watch is on the function runs unwatched, which is faster, and once more when one needs its code.
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

    wrapped.cache_clear = kept.clear
    return wrapped


def in_own_process(function: Callable, *args):
    """Call a function of a module in a new process, so that memory is its own; the watch sees what ran there."""
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


@functools.lru_cache(maxsize=None)
def compiled(name: str) -> dict:
    """The code objects that today's file of a module compiles to, by name and first line."""
    path = source.paths()[name]
    todo, found = [compile(path.read_text(encoding="utf-8"), str(path), "exec")], {}
    while todo:
        code = todo.pop()
        found.setdefault((code.co_name, code.co_firstlineno), []).append(told(code))
        todo += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return found


def unit_of(code: types.CodeType) -> tuple[str, str] | None:
    """(module, unit) that a code object belongs to; None for code that has no source, such as a generated method.

    Raises:
        BadInput: the file says something else now.
    """
    if code.co_filename.startswith(ROOT):
        path = code.co_filename[len(ROOT) :].removesuffix(".py").replace("/", ".")
        name = path.removesuffix("__init__").rstrip(".")
        if name not in source.paths() or not same_code(name, code):
            raise BadInput(f"{code.co_filename} was changed while it ran. Run again, so that the record says what ran.")
        unit = at_line(source.module(name), code.co_firstlineno)
        return None if unit is None else (name, unit)
    return cell_unit(code)


def said_by(name: str, unit: str) -> str:
    """The hash of a unit that `unit_of` gave."""
    return source.hash_of(source.module(name) or CELLS[name], unit)


def same_code(name: str, code: types.CodeType) -> bool:
    """Whether a module's file still holds a code object as it ran."""
    return told(code) in compiled(name).get((code.co_name, code.co_firstlineno), [])


def told(code: types.CodeType) -> tuple:
    """What makes a code object do what it does, but for the functions inside it."""
    return code.co_code, code.co_names, [repr(c) for c in code.co_consts if not isinstance(c, types.CodeType)]


def at_line(at: source.Module, line: int) -> str | None:
    """The innermost unit of a module that spans a line."""
    spans = [(last - first, unit) for first, last, unit in at.spans if first <= line <= last]
    return min(spans)[1] if spans else None


def cell_unit(code: types.CodeType) -> tuple[str, str] | None:
    """The notebook and unit of a cell's code; a cell that no notebook of the tree holds is a module of its own."""
    text = "".join(linecache.getlines(code.co_filename))
    if not text:
        return None
    at = source.parse(text, "cell")
    unit = at_line(at, code.co_firstlineno)
    if unit is None:
        return None
    for name in (name for name in source.paths() if name.startswith("notebooks.")):
        there = source.module(name)
        for other in there.units:
            alike = other == unit or (unit.startswith("statement") and other.startswith("statement"))
            if alike and written(there, other) & written(at, unit):
                return name, other
    digest = source.hash_of(at, unit)
    CELLS[f"cell {digest}"] = at
    return f"cell {digest}", unit


def written(at: source.Module, unit: str) -> set[str]:
    """Each of the statements that bind a unit, as it is written: a cell does not know what other cells import."""
    return {ast.dump(node) for node in at.units[unit]}


def units_of_class(kind: type) -> Iterator[tuple[str, str]]:
    """Head, attributes and start of a class and of its bases, as far as they are of this package."""
    for each in kind.__mro__:
        if each.__module__.split(".")[0] != source.NAME:
            continue
        name = each.__module__.removeprefix(source.NAME).lstrip(".")
        at = source.module(name)
        if at is None or each.__qualname__ not in at.units or source.is_silent_module(name):
            continue
        yield name, each.__qualname__
        for unit in at.units:
            owner, _, attribute = unit.partition(".")
            plain = owner == each.__qualname__ and attribute and source.is_constant(at, unit)
            if plain or unit in (f"{each.__qualname__}.__init__", f"{each.__qualname__}.__post_init__"):
                yield name, unit


def units_of_defaults(settings) -> Iterator[tuple[str, str]]:
    """The fields of a dataclass that were left at their defaults: those that decide a run without standing in a record."""
    left = [f.name for f in fields(settings) if getattr(settings, f.name) == f.default]
    for kind in type(settings).__mro__:
        name = kind.__module__.removeprefix(source.NAME).lstrip(".")
        at = source.module(name)
        for unit in (f"{kind.__qualname__}.{field}" for field in left):
            if at is not None and unit in at.units:
                yield name, unit
