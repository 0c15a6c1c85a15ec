"""The rooms of the two packages: each imports only those before it, starts fast, and is told of
where a stranger looks."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import visbook
import visprompt
from visbook.commands import COMMANDS
from visprompt import papers
from visprompt.__main__ import OF_THE_BOOK
from visprompt.methods import METHODS
from visprompt.paths import BOOK, PACKAGE, PACKAGES, ROOT

OURS = [
    re.findall(r"`(\w+)`", found.__doc__.split("those before it")[1])
    for found in (visprompt, visbook)
]
OURS[0] = OURS[0][: OURS[0].index("visbook")]
ROOMS = [*OURS[0], *OURS[1], "commands"]
MODULES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
# How many lines a room may have: what it had in November 2026, and a tenth. Who needs more raises
# the number in the same commit and says there why.
LINES = {
    "errors": 60,  # and what has another place here
    "progress": 30,
    "checks": 160,
    "chance": 20,
    "paths": 40,
    "words": 40,
    "manifests": 730,
    "records": 3240,
    "papers": 290,
    "data": 5860,
    "models": 1480,  # a fingerprint that is remembered, networks of one's own
    "methods": 3130,
    "training": 2960,  # activations by split; fit, evaluate and search for code of one's own
    "measure": 230,
    "theory": 2500,
    "pretraining": 840,
    # what a card is asked first: fits beside the processor, one run by its parts, what a host does
    "timing": 1520,
    "auditing": 2110,  # lines of proofs, computed; quotations looked for in a text
    # searches that go outward, changed factors, hours of a card, a rehearsal's images and networks
    "studies": 7550,
    "sharing": 1400,  # why other kinds of record stay, who has done a run
    "pages": 2600,
    "chapters": 11250,  # alternative texts with the numbers of each figure
    # how pages begin and end, names for readers, releases and what changed, parties, replies, a PDF
    "site": 5200,
}
LIBRARY = 18_000  # lines of all of `visprompt`


def below(path: Path) -> Path:
    """A module's path below its package."""
    return path.relative_to(BOOK if path.is_relative_to(BOOK) else PACKAGE)


def room(path: Path) -> str:
    return below(path).with_suffix("").parts[0]


def imported(path: Path) -> set[str]:
    """The rooms that a module imports from, at its head or inside of a function."""
    package, found = below(path).parts[:-1], set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if node.level:
            where = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            found |= {where[0]} if where[0] else {*names}
        elif node.module.split(".")[0] in ("visprompt", "visbook"):
            assert node.module.startswith("visprompt") or path.is_relative_to(BOOK), (
                f"{path} imports the book"
            )
            found |= {[*node.module.split("."), *names][1]}
    return found & {*ROOMS}


def lines(paths) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def test_every_module_is_in_a_room_that_is_named():
    assert {room(path) for path in MODULES} == {*ROOMS, "__init__", "__main__"}
    told = (ROOT / "CONTRIBUTING.md").read_text()
    table = "".join(re.findall(r"(?m)^\| (.*?`\w+/?`) \|", told))
    assert [name for name in re.findall(r"`(\w+)/?`", table) if name in ROOMS] == OURS[0] + OURS[1]


def test_papers_are_listed_in_their_manifest_alone():
    """No other list of slugs: only what each paper compares, which is no list of papers."""
    slugs, found = {*papers.papers()} - {*METHODS}, set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = getattr(node, "keys", None) or getattr(node, "elts", None) or ()
            if len(slugs & {getattr(part, "value", None) for part in parts if part}) > 1:
                found.add(path.stem)
    assert found == {"small_and_real"}
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    assert not [slug for slug in slugs if re.search(rf"\b{slug}\b", text)]


def test_no_room_grows_unseen():
    found = {name: lines(path for path in MODULES if room(path) == name) for name in LINES}
    assert {*LINES} == {*ROOMS} - {"commands"}
    assert {name: size for name, size in found.items() if size > LINES[name]} == {}
    assert lines(PACKAGE.rglob("*.py")) <= LIBRARY


def test_the_library_knows_the_book_s_commands_by_name():
    assert sorted(function.__name__ for function in COMMANDS) == OF_THE_BOOK


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(below(path)))
def test_a_room_imports_only_those_before_it(path):
    found = imported(path)
    if room(path) not in ("__init__", "__main__"):
        assert {name for name in found if ROOMS.index(name) > ROOMS.index(room(path))} == set()


def test_the_command_line_starts_without_what_only_some_commands_need():
    """`--help` answers at once; `import visprompt` waits for nothing that is not asked for."""
    for words in (["-c", "import visprompt, sys"], ["-c", "import visprompt.__main__, sys"]):
        words[1] += "; print(*sys.modules)"
        loaded = subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, check=True
        ).stdout.split()
        assert not {"torch", "pandas", "timm", "matplotlib", "sklearn"} & set(loaded)


@pytest.mark.parametrize(
    "words",
    [
        ["data", "list"],
        ["data", "info", "nosuch"],
        ["plan", "nosuch"],
        ["claims", "--paper", "nosuch"],
        ["audit", "nosuch"],
        ["published", "nosuch"],
    ],
    ids=" ".join,
)
def test_a_list_and_a_misspelt_name_wait_for_no_torch(words):
    code = f"import sys; from visprompt.__main__ import main; s = main({words}); "
    code += "sys.exit('torch' in sys.modules or s not in (0, 2))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


# What a watch of a run cannot see, with the rule that keeps it out of the package. The page on
# records lists the same rules.
DECIDES = [
    path
    for path in MODULES
    if room(path)
    not in (
        "__main__",
        "__init__",
        "commands",
        "errors",
        "progress",
        "paths",
        "words",
        "manifests",
        "papers",
        "records",
    )
]


def top_level(tree: ast.Module):
    """The statements that run when a module is imported, without the bodies of functions and of
    `if __name__ ...`."""
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        yield node
        todo += [
            part
            for name in ("body", "orelse", "handlers", "finalbody")
            for part in getattr(node, name, [])
        ]


def at_import(node: ast.AST):
    """The nodes of a statement that are computed at import: not those inside of functions and
    lambdas."""
    yield node
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, (ast.FunctionDef, ast.Lambda, ast.stmt)):
            yield from at_import(part)


def aliases(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for n in tree.body
        if isinstance(n, (ast.Import, ast.ImportFrom))
        for alias in n.names
    }


def base(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return getattr(node, "id", "")


def called_names(tree: ast.Module) -> set[str]:
    """Names that are called, and DataLoader and Thread as attributes too; `model.eval()` is none of
    Python's."""
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {f.attr for f in called if isinstance(f, ast.Attribute)} & {"DataLoader", "Thread"}
    return names | {f.id for f in called if isinstance(f, ast.Name)}


def broken_rules(tree: ast.Module) -> list[str]:
    """The rules for authors that a module breaks, each with what breaks it."""
    found, foreign = [], aliases(tree)
    for statement in top_level(tree):
        for node in at_import(statement):
            text = ast.unparse(node)
            stored = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(
                node.ctx, ast.Load
            )
            setter = isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr")
            if (stored and base(node) in foreign) or (setter and base(node.args[0]) in foreign):
                found.append(f"changes another module at import: {text}")
            called = ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""
            if (
                called
                in (
                    "open",
                    "read_text",
                    "read_bytes",
                    "load_yaml",
                    "read_table",
                    "Entries",
                    "getenv",
                )
                or "environ" in text
            ):
                found.append(f"reads a file or a variable at import: {text}")
            if called.endswith(("PoolExecutor", "Pool")):
                found.append(f"makes threads or processes at import: {text}")
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            found.append(f"calls something for its effect at import: {ast.unparse(statement)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            found.append(f"imports names that it does not write: {ast.unparse(node)}")
        if isinstance(node, ast.Global):
            found.append(f"changes a constant while it runs: {ast.unparse(node)}")
    found += [
        f"finds code or values by a computed name: {name}"
        for name in {"globals", "eval", "exec"} & called_names(tree)
    ]
    found += [
        f"sends work where no watch is: {name}"
        for name in {"DataLoader", "Thread"} & called_names(tree)
    ]
    return found


@pytest.mark.parametrize("path", DECIDES, ids=lambda path: str(below(path)))
def test_a_module_keeps_the_rules_for_what_a_watch_cannot_see(path):
    # what a download's thread does is look at a clock; the bytes have a checksum
    known = {"data/downloading.py": ["sends work where no watch is: Thread"]}
    assert broken_rules(ast.parse(path.read_text())) == known.get(str(below(path)), [])


@pytest.mark.parametrize(
    "text",
    [
        "from . import other\nother.X = 1",
        "from . import other\nother.TABLE['a'] = 1",
        "from . import other\nsetattr(other, 'X', 1)",
        "from .other import *",
        "N = open('x').read()",
        "import os\nN = os.environ['X']",
        "from concurrent.futures import ThreadPoolExecutor\nPOOL = ThreadPoolExecutor()",
        "register(1)",
        "def f():\n    return globals()['X']",
        "import threading\n\ndef f():\n    threading.Thread(target=f).start()",
        "def f():\n    return eval('X')",
        "def f():\n    global X\n    X = 1",
        "from torch.utils.data import DataLoader\n\ndef f():\n    return DataLoader([], "
        "num_workers=2)",
    ],
)
def test_each_rule_for_what_a_watch_cannot_see_can_be_broken(text):
    assert broken_rules(ast.parse(text))
