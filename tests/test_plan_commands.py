"""Every command on a page comes from the plan, and can be run as it stands."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml

from visbook.studies import budget, grids, plan
from visprompt import paths
from visprompt.__main__ import parse
from visprompt.data import catalogue
from visprompt.data.tasks import embedded_tasks
from visprompt.manifests import load_yaml
from visprompt.words import PROFILES

NOTEBOOKS = sorted((paths.ROOT / "notebooks").glob("*.py"))
KNOWN = {
    "tasks": lambda: {
        *embedded_tasks(),
        *(task for found in catalogue.datasets().values() for task in found.tasks),
    },
    "studies": lambda: {*grids.studies()},
}


def parameters_of(name: str) -> set[str]:
    """The names in a notebook's cell of parameters."""
    text = (paths.ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    cell = text.split('tags=["parameters"]', 1)[1].split("# %%", 1)[0]
    return set(re.findall(r"(?m)^(\w+) = ", cell))


def check(command: str) -> None:
    """That a shell, make, papermill and the command line would take a command."""
    assert "…" not in command and "..." not in command
    words = shlex.split(command)
    if words[0] == "visprompt":
        given = parse(words[1:])
        if given.command == "study":
            assert given.profile in PROFILES
            for name in given.names:
                assert (
                    plan.cells_of(name, given.profile) if "." in name else name in grids.studies()
                )
        for name in getattr(given, "names", ()) if given.command == "data" else ():
            catalogue.find(name)
        return
    assert words[:2] in (["make", "notebook"], ["make", "bench"]), command
    given = dict(word.split("=", 1) for word in words[2:])
    options = shlex.split(given.pop("ARGS", ""))
    if words[1] == "bench":
        assert parse(["bench", *options]) and not given
        return
    assert given.pop("NAME") in load_yaml(paths.MANIFESTS / "notebooks.yaml") and set(given) <= {
        "PROFILE"
    }
    name = dict(word.split("=", 1) for word in words[2:])["NAME"]
    assert given.get("PROFILE", "quick") in PROFILES and options[::3] == ["-p"] * (
        len(options) // 3
    )
    for key, value in zip(options[1::3], options[2::3], strict=True):
        assert key in parameters_of(name), f"{name} takes no {key}"
        values = yaml.safe_load(value)
        if key in KNOWN:
            assert set(values) <= KNOWN[key]()


@pytest.mark.parametrize("profile", PROFILES)
def test_the_commands_of_the_plan_can_be_run(profile):
    for id in plan.artifacts():
        for line in plan.command(id, profile).split("\n"):
            check(line)


def test_the_checker_refuses_what_pages_once_had():
    for wrong in (
        "none yet: segmentation is not part of this package",
        "make notebook NAME=ap ARGS=\"-p tasks '[oxford_pet]'\"",
        "make notebook NAME=ap ARGS='-p task [dtd]'",
        "make notebook NAME=apl",
        "visprompt study … --profile paper",
        "visprompt study ap.table-a1 --profile paper",
    ):
        with pytest.raises(
            (AssertionError, SystemExit, ValueError, StopIteration, FileNotFoundError)
        ):
            check(wrong)


def test_pages_take_their_commands_from_the_plan():
    """A call of `not_run` or `end` gives no command of its own, but the plan's for another
    profile."""
    found = 0
    for path in [*NOTEBOOKS, *sorted(Path(paths.BOOK, "chapters").glob("*.py"))]:
        for call in [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        ]:
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("not_run", "end"):
                continue
            found += 1
            for word in [word for word in call.keywords if word.arg == "command"]:
                assert ast.unparse(word.value).startswith("plan.command("), (
                    f"{path.name}, line {call.lineno}"
                )
    assert found > 20


def test_what_a_command_runs_is_what_the_plan_counts():
    row = budget.plan("spt.table-3").rows[0]
    given = parse(shlex.split(row.command.split("\n")[0])[1:])
    assert len(plan.runs_of(plan.cells_of(given.names[0], given.profile))) == row.runs
