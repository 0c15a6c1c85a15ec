"""The pages on the package itself: its public names, a page for each of its rooms, and how to
contribute."""

import html
from collections.abc import Iterator
from pathlib import Path

import visprompt
from visprompt.words import summary

from .tables import code, table

# Modules and rooms that only this site and its pages use, but for what `import visprompt` offers.
HIDDEN = {"__main__", "commands", "method_fields", "chapters", "site"}
NAMES = sorted({**visprompt.HOMES, **visprompt.OF_THE_BOOK})


def contributing(results: dict, root: Path) -> str:
    """CONTRIBUTING.md without its title, which the page has already."""
    path = root / "CONTRIBUTING.md"
    return (
        path.read_text(encoding="utf-8").split("\n", 1)[1]
        if path.exists()
        else "See the repository."
    )


def api(results: dict, root: Path) -> str:
    """What `import visprompt as vp` offers, each name with its first line, then the rooms of the
    package."""
    rows = []
    for name in NAMES:
        thing = getattr(visprompt, name)
        said = summary(thing) if callable(thing) else "All methods, by slug."
        rows.append([f'<a href="{home(name)}">{code(f"vp.{name}")}</a>', html.escape(said)])
    rooms = [
        [
            f'<a href="api/{room}.html">{code(room)}</a>',
            code(modules[0].partition(".")[0]),
            str(len(modules)),
        ]
        for room, modules in rooms_of(root).items()
    ]
    return (
        table(["Name", "What it is"], rows)
        + "\n\n## By room\n\n"
        + table(["Room", "Package", "Modules"], rooms)
    )


def home(name: str) -> str:
    """The address of what `import visprompt as vp` offers under a name; a constant has none of its
    own."""
    module = visprompt.home(name)
    room = f"api/{module.split('.')[1]}.html"
    return f"{room}#{module}.{name}" if callable(getattr(visprompt, name)) else room


def rooms_of(root: Path) -> dict[str, list[str]]:
    """Room of the two packages -> its modules; a module beside the rooms is one of its own."""
    offered, found = {visprompt.home(name) for name in NAMES}, {}
    for package in (root / "src" / "visprompt", root / "src" / "visbook"):
        for path in sorted(package.rglob("*.py"), key=lambda path: (len(path.parts), path)):
            parts = [
                part
                for part in path.relative_to(package).with_suffix("").parts
                if part != "__init__"
            ]
            name = ".".join([package.name, *parts])
            if parts and (
                name in offered
                or not (HIDDEN & {*parts} or parts[-1].endswith(("_files", "_commands")))
            ):
                found.setdefault(parts[0], []).append(name)
    return found


def api_pages(root: Path) -> Iterator[tuple[str, str]]:
    """A page a room: (room, its text), filled in by autodoc from the docstrings."""
    for room, modules in rooms_of(root).items():
        parts = [f"# `{room}`\n"]
        for name in modules:  # a room's own module says what it defines, not what it hands on
            only = "\n   :ignore-module-all:" * (name.count(".") == 1)
            parts.append(
                f"## {name.partition('.')[2]}\n\n```{{eval-rst}}\n.. automodule:: "
                f"{name}{only}\n```\n"
            )
        yield room, "\n".join(parts)


MAKERS = {"api": api, "contributing": contributing}
