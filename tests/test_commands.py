"""The commands a user types: answers on stdout, mistakes as one line and a non-zero exit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from visprompt import manifests
from visprompt.__main__ import main
from visprompt.manifests import ROOT

BIN = Path(sys.executable).parent


def outside() -> dict:
    """The environment without pytest's mark, in which ipykernel leaves its streams alone; users have none."""
    return {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}


def test_published_prints_the_table(capsys):
    assert main(["published", "ap.table-2"]) == 0
    assert "304.33" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["published", "ap.table-22"], "unknown artifact 'ap.table-22'. Did you mean"),
        (["published", "ap.table-a8"], "lost the cells"),
        (["published", "ap.figure-2"], "prints no cells"),
        (["claims", "--paper", "app"], "Did you mean 'ap'"),
        (["claims", "--verdict", "agree"], "Did you mean 'agrees'"),
        (["claims", "--profile", "fast"], "unknown profile"),
        (["artifacts", "--paper", "davptt"], "Did you mean 'davpt'"),
        (["study", "benchmrk"], "Did you mean 'benchmark'"),
        (["study", "benchmark", "--part", "3"], "part must be written 1/2"),
        (["study", "benchmark", "--profile", "papers"], "Did you mean 'paper'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(capsys, words, message):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_claims_are_one_a_line(capsys):
    assert main(["claims", "--paper", "ap"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(manifests.claims("ap"))
    assert all(len(line.split("\t")) == 4 for line in lines)
    assert {line.split("\t")[3] for line in lines} <= {"agrees", "disagrees", "inconclusive", "not run"}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ipynb")
    for name in ("ap", "ap_theory"):
        command = [BIN / "jupytext", "--quiet", "--to", "ipynb", "--output", folder / f"{name}.ipynb", ROOT / "notebooks" / f"{name}.py"]
        subprocess.run(command, check=True)
    return folder


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("ap_theory", ["-p", "sede", "[0]"], "unknown notebook parameter 'sede'. Did you mean 'seeds'"),
        ("ap", ["-p", "methods", '["app"]'], "unknown method 'app'. Did you mean 'ap'"),
        ("ap", ["-p", "tasks", '["positon"]', "-p", "layer_tasks", '["positon"]'], "Did you mean 'position'"),
        ("ap", ["-p", "weights", "/nowhere/file.safetensors"], "/nowhere/file.safetensors does not exist"),
        ("ap", ["-p", "profile", "paper"], "give -p data_dir FOLDER"),
    ],
)
def test_plain_papermill_refuses_bad_parameters(converted, tmp_path, name, words, message):
    done = subprocess.run(
        [BIN / "papermill", "--no-progress-bar", converted / f"{name}.ipynb", tmp_path / "out.ipynb", *words],
        capture_output=True, text=True, cwd=tmp_path, env={**outside(), "VISPROMPT_ROOT": str(ROOT)},
    )  # fmt: skip
    assert done.returncode != 0
    assert message in done.stderr
    assert not list(tmp_path.glob("build/records/*/*"))


def test_plain_papermill_runs_a_narrow_slice(converted, tmp_path):
    """One seed, one method, one epoch, few images: the notebook renders what it has."""
    root = tmp_path / "root"
    root.mkdir()
    for folder in ("data_manifests", "notebooks"):
        (root / folder).symlink_to(ROOT / folder)
    words = ["-p", "seeds", "[0]", "-p", "kept_seeds", "[]", "-p", "methods", '["linear-probe"]', "-p", "epochs", "1"]
    words += ["-p", "backbones", '["resnet_micro_24"]', "-p", "tasks", '["digits"]', "-p", "layer_tasks", '["digits"]']
    done = subprocess.run(
        [BIN / "papermill", "--no-progress-bar", converted / "ap.ipynb", tmp_path / "out.ipynb", *words],
        capture_output=True, text=True, cwd=tmp_path, env={**outside(), "VISPROMPT_ROOT": str(root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((root / "build" / "records" / "tune").glob("*.json"))) == 2  # whole training split and few shots
    assert "2/2" in done.stderr  # progress reaches the terminal from inside the kernel
