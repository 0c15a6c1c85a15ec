"""Map code objects and classes to the units of today's source."""

import ast
import functools
import linecache
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from ..errors import BadInput
from . import source

CELLS: dict[str, source.Module] = {}  # cells of a notebook that are in no file of the tree
# the folder of a cell's file; the kernel's own lie in ipykernel/
CELL = re.compile(r"\bipykernel_\d+\b")
ROOTS = tuple(f"{package}/" for package in source.PACKAGES)
UNKNOWN = "unknown"  # begins the name of a module without a source


def is_ours(code: types.CodeType) -> bool:
    """Whether a code object is from these packages or a notebook cell."""
    name, dynamo = code.co_filename, sys.modules.get("torch._dynamo.convert_frame")
    if dynamo is not None and (
        code in dynamo.output_codes or code.co_name.startswith("torch_dynamo_resume_in")
    ):
        # torch.compile's own, under the name and in the file of the function that it stands for
        return False
    if name.startswith(ROOTS):
        return not source.is_silent_module(module_at(name))
    return CELL.search(name) is not None or name.startswith("<ipython-input")


def module_at(file: str) -> str:
    """Module name, below its package, of a file of these packages."""
    root = next(root for root in ROOTS if file.startswith(root))
    return file[len(root) :].removesuffix(".py").replace("/", ".")


def is_a_users(code: types.CodeType, module: str | None) -> bool:
    """Whether a code object is from a user's own file, or was typed in."""
    if code.co_filename.startswith("<"):
        return module == "__main__" and code.co_filename in ("<stdin>", "<string>", "<console>")
    return source.is_users(code.co_filename)


@functools.lru_cache(maxsize=None)
def compiled(name: str) -> dict:
    """(Name, first line) -> code object, compiled from today's file of a module."""
    path = source.outside(name) or source.paths()[name]
    todo, codes = [compile(path.read_text(encoding="utf-8"), str(path), "exec")], {}
    while todo:
        code = todo.pop()
        codes.setdefault((code.co_name, code.co_firstlineno), []).append(told(code))
        todo += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return codes


def unit_of(code: types.CodeType) -> tuple[str, str] | None:
    """(Module, unit) of a code object; None for code without source, such as generated methods.

    Raises:
        BadInput: the file has changed since it was imported.
    """
    if code.co_filename.startswith(ROOTS):
        name = module_at(code.co_filename).removesuffix("__init__").rstrip(".")
        if name not in source.paths() or not same_code(name, code):
            raise BadInput(
                f"{code.co_filename} was changed while it ran. Run again, so that the "
                f"record says what ran."
            )
        unit = at_line(source.module(name), code.co_firstlineno)
        return None if unit is None else (name, unit)
    if CELL.search(code.co_filename) or code.co_filename.startswith("<ipython-input"):
        return cell_unit(code)
    name = f"{source.OUTSIDE}{Path(code.co_filename).stem}"
    if source.outside(name) == Path(code.co_filename) and same_code(name, code):
        return name, at_line(source.module(name), code.co_firstlineno) or code.co_name
    return f"{UNKNOWN} {Path(code.co_filename).name}", code.co_name


def said_by(name: str, unit: str) -> str:
    """Hash of a unit from `unit_of`; "none" for code without source."""
    if name.startswith(UNKNOWN):
        return "none"
    return source.hash_of(source.module(name) or CELLS[name], unit)


def same_code(name: str, code: types.CodeType) -> bool:
    """Whether a module's file still contains a code object as it ran."""
    return told(code) in compiled(name).get((code.co_name, code.co_firstlineno), [])


def told(code: types.CodeType) -> tuple:
    """What makes a code object do what it does, except the functions inside it."""
    return (
        code.co_code,
        code.co_names,
        [constant(c) for c in code.co_consts if not isinstance(c, types.CodeType)],
    )


def constant(value) -> str:
    """A constant of a code object as text; equal sets give equal texts."""
    if isinstance(value, tuple):
        return str([constant(part) for part in value])
    return str(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


def at_line(at: source.Module, line: int) -> str | None:
    """The innermost unit of a module that spans a line."""
    spans = [(last - first, unit) for first, last, unit in at.spans if first <= line <= last]
    return min(spans)[1] if spans else None


def cell_unit(code: types.CodeType) -> tuple[str, str] | None:
    """Notebook and unit of a cell's code; a cell of no notebook is a module of its own."""
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
            alike = other == unit or (
                unit.startswith("statement") and other.startswith("statement")
            )
            if alike and written(there, other) & written(at, unit):
                return name, other
    digest = source.hash_of(at, unit)
    CELLS[f"cell {digest}"] = at
    return f"cell {digest}", unit


def written(at: source.Module, unit: str) -> set[str]:
    """The source of each statement that binds a unit: a cell does not know other cells' imports."""
    return {ast.dump(node) for node in at.units[unit]}


def units_of_class(kind: type) -> Iterator[tuple[str, str]]:
    """Head, attributes and constructor of a class and its bases, if they are ours or a user's."""
    for each in kind.__mro__:
        name = module_of(each)
        at = None if name is None else source.module(name)
        if at is None or each.__qualname__ not in at.units or source.is_silent_module(name):
            continue
        yield name, each.__qualname__
        for unit in at.units:
            owner, _, attribute = unit.partition(".")
            plain = source.is_constant(at, unit) and not source.is_field(
                at, unit, at.units[unit][0]
            )
            if owner == each.__qualname__ and attribute:
                if (
                    plain
                    or source.is_cached(at, unit)
                    or attribute in ("__init__", "__post_init__")
                ):
                    yield name, unit


def module_of(kind: type) -> str | None:
    """Name, as for `source.module`, of a class's module; None for other packages."""
    package, _, rest = kind.__module__.partition(".")
    if package in source.NAMES:
        return rest
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return f"{source.OUTSIDE}{Path(file).stem}" if file and source.is_users(file) else None


def units_of_field(kind: type, field: str) -> Iterator[tuple[str, str]]:
    """The unit of a field's default, in the class that defines it."""
    for each in kind.__mro__:
        name, unit = module_of(each), f"{each.__qualname__}.{field}"
        at = None if name is None else source.module(name)
        if at is not None and unit in at.units and not source.is_silent_module(name):
            yield name, unit
            return


def units_of_defaults(settings) -> Iterator[tuple[str, str]]:
    """The units of a dataclass's fields at their defaults, which decide a run unrecorded."""
    for f in fields(settings):
        if getattr(settings, f.name) == f.default:
            yield from units_of_field(type(settings), f.name)
