"""What code says, apart from how it is written: today's functions and constants, each with a hash.

A unit is a function, a method, the head of a class (bases and decorators), one attribute of a class, or a name that a
module binds otherwise. Its hash leaves out comments, docstrings, annotations, texts of errors and layout, and calls
what it takes from this package by its own name, so that a moved function or a renamed module changes nothing.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..paths import PACKAGE, ROOT

NOTEBOOKS = ROOT / "notebooks"
NAME = PACKAGE.name
# rooms, and (the last two) modules of rooms, that decide no value
SILENT = ("errors", "checks", "progress", "paths", "words", "manifests", "papers", "records", "__main__", "manifest", "stored")
NOT_READ = {"p", "page"}  # of a notebook: its parameters, which the settings of a record repeat, and its page
LAYOUT = {"type_comment", "type_params", "returns", "annotation", "kind", "ctx", "simple", "type_ignores"}


@dataclass
class Module:
    """A parsed module: its units by name, and what its other names mean."""

    name: str  # below the package, such as "methods.lora"; "notebooks.ap" for a notebook
    units: dict[str, list[ast.AST]] = field(default_factory=dict)
    spans: list[tuple[int, int, str]] = field(default_factory=list)  # first line, last line, unit
    aliases: dict[str, tuple[str | None, str]] = field(default_factory=dict)  # name -> (module or None, name there)
    bases: dict[str, list[ast.AST]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)  # filled by `hash_of`
    uses: dict[str, list[tuple[ast.AST, bool]]] = field(default_factory=dict)  # filled by `uses`
    targets: dict[str, list[tuple["Module", str, bool]]] = field(default_factory=dict)  # by `targets`, till `forget`

    def resolve(self, name: str) -> tuple["Module", str] | None:
        """Where a name of this module is defined in the package, and as what; None for a foreign one."""
        if name in self.units:
            return self, name
        where, original = self.aliases.get(name, (None, ""))
        there = None if where is None else module(where)
        return there.resolve(original) if there is not None and there is not self else None


def parse(text: str, name: str, is_package: bool = False) -> Module:
    """The units of a module's source."""
    tree, found = ast.parse(text), Module(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                ours = top == NAME
                at = ".".join(alias.name.split(".")[1:]) if alias.asname else ""
                found.aliases[alias.asname or top] = (at if ours else None, "" if ours else alias.name)
        elif isinstance(node, ast.ImportFrom):
            at = came_from(node, name, is_package)
            for alias in node.names:
                foreign = f"{node.module}.{alias.name}"
                found.aliases[alias.asname or alias.name] = (at, alias.name) if at is not None else (None, foreign)
    for node in tree.body:
        add_units(found, node)
    return found


def came_from(node: ast.ImportFrom, name: str, is_package: bool) -> str | None:
    """The module of this package that an import takes names from; None for a foreign one."""
    if not node.level:
        parts = (node.module or "").split(".")
        return ".".join(parts[1:]) if parts[0] == NAME else None
    above = name.split(".") if name else []
    above = above[: len(above) - node.level + is_package]
    return ".".join([*above, *([node.module] if node.module else [])])


def add_units(found: Module, node: ast.stmt) -> None:
    """Enter a statement of a module's top level under every name that it binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return

    def enter(unit: str, part: ast.AST) -> None:
        found.units.setdefault(unit, []).append(part)
        first = min([part.lineno, *(d.lineno for d in getattr(part, "decorator_list", []))])
        found.spans.append((first, part.end_lineno, unit))

    if isinstance(node, ast.ClassDef):
        enter(node.name, node)
        found.bases[node.name] = node.bases
        for part in node.body:
            for unit in bound(part):
                enter(f"{node.name}.{unit}", part)
    else:
        for unit in bound(node) or [f"statement {len(found.spans)}"]:
            enter(unit, node)


def bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    inner = [n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(inner + stored))


def said(node, at: Module):
    """A node as nested lists of what it says; see the module's docstring for what is left out."""
    if isinstance(node, list):
        return [said(part, at) for part in node if not is_silent(part)]
    if not isinstance(node, ast.AST):
        return [type(node).__name__, repr(node)]
    if isinstance(node, ast.Name):
        where, original = at.aliases.get(node.id, (None, node.id))
        return ["Name", original or node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and is_room(node.value.id, at):
        return ["Name", node.attr]
    if isinstance(node, ast.Raise):  # which error, not its words
        return ["Raise", said(node.exc.func if isinstance(node.exc, ast.Call) else node.exc, at)]
    if isinstance(node, ast.Assert):
        return ["Assert", said(node.test, at)]
    if isinstance(node, ast.AnnAssign):
        return ["Assign", said([node.target], at), said(node.value, at)]
    if is_choice(node):
        return said(node.args[1], at)  # what was given comes back, or an error
    parts = [
        [name, said(value, at)]
        for name, value in ast.iter_fields(node)
        if name not in LAYOUT and value is not None and value != []
    ]
    return [type(node).__name__, *parts]


def is_silent(node) -> bool:
    """Whether a statement says nothing: a docstring, an import (names say what they mean), a bare annotation."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, (ast.Import, ast.ImportFrom)) or (isinstance(node, ast.AnnAssign) and not node.value)


def is_choice(node) -> bool:
    """Whether a node is `errors.choose(what, given, allowed)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "choose" and len(node.args) > 1


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that `said` speaks of."""
    if is_silent(node) or isinstance(node, ast.Raise):
        return
    if is_choice(node):
        node = node.args[1]
    yield node
    for name, value in ast.iter_fields(node):
        for part in (value if isinstance(value, list) else [value]) if name not in LAYOUT else ():
            if isinstance(part, ast.AST):
                yield from walk(part)


def foreign_to(node: ast.AST) -> list[ast.AST]:
    """The names, and attributes of names, that a node uses without binding them itself."""
    every = list(walk(node))
    own = {n.arg for n in every if isinstance(n, ast.arg)}
    own |= {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    named = [(n, n.value if isinstance(n, ast.Attribute) else n) for n in every if isinstance(n, (ast.Name, ast.Attribute))]
    return [n for n, name in named if isinstance(name, ast.Name) and name.id not in own]


def uses(at: Module, unit: str) -> list[tuple[ast.AST, bool]]:
    """What a unit names without binding it, and whether it calls it; of a class, what its decorators and bases name."""
    if unit not in at.uses:
        at.uses[unit] = []
        for node in at.units[unit]:
            for part in [*node.decorator_list, *node.bases] if isinstance(node, ast.ClassDef) else [node]:
                called = {id(n.func) for n in walk(part) if isinstance(n, ast.Call)}
                at.uses[unit] += [(name, id(name) in called) for name in foreign_to(part)]
    return at.uses[unit]


def targets(at: Module, unit: str) -> list[tuple[Module, str, bool]]:
    """Of what `uses` gives, what this package defines: module, unit, and whether it is called."""
    if unit not in at.targets:
        found = [(defined(name, at), called) for name, called in uses(at, unit)]
        at.targets[unit] = [(*target, called) for target, called in found if target is not None]
    return at.targets[unit]


def is_silent_module(name: str) -> bool:
    """Whether what a module does decides no value."""
    return name.split(".")[0] in SILENT or name.split(".")[-1] in SILENT[-2:]


def is_room(name: str, at: Module) -> bool:
    """Whether a name stands for a module of this package, as in `prompts.Deep`."""
    where, original = at.aliases.get(name, (None, ""))
    return where is not None and (not original or module(".".join(filter(None, [where, original]))) is not None)


def room(name: str, at: Module) -> Module | None:
    """The module of this package that a name stands for."""
    where, original = at.aliases[name]
    return module(".".join(filter(None, [where, original])))


@functools.lru_cache(maxsize=None)
def paths() -> dict[str, Path]:
    """Module name -> file, of the package and of the notebooks."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found | {f"notebooks.{path.stem}": path for path in sorted(NOTEBOOKS.glob("*.py"))}


MODULES: dict[str, Module] = {}  # those that were read


def module(name: str) -> Module | None:
    """A module of the package or a notebook, or None."""
    if name not in MODULES and name in paths():
        path = paths()[name]
        try:
            MODULES[name] = parse(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
        except (SyntaxError, ValueError):
            MODULES[name] = Module(name)  # a file that says nothing, so that nothing of it stands
    return MODULES.get(name)


@functools.lru_cache(maxsize=None)
def homes() -> dict[str, list[str]]:
    """Name of a unit -> modules that have one of that name; "statement" for all that bind no name."""
    found: dict[str, list[str]] = {}
    for name in paths():
        for unit in dict.fromkeys(unit.split(" ")[0] for unit in module(name).units):
            found.setdefault(unit, []).append(name)
    return found


def often(unit: str, wanted: str) -> int:
    """How often a unit of this name says this in today's tree."""
    unit = unit.split(" ")[0]
    every = (module(name) for name in homes().get(unit, ()))
    return sum(hash_of(at, u) == wanted for at in every for u in at.units if u.split(" ")[0] == unit)


def forget(*names: str) -> None:
    """Read these modules, or all, again; for tests, which change them."""
    for name in names or list(MODULES):
        MODULES.pop(name, None)
    for at in MODULES.values():
        at.targets.clear()
    paths.cache_clear()
    homes.cache_clear()


def hash_of(at: Module, unit: str) -> str:
    """Twelve hex digits of what a unit says."""
    if unit not in at.hashes:
        nodes = at.units[unit]
        words = [class_head(node, at) if isinstance(node, ast.ClassDef) else said(node, at) for node in nodes]
        at.hashes[unit] = hashlib.sha256(repr(words).encode()).hexdigest()[:12]
    return at.hashes[unit]


def class_head(node: ast.ClassDef, at: Module) -> list:
    """Bases, decorators, and which inherited names it defines anew: a new override changes what runs."""
    inherited = set()
    todo = [(base, at) for base in node.bases]
    while todo:
        base, where = todo.pop()
        found = defined(base, where)
        if found is None:
            inherited |= foreign_names()
            continue
        there, name = found
        inherited |= {unit.split(".")[1] for unit in there.units if unit.startswith(f"{name}.")}
        todo += [(more, there) for more in there.bases.get(name, [])]
    own = {name for part in node.body for name in bound(part)}
    again = sorted(name for name in own if name in inherited or name.startswith("__"))
    return ["class", said(node.bases, at), said(node.keywords, at), said(node.decorator_list, at), again]


def defined(node: ast.AST, at: Module) -> tuple[Module, str] | None:
    """The unit of the package that a name or `room.name` means."""
    if isinstance(node, ast.Name):
        return at.resolve(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and is_room(node.value.id, at):
        return room(node.value.id, at).resolve(node.attr)
    return None


@functools.lru_cache(maxsize=None)
def foreign_names() -> frozenset:
    """What a class inherits from the one foreign class that this package builds on."""
    from torch import nn

    return frozenset(name for name in dir(nn.Module) if not name.startswith("__"))


def read_by(at: Module, unit: str) -> dict[str, str]:
    """The constants that a unit reads, and the constants and calls that those are made of: place -> hash."""
    found: dict[str, str] = {}

    def follow(at: Module, unit: str, whole: bool) -> None:
        for there, original, called in targets(at, unit):
            if is_silent_module(there.name):
                continue
            if there.name.startswith("notebooks.") and original in NOT_READ:
                continue
            place, constant = f"{there.name}:{original}", is_constant(there, original)
            if place not in found and (constant or (whole and called)):
                found[place] = hash_of(there, original)
                follow(there, original, True)

    follow(at, unit, False)
    return found


def is_constant(at: Module, unit: str) -> bool:
    """Whether a name is bound by other than `def` and `class`."""
    return not isinstance(at.units[unit][0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def stands(units: dict[str, str]) -> bool:
    """Whether all units still say what they said; one that moved counts as there, as often as it was.

    A hash with "*3" was said by three units of one name; one with "~" is of a unit that names something which is called
    like a unit that ran and is another, so that names tell nothing there.
    """
    for place, said_then in units.items():
        name, unit = place.split(":")
        wanted, _, times = said_then.rstrip("~").partition("*")
        at = module(name)
        if at is not None and unit in at.units:
            if hash_of(at, unit) != wanted:
                return False
        elif often(unit, wanted) < int(times or 1):
            return False
    known = said_of(units)
    return all(said_then.endswith("~") or means_the_same(place, known) for place, said_then in units.items())


def said_of(units: dict[str, str]) -> dict[str, set[str]]:
    """Name of a unit -> the hashes under that name in a list of units."""
    known: dict[str, set[str]] = {}
    for place, value in units.items():
        known.setdefault(place.split(":")[1], set()).add(value.rstrip("~").partition("*")[0])
    return known


def means_the_same(place: str, known: dict[str, set[str]]) -> bool:
    """Whether what a unit calls or reads by name is what it called or read then, wherever that lives now.

    Args:
        known: `said_of` the list that the unit is in.
    """
    at, unit = module(place.split(":")[0]), place.split(":")[1]
    if at is None or unit not in at.units:
        return True  # it moved; what it says still stands
    if isinstance(at.units[unit][0], ast.ClassDef):
        return True  # its bases are units of the list themselves
    for there, original, _ in targets(at, unit):
        if original in known and hash_of(there, original) not in known[original]:
            return False
    return True
