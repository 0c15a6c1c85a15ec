"""Which edits outdate which records: changes of what ran, and nothing else. Works on a copy of the
tree."""

import ast
import copy
import cProfile
import functools
import inspect
import itertools
import json
import linecache
import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import small_vit, tiny_task
from ipykernel.iostream import OutStream

import visprompt as vp
from visbook.theory import ap_toy
from visprompt import papers, records
from visprompt.data.stored import Stored
from visprompt.data.tasks import embedded_tasks, group_of
from visprompt.records import code_objects, lists, source, store, watch, watching

SLUGS = [
    "vpt-deep",
    "da-vpt-plus",
    "lora",
    "e2vpt",
    "spt-deep",
    "full-finetune",
    "linear-probe",
    "ap",
    "ssf",
    "ivpt",
]


def toy(tokens=4):
    chosen = ap_toy.Settings(tokens=tokens, max_steps=20)
    return records.recorded(
        "toy", {"cell": chosen}, lambda: {"found": len(ap_toy.run_trials(chosen, [0]))}
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Method or theory -> the units that its run used."""
    root = tmp_path_factory.mktemp("tree")
    before, store.ROOT = store.ROOT, root
    try:
        backbone, task, found = small_vit(), tiny_task(), {}
        for slug in SLUGS:
            settings = {"segments": 4} if slug == "e2vpt" else {}
            model = vp.build_method(slug, backbone, 3, **settings)
            found[slug] = vp.tune(model, task, vp.Recipe(epochs=1, learning_rate=0.01))
        found["toy"] = toy()
        lists = {
            name: store.read_code(root / "build" / "records" / "code" / f"{r.code}.json")
            for name, r in found.items()
        }
        mine = source.OUTSIDE  # this file
        return {
            name: {k: said for k, said in units.items() if not k.startswith(mine)}
            for name, units in lists.items()
        }
    finally:
        store.ROOT = before


# of one text once: a copy of the tree is read anew for every test
parsed = functools.cache(source.parse)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A copy of the package and the notebooks that `source` reads in place of the real ones."""
    monkeypatch.setattr(
        source, "parse", lambda *text: replace(parsed(*text), hashes={}, targets={})
    )
    packages = [tmp_path / "src" / package.name for package in source.PACKAGES]
    for package, there in zip(source.PACKAGES, packages):
        shutil.copytree(package, there, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        source.NOTEBOOKS, tmp_path / "notebooks", ignore=shutil.ignore_patterns("__pycache__", ".*")
    )
    monkeypatch.setattr(source, "PACKAGES", tuple(packages))
    monkeypatch.setattr(source, "NOTEBOOKS", tmp_path / "notebooks")
    source.forget()
    yield packages[0]
    monkeypatch.undo()
    source.forget()


def path_of(module: str) -> Path:
    return source.paths()[module]


def nodes_of(tree: ast.AST, at: source.Module, unit: str) -> list[ast.AST]:
    """The nodes of a unit in a tree that was parsed anew."""
    lines = {(node.lineno, type(node)) for node in at.units[unit]}
    return [n for n in ast.walk(tree) if (getattr(n, "lineno", None), type(n)) in lines]


SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.In: ast.NotIn,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Is: ast.IsNot,
}


def mutations(node: ast.AST):
    """Places in a unit where a small change changes what it does: functions without arguments that
    make it."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, (int, float)):
            yield lambda part=part: setattr(
                part, "value", not part.value if isinstance(part.value, bool) else part.value + 1
            )
        elif isinstance(part, (ast.BinOp, ast.BoolOp)) and type(part.op) in SWAPS:
            yield lambda part=part: setattr(part, "op", SWAPS[type(part.op)]())
        elif isinstance(part, ast.Compare) and type(part.ops[0]) in SWAPS:
            yield lambda part=part: part.ops.__setitem__(0, SWAPS[type(part.ops[0])]())
        elif isinstance(part, ast.Return) and part.value is not None:
            yield lambda part=part: setattr(part, "value", ast.Constant(None))
        elif isinstance(part, (ast.FunctionDef, ast.For, ast.If)) and len(part.body) > 1:
            yield lambda part=part: part.body.pop()


def test_a_hundred_mutations_each_outdate_exactly_what_used_them(made, tree):
    chance, used, seen = random.Random(0), {}, set()
    for name, units in made.items():
        for place in units:
            used.setdefault(place, set()).add(name)
    every = [
        (place, number)
        for place in sorted(used)
        for number in range(4)
        if not place.startswith("cell")
    ]
    chance.shuffle(every)
    for place, number in every:
        module, unit = place.split(":")
        at, path = source.module(module), path_of(module)
        text = path.read_text()
        changed = ast.parse(text)
        found = [change for node in nodes_of(changed, at, unit) for change in mutations(node)]
        if len(found) <= number:
            continue
        said = source.hash_of(at, unit)
        chance.choice(found)()
        path.write_text(ast.unparse(changed))
        source.forget(module)
        if (
            unit in source.module(module).units
            and source.hash_of(source.module(module), unit) != said
        ):
            hit = {name for name, units in made.items() if not lists.stands(units)}
            # a changed attribute or method of a class may be inherited: its users are those that
            # saw the class
            assert hit == used[place], (place, hit ^ used[place])
            seen.add((place, number))
        path.write_text(text)
        source.forget(module)
        if len(seen) >= 100:
            break
    assert len(seen) >= 100
    assert all(lists.stands(units) for units in made.values())


def with_comments(text):
    return "".join(
        line + ("  # a remark\n" if line.endswith(")") else "\n") for line in text.split("\n")
    )


def with_docstrings(text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.body.insert(0, ast.Expr(ast.Constant("Said anew.")))
    return ast.unparse(ast.fix_missing_locations(tree))


def without_annotations(text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = ast.Name("Another")
            for argument in node.args.args:
                argument.annotation = None
    return ast.unparse(ast.fix_missing_locations(tree))


def other_errors(text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            node.exc.args = [ast.Constant("said otherwise")]
    return ast.unparse(ast.fix_missing_locations(tree))


def unused_import(text):
    lines = text.split("\n")
    at = next(
        i
        for i, line in enumerate(lines)
        if line.startswith(("import ", "from ")) and "__future__" not in line
    )
    return "\n".join([*lines[:at], "import uuid  # not used", *lines[at:]])


def reformatted(text):
    return ast.unparse(ast.parse(text))


EDITS = [
    with_comments,
    with_docstrings,
    without_annotations,
    other_errors,
    unused_import,
    reformatted,
]


@pytest.mark.parametrize("edit", EDITS)
def test_harmless_edits_of_every_file_outdate_nothing(made, tree, edit):
    modules = sorted({place.split(":")[0] for units in made.values() for place in units} - {"cell"})
    count = 0
    for module in (m for m in modules if m in source.paths()):
        path = path_of(module)
        text = path.read_text()
        if (
            not any(line.startswith(("import ", "from ")) for line in text.split("\n"))
            and edit is unused_import
        ):
            continue
        path.write_text(edit(text))
        count += 1
    source.forget()
    assert not [name for name, units in made.items() if not lists.stands(units)]
    assert count >= 17  # all edits are in together; times six kinds, more than a hundred


def rename_module(tree, old, new):
    """Rename a module of `methods` and what imports it."""
    (tree / "methods" / f"{old}.py").rename(tree / "methods" / f"{new}.py")
    for path in tree.rglob("*.py"):
        text = path.read_text()
        text = text.replace(f"from .{old} import", f"from .{new} import").replace(
            f"from . import {old}", f"from . import {new}"
        )
        if path.parent.name == "methods" or f"methods.{old}" in text:
            text = text.replace(f"{old}.Deep", f"{new}.Deep").replace(
                f"{old}.check_tokens", f"{new}.check_tokens"
            )
            text = text.replace(f"{old}.uniform_", f"{new}.uniform_").replace(
                f"{old}.Shallow", f"{new}.Shallow"
            )
            text = text.replace(f"methods.{old}", f"methods.{new}")
        path.write_text(text)
    source.forget()


@pytest.mark.parametrize("old", ["prompts", "lora", "token_starts", "ssf", "ivpt", "e2vpt"])
def test_a_renamed_module_outdates_nothing(made, tree, old):
    rename_module(tree, old, "called_otherwise")
    assert all(lists.stands(units) for units in made.values())


def test_a_renamed_module_whose_method_changed_is_outdated_though_another_says_the_same(made, tree):
    rename_module(tree, "lora", "low_rank")
    path = tree / "methods" / "low_rank.py"
    path.write_text(path.read_text().replace("nn.init.zeros_(up)", "nn.init.ones_(up)"))
    source.forget()
    assert not lists.stands(made["lora"]) and lists.stands(made["ssf"])


@pytest.mark.parametrize("name", ["normalise", "balanced_order"])
def test_a_moved_function_outdates_nothing(made, tree, name):
    path = tree / "data" / "tasks.py"
    text = path.read_text()
    function = next(node for node in ast.parse(text).body if getattr(node, "name", "") == name)
    lines = text.split("\n")
    moved = "\n".join(lines[function.lineno - 1 : function.end_lineno])
    rest = "\n".join([*lines[: function.lineno - 1], *lines[function.end_lineno :]])
    (tree / "data" / "elsewhere.py").write_text(f"import torch\n\n\n{moved}\n")
    path.write_text(
        rest.replace("import torch\n", f"import torch\n\nfrom .elsewhere import {name}\n", 1)
    )
    source.forget()
    assert all(lists.stands(units) for units in made.values())


def test_a_name_that_means_another_function_outdates(made, tree):
    (tree / "data" / "elsewhere.py").write_text(
        "def normalise(images, mean, std):\n    return images.float()\n"
    )
    path = tree / "training" / "activations.py"
    path.write_text(
        path.read_text().replace(
            "from ..data.tasks import SPLITS, Task, normalise",
            "from ..data.elsewhere import normalise\nfrom ..data.tasks import SPLITS, Task",
        )
    )
    source.forget()
    assert not lists.stands(made["lora"]) and lists.stands(made["toy"])


def test_a_new_override_outdates_its_class_and_a_new_method_of_its_own_does_not(made, tree):
    path = tree / "methods" / "ssf.py"
    text = path.read_text()
    path.write_text(text + "\n    def helper(self):\n        return 1\n")
    source.forget()
    assert all(lists.stands(units) for units in made.values())
    path.write_text(text + "\n    def after_blocks(self, x):\n        return 2 * x\n")
    source.forget()
    assert not lists.stands(made["ssf"]) and lists.stands(made["lora"])


def test_a_changed_default_outdates_runs_that_left_it_and_a_new_field_outdates_none(made, tree):
    path = tree / "methods" / "lora.py"
    text = path.read_text()
    path.write_text(
        text.replace("    rank: Count = 10", "    extra: int = 3  # new\n    rank: Count = 10")
    )
    source.forget()
    assert lists.stands(made["lora"])
    path.write_text(text.replace("    rank: Count = 10", "    rank: Count = 8"))
    source.forget()
    assert not lists.stands(made["lora"]) and lists.stands(made["vpt-deep"])


def test_a_new_method_outdates_nothing(made, tree):
    shutil.copy(tree / "methods" / "lora.py", tree / "methods" / "newest.py")
    source.forget()
    assert all(lists.stands(units) for units in made.values())


OTHER = """
import importlib, json, sys, types
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
torch = types.ModuleType("torch"); nn = types.ModuleType("torch.nn")
class Module: pass
for name in json.loads(sys.argv[2]): setattr(Module, name, None)
nn.Module = Module; torch.nn = nn; sys.modules.update({"torch": torch, "torch.nn": nn})
for name, folder in (("visprompt", sys.argv[1]), ("visprompt.records", sys.argv[1] + "/records")):
    sys.modules[name] = types.ModuleType(name); sys.modules[name].__path__ = [folder]  # without what they import
source = importlib.import_module("visprompt.records.source"); lists = importlib.import_module("visprompt.records.lists")
print(json.dumps([lists.stands(units) for units in json.load(sys.stdin)]))
"""


@pytest.mark.parametrize("python", ["python3.10", "python3.12", "python3.13", "python3.14"])
def test_another_python_outdates_nothing(made, python):
    homes = sorted(Path.home().glob(f".pyenv/versions/{python[6:]}.*/bin/python"))
    found = str(homes[0]) if homes else shutil.which(python)
    if found is None:
        pytest.skip(f"{python} is not installed")
    names = json.dumps(sorted(source.foreign_names()))
    package = str(source.PACKAGES[0])
    done = subprocess.run(
        [found, "-c", OTHER, package, names],
        input=json.dumps(list(made.values())),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert all(json.loads(done.stdout))


def test_the_same_run_uses_the_same_code_cold_and_warm(stores):
    """What an earlier run left in memory does not hide code from a later one."""
    backbone, task = (
        vp.load_backbone("vit_nano_patch4_24", "pretrained"),
        vp.load_task("position", train_size=32),
    )
    found = []
    for _ in range(2):
        model = vp.build_method("ap", backbone, task.classes)
        record = vp.tune(model, task, vp.Recipe(epochs=1, learning_rate=0.1))
        found.append(record.code)
        for path in store.files(stores[0]):
            path.unlink()
    assert found[0] == found[1]


@pytest.mark.parametrize("name", embedded_tasks())
def test_a_task_drawn_again_has_the_code_of_the_first_time(name):
    found = []
    for size in (21, 22):
        with watching() as seen:
            vp.load_task(name, train_size=size)
        found.append(set(seen.units()))
    assert found[0] == found[1]


def test_images_that_lie_in_a_file_are_read_by_code_that_counts(tmp_path):
    """`255 - ...` in data/stored.py changes every run on pictures of a folder."""
    images = torch.arange(2 * 3 * 4, dtype=torch.uint8).reshape(2, 3, 2, 2)
    (tmp_path / "images.u8").write_bytes(images.numpy().tobytes())
    stored = Stored.at(tmp_path / "images.u8", (2, 3, 2, 2))
    with watching() as seen:
        assert torch.equal(stored[torch.tensor([1])], images[1:])
    assert "data.stored:Stored.__getitem__" in seen.units()


@pytest.mark.parametrize("unit", ["methods:build_method", "papers:papers", ":home"])
def test_the_init_of_a_room_is_code_like_any_other(vit, unit):
    """Of the rooms that decide values; that of the package hands names on alone."""
    with watching() as seen:
        vp.build_method("ap", vit, 3)
        papers.papers(), vp.home("fit")
    assert (unit in seen.units()) == (unit == "methods:build_method")


def test_nothing_that_decides_values_is_cached_out_of_sight():
    """A cache of functools hides from later runs what the first one ran."""
    rooms = ("data", "methods", "training", "measure", "theory")
    hidden = {
        f"{path.parent.name}/{path.name}"
        for room, package in itertools.product(rooms, source.PACKAGES)
        for path in (package / room).glob("*.py")
        if re.search(r"@(functools\.)?(lru_)?cache\b", path.read_text())
    }
    # Published files and the sources of the pasted images, whose bytes decide; lists of names,
    # schemas, free memory.
    data, methods = (
        {"data/full_layouts.py", "data/image_cache.py"},
        {"methods/__init__.py", "methods/method_fields.py"},
    )
    assert hidden == {*data, *methods, "theory/pasted_images.py"}


def test_code_changed_on_disk_while_it_runs_is_refused(tmp_path, monkeypatch):
    code = inspect.unwrap(vp.tune).__code__
    assert code_objects.unit_of(code) == ("training.loop", "tune")
    changed = copy.deepcopy(code_objects.compiled("training.loop"))
    changed.pop(("tune", code.co_firstlineno))
    monkeypatch.setattr(code_objects, "compiled", lambda name: changed)
    with pytest.raises(vp.BadInput, match="was changed while it ran"):
        code_objects.unit_of(code)


def test_equal_sets_are_one_constant_in_whatever_order_they_list_their_entries():
    first, second = frozenset([0, 8]), frozenset([8, 0])  # one place in a table of eight
    assert first == second and repr(first) != repr(second)
    assert (
        code_objects.constant(first)
        == code_objects.constant(second)
        != code_objects.constant(frozenset([0, 7]))
    )
    assert code_objects.constant((1, first)) == code_objects.constant((1, second))


def test_a_notebooks_cell_counts_as_code(stores, tmp_path):
    """The lambda of a cell, and the constants it reads, are found again in notebooks/."""
    text = (
        "from visprompt.records import recorded\nN = 3\nfound = recorded('k', {'a': "
        "1}, lambda: {'x': N})\n"
    )
    at = source.parse(text, "cell")
    assert code_objects.at_line(at, 3) == "found" and set(lists.read_by(at, "found")) == {"cell:N"}


def test_code_of_a_cell_is_found_in_its_notebook(monkeypatch, tree):
    """As IPython runs it: a cell is a file of its own, which does not hold what other cells
    import."""
    cell = "def gradient_cells():\n    return {'clean': N, 'noise': 0}\n"
    (source.NOTEBOOKS / "two_cells.py").write_text(f"# %%\nN = 3\n\n# %%\n{cell}")
    source.forget()
    file = "/tmp/ipykernel_1/2.py"
    monkeypatch.setitem(
        linecache.cache, file, (len(cell), None, cell.splitlines(keepends=True), file)
    )
    codes = [
        c
        for c in compile(cell, file, "exec").co_consts
        if hasattr(c, "co_name") and c.co_name == "gradient_cells"
    ]
    assert code_objects.is_ours(codes[0]) and code_objects.unit_of(codes[0]) == (
        "notebooks.two_cells",
        "gradient_cells",
    )
    seen = watch.Seen()
    seen.codes[0] = codes[0]
    assert set(seen.units()) == {"notebooks.two_cells:gradient_cells", "notebooks.two_cells:N"}
    assert lists.stands(seen.units())


def test_the_kernel_itself_is_nobodys_code():
    """A bar drawn in a notebook runs ipykernel's own stream, which no notebook holds: such a record
    never was current."""
    assert not code_objects.is_ours(OutStream.write.__code__)


def test_a_run_below_a_profiler_is_watched_all_the_same():
    """cProfile's hook is none that Python can set again: it must end there, not break the run."""
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with watch.watching() as seen:
            group_of("letters")
        group_of("letters")
    finally:
        profiler.disable()
    assert group_of.__code__ in seen.codes.values()


def test_two_functions_under_one_name_are_two_runs(stores):
    first = records.recorded("k", {"a": 1}, lambda: {"x": 1})
    assert records.recorded("k", {"a": 1}, lambda: {"x": 2}) == first  # a test's code is nobody's
    units = {"training.loop:tune": source.hash_of(source.module("training.loop"), "tune")}
    store.write_code(units)
    assert not records.made_with(first, vp.load_task)
