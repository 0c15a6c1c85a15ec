"""Today's functions and constants, each with a hash of its normal form (see `normal_form`).

A unit is a function, a method, the head of a class (bases and decorators), one attribute of a
class, or another name that a module binds, with the statements that change its object in place.
"""

import ast
import functools
import hashlib
import os
import re
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..paths import PACKAGES, ROOT
from .normal_form import NormalForm, touched

NOTEBOOKS = ROOT / "notebooks"
# two packages and one list of rooms: what moves between them keeps its name
NAMES = ("visprompt", "visbook")
# rooms and modules that decide no value; the modules that say what a YAML file may hold end in
# _files
SILENT = (
    "errors",
    "checks",
    "progress",
    "paths",
    "words",
    "manifests",
    "papers",
    "records",
    "",
    "__main__",
    "method_fields",
    "structure",
)
# of a notebook: its parameters, which the settings of a record repeat, and its page
NOT_READ = {"p", "page"}
# of functools: what such a function ran is not seen again
CACHES = {"cache", "lru_cache", "cached_property"}
# Place today -> name then, of units that were renamed: what calls them and what they say counts as
# before.
RENAMED: dict[str, str] = {
    "chapters.ap_layers:Pair.dissection": "LayerRuns.dissection",
    "training.loop:fit_with_extras": "fit_as_asked",
    "studies.insights:measure_with_extras": "measure_as_asked",
}


@dataclass
class Module:
    """A parsed module: its units by name, and what its other names refer to."""

    name: str  # below its package, such as "methods.lora"; "notebooks.ap" for a notebook
    units: dict[str, list[ast.AST]] = field(default_factory=dict)
    spans: list[tuple[int, int, str]] = field(default_factory=list)  # first line, last line, unit
    # name -> (module or None, name there)
    aliases: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    bases: dict[str, list[ast.AST]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)  # filled by `hash_of`
    uses: dict[str, list[tuple[ast.AST, bool]]] = field(default_factory=dict)  # by `hash_of`
    # by `targets`, till `forget`
    targets: dict[str, list[tuple["Module", str, bool]]] = field(default_factory=dict)

    def resolve(self, name: str) -> tuple["Module", str] | None:
        """Defining module and name of a name of this module; None for a foreign one."""
        if name in self.units:
            return self, name
        where, original = self.aliases.get(name, (None, ""))
        there = None if where is None else module(where)
        return there.resolve(original) if there is not None and there is not self else None


def parse(text: str, name: str, is_package: bool = False) -> Module:
    """Parse a module's source into units."""
    tree, parsed = ast.parse(text), Module(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                ours = top in NAMES
                at = ".".join(alias.name.split(".")[1:]) if alias.asname else ""
                parsed.aliases[alias.asname or top] = (
                    at if ours else None,
                    "" if ours else alias.name,
                )
        elif isinstance(node, ast.ImportFrom):
            at = came_from(node, name, is_package)
            for alias in node.names:
                foreign = f"{node.module}.{alias.name}"
                parsed.aliases[alias.asname or alias.name] = (
                    (at, alias.name) if at is not None else (None, foreign)
                )
    for node in tree.body:
        add_units(parsed, node)
    return parsed


def came_from(node: ast.ImportFrom, name: str, is_package: bool) -> str | None:
    """The module of these packages that an import takes names from; None for a foreign one."""
    if not node.level or name.startswith(OUTSIDE):
        parts = (node.module or "").split(".")
        return ".".join(parts[1:]) if parts[0] in NAMES and not node.level else None
    above = name.split(".") if name else []
    above = above[: len(above) - node.level + is_package]
    return ".".join([*above, *([node.module] if node.module else [])])


def add_units(parsed: Module, node: ast.stmt) -> None:
    """Add a top-level statement to the units of every name that it binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return

    def enter(unit: str, part: Any) -> None:
        parsed.units.setdefault(unit, []).append(part)
        first = min([part.lineno, *(d.lineno for d in getattr(part, "decorator_list", []))])
        parsed.spans.append((first, part.end_lineno, unit))

    if isinstance(node, ast.ClassDef):
        enter(node.name, node)
        for part in node.body:
            for unit in touched(part):
                enter(f"{node.name}.{unit}", part)
    else:
        for unit in touched(node) or [f"statement {len(parsed.spans)}"]:
            enter(unit, node)


def targets(at: Module, unit: str) -> list[tuple[Module, str, bool]]:
    """What a unit refers to in these packages: (module, unit, whether it is called)."""
    if unit not in at.targets:
        hash_of(at, unit)
        uses = [(defined(name, at), called) for name, called in at.uses[unit]]
        at.targets[unit] = [(*target, called) for target, called in uses if target is not None]
    return at.targets[unit]


def is_silent_module(name: str) -> bool:
    """Whether nothing in a module can change a value."""
    name = name.removesuffix("__init__").rstrip(".")
    room, last = name.split(".")[0], name.split(".")[-1]
    return room in SILENT or last in SILENT or last.endswith("_files")


def is_room(name: str, at: Module) -> bool:
    """Whether a name refers to a module of these packages, as in `prompts.Deep`."""
    where, original = at.aliases.get(name, (None, ""))
    return where is not None and (
        not original or module(".".join(filter(None, [where, original]))) is not None
    )


def room(name: str, at: Module) -> Module | None:
    """The module of these packages that a name refers to."""
    where, original = at.aliases[name]
    return module(".".join(filter(None, [where, original])))


@functools.lru_cache(maxsize=None)
def paths() -> dict[str, Path]:
    """Module name -> file, of packages and notebooks."""
    files = {}
    # the first one's own `__init__` and `__main__` are those without a name
    for package in reversed(PACKAGES):
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files | {f"notebooks.{path.stem}": path for path in sorted(NOTEBOOKS.glob("*.py"))}


MODULES: dict[str, Module] = {}  # those that were read
OUTSIDE = "outside "  # begins the name of a user's own module


def module(name: str) -> Module | None:
    """A module of the packages, a notebook, or a user's imported module; else None.

    Parsed once.
    """
    path = outside(name) if name.startswith(OUTSIDE) else paths().get(name)
    if name not in MODULES and path is not None:
        try:
            MODULES[name] = parse(
                path.read_text(encoding="utf-8"), name, path.name == "__init__.py"
            )
        except (OSError, SyntaxError, ValueError):
            MODULES[name] = Module(name)  # a file that says nothing, so that nothing of it stands
    return MODULES.get(name)


def outside(name: str) -> Path | None:
    """The file of a user's own module, if this process has imported it."""
    files = (getattr(imported, "__file__", None) for imported in list(sys.modules.values()))
    paths = (
        Path(file)
        for file in files
        if isinstance(file, str) and file.endswith(f"{name.removeprefix(OUTSIDE)}.py")
    )
    return next(
        (path for path in paths if OUTSIDE + path.stem == name and is_users(str(path))), None
    )


# Where torch.compile puts the programs that it writes: they follow from what is watched.
WRITTEN = re.compile(r"[/\\](torchinductor_[^/\\]*|\.triton)[/\\]")
LIBRARIES = tuple(
    {os.path.realpath(path) + os.sep for path in sysconfig.get_paths().values()}
    | {sys.base_prefix + os.sep}
)


def is_users(file: str) -> bool:
    """Whether a file of code is neither of these packages nor of an installed one."""
    there, compiled = os.path.realpath(file), os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if WRITTEN.search(there) or (
        compiled and there.startswith(os.path.realpath(compiled) + os.sep)
    ):
        return False
    packages = (
        f"{os.sep}site-packages{os.sep}" in there or f"{os.sep}dist-packages{os.sep}" in there
    )
    return not (
        packages
        or there.startswith((*LIBRARIES, *(f"{package}{os.sep}" for package in PACKAGES)))
        or not there.endswith(".py")
    )


@functools.lru_cache(maxsize=None)
def homes() -> dict[str, list[str]]:
    """Name of a unit -> modules that have it; "statement" stands for all that bind no name."""
    modules: dict[str, list[str]] = {}
    for name in paths():
        for unit in dict.fromkeys(named_then(name, unit) for unit in module(name).units):
            modules.setdefault(unit, []).append(name)
    return modules


def named_then(name: str, unit: str) -> str:
    """The name of a unit in lists made before it was renamed; "statement" if it binds no name."""
    return RENAMED.get(f"{name}:{unit}", unit).split(" ")[0]


def often(unit: str, wanted: str) -> int:
    """The number of units of this name with this hash in today's tree."""
    unit = unit.split(" ")[0]
    every = (module(name) for name in homes().get(unit, ()))
    return sum(
        hash_of(at, u) == wanted for at in every for u in at.units if named_then(at.name, u) == unit
    )


def forget(*names: str) -> None:
    """Parse these modules, or all, again; for tests, which change them."""
    for name in names or list(MODULES):
        MODULES.pop(name, None)
    for at in MODULES.values():
        at.targets.clear()
    paths.cache_clear()
    homes.cache_clear()


def hash_of(at: Module, unit: str) -> str:
    """Twelve hex digits of a unit's normal form."""
    if unit not in at.hashes:
        form = NormalForm(lambda name: meaning(name, at), lambda name: is_room(name, at))
        words = []
        for node in at.units[unit]:
            if isinstance(node, ast.ClassDef) and "." not in unit:
                words.append(class_head(node, at, form))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                words.append(form.inner(node, named=False))
            else:
                words.append([form.of(node), is_field(at, unit, node)])
        at.uses[unit] = form.uses
        at.hashes[unit] = hashlib.sha256(repr(words).encode()).hexdigest()[:12]
    return at.hashes[unit]


def meaning(name: str, at: Module) -> str | None:
    """The name of an imported unit where it is defined, before renames; None if not imported."""
    if (
        RENAMED
        and (target := at.resolve(name)) is not None
        and f"{target[0].name}:{target[1]}" in RENAMED
    ):
        return RENAMED[f"{target[0].name}:{target[1]}"]
    return at.aliases.get(name, (None, ""))[1] or None


def is_field(at: Module, unit: str, node: ast.AST) -> bool:
    """Whether an annotated attribute is a field of a dataclass or named tuple."""
    return (
        isinstance(node, ast.AnnAssign) and "." in unit and has_fields(at, unit.partition(".")[0])
    )


def has_fields(at: Module, kind: str) -> bool:
    """Whether a class is a dataclass or a named tuple."""
    node = at.units[kind][0]
    if not isinstance(node, ast.ClassDef):
        return False
    words = [
        part.func if isinstance(part, ast.Call) else part for part in node.decorator_list
    ] + node.bases
    return bool(
        {"dataclass", "NamedTuple"}
        & {getattr(word, "id", getattr(word, "attr", "")) for word in words}
    )


def class_head(node: ast.ClassDef, at: Module, form: NormalForm) -> list:
    """Normal form of a class's head: bases, decorators, overridden names, statements of its body.

    An override counts, since it changes what runs.
    """
    inherited = set()
    todo: list[tuple[Any, Module]] = [(base, at) for base in node.bases]
    while todo:
        base, where = todo.pop()
        origin = defined(base, where)
        if origin is None:
            inherited |= foreign_names()
            continue
        there, name = origin
        inherited |= {unit.split(".")[1] for unit in there.units if unit.startswith(f"{name}.")}
        todo += [(more, there) for more in there.bases.get(name, [])]
    own = {name for part in node.body for name in touched(part)}
    again = sorted(name for name in own if name in inherited or name.startswith("__"))
    loose = [part for part in node.body if not touched(part)]
    return [
        "class",
        form.of(node.bases),
        form.of(node.keywords),
        form.of(node.decorator_list),
        again,
        form.of(loose),
    ]


def defined(node: Any, at: Module) -> tuple[Module, str] | None:
    """The unit that a name, `room.name` or `Class.attribute` refers to; None for a foreign one."""
    if isinstance(node, ast.Name):
        return at.resolve(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    there = module_of(node.value, at)
    if there is not None:
        return there.resolve(node.attr)
    unit = defined(node.value, at)
    return None if unit is None else attribute(*unit, node.attr)


def module_of(node: Any, at: Module) -> Module | None:
    """The module of these packages that a name, or `package.module`, refers to."""
    if isinstance(node, ast.Name):
        return room(node.id, at) if is_room(node.id, at) else None
    above = module_of(node.value, at) if isinstance(node, ast.Attribute) else None
    return None if above is None else module(".".join(filter(None, [above.name, node.attr])))


def attribute(at: Module, kind: str, name: str) -> tuple[Module, str] | None:
    """The unit of a class's attribute, its own or that of the first base that has it."""
    if f"{kind}.{name}" in at.units:
        return at, f"{kind}.{name}"
    bases = (defined(base, at) for base in at.bases.get(kind, []))
    return next(filter(None, (attribute(*base, name) for base in bases if base is not None)), None)


@functools.lru_cache(maxsize=None)
def foreign_names() -> frozenset:
    """Names inherited from `nn.Module`, the one foreign base class here."""
    from torch import nn

    return frozenset(name for name in dir(nn.Module) if not name.startswith("__"))


def is_cached(at: Module, unit: str) -> bool:
    """Whether a unit is a function with a functools cache."""
    words = [
        part.func if isinstance(part, ast.Call) else part
        for part in getattr(at.units[unit][0], "decorator_list", [])
    ]
    return bool(CACHES & {getattr(word, "id", getattr(word, "attr", "")) for word in words})


def is_constant(at: Module, unit: str) -> bool:
    """Whether a name is bound by something other than `def` and `class`."""
    return not isinstance(at.units[unit][0], (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
