"""The rooms of the package: each imports only those before it, starts fast, and is told of where a stranger looks."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import visprompt
from visprompt.paths import PACKAGE

ROOMS = re.findall(r"`(\w+)`", visprompt.__doc__.split("those before it:")[1])
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path: Path) -> set[str]:
    """The rooms that a module imports from, at its head or inside of a function."""
    package, found = path.relative_to(PACKAGE).parts[:-1], set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            where = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            found |= {where[0]} if where[0] else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "visprompt":
            found |= {[*node.module.split("."), *(alias.name for alias in node.names)][1]}
    return found


def test_every_module_is_in_a_room_that_is_named():
    assert {room(path) for path in MODULES} == {*ROOMS, "__init__", "__main__"}
    told = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text()
    assert [
        name for name in re.findall(r"`(\w+)/?`", "".join(re.findall(r"(?m)^\| (`.*?) \|", told))) if name in ROOMS
    ] == ROOMS


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_those_before_it(path):
    if room(path) not in ("__init__", "__main__"):
        assert {name for name in imported(path) if ROOMS.index(name) > ROOMS.index(room(path))} == set()


def test_the_command_line_starts_without_what_only_some_commands_need():
    """`--help` answers at once; `import visprompt` waits for nothing that is not asked for."""
    for words in (["-c", "import visprompt, sys"], ["-c", "import visprompt.__main__, sys"]):
        words[1] += "; print(*sys.modules)"
        loaded = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout.split()
        assert not {"torch", "pandas", "timm", "matplotlib", "sklearn"} & set(loaded)
