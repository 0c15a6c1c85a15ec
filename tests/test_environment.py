"""The two pyproject.toml, requirements.lock and environment.yml agree, and the lock names no
addresses."""

import csv
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from visprompt.paths import ROOT

FILES = [ROOT / "pyproject.toml", ROOT / "src" / "visbook" / "pyproject.toml"]
PROJECTS = [tomllib.loads(path.read_text()) for path in FILES]
WORDS = [r for found in PROJECTS for r in found["project"]["dependencies"]]
WORDS += PROJECTS[0]["project"]["optional-dependencies"]["test"]
NEEDED = [found for found in map(Requirement, WORDS) if found.name != "visprompt"]
LOCK_TEXT = (ROOT / "requirements.lock").read_text()
LOCK = {
    canonicalize_name(n): v
    for n, v in re.findall(r"^([A-Za-z0-9._-]+)==([^ \\\n]+)", LOCK_TEXT, re.MULTILINE)
}


@pytest.mark.parametrize("requirement", NEEDED, ids=str)
def test_the_lock_satisfies_pyproject(requirement):
    version = LOCK.get(canonicalize_name(requirement.name))
    assert version, f"{requirement.name} is not in requirements.lock; run make lock"
    assert requirement.specifier.contains(version), (
        f"{requirement} against {version}; run make lock"
    )


def test_the_book_s_project_file_names_all_its_packages():
    book = FILES[1].parent
    folders = sorted(path.parent.relative_to(book.parent) for path in book.rglob("__init__.py"))
    assert PROJECTS[1]["tool"]["setuptools"]["packages"] == [
        ".".join(path.parts) for path in folders
    ]


def test_a_later_python_than_the_locked_one_may_install_the_packages():
    for project in PROJECTS:
        asked = SpecifierSet(project["project"]["requires-python"])
        assert all(asked.contains(version) for version in ("3.11.7", "3.12.1", "3.13.0"))
        assert not asked.contains("3.10.13")


def test_every_locked_package_has_a_hash_and_no_address():
    entries = re.split(r"\n(?=[A-Za-z0-9])", LOCK_TEXT.split("\n", 1)[1])
    assert len(entries) == len(LOCK) > 50
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK_TEXT


def test_environment_yml_names_the_locked_versions():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict))
    assert "-r requirements.lock" in pip
    assert any(str(entry).startswith("python=3.11") for entry in conda["dependencies"])
    for entry in pip:
        if re.match(r"[A-Za-z]", entry) and "==" in entry:
            requirement = Requirement(entry)
            assert requirement.specifier.contains(LOCK[canonicalize_name(requirement.name)]), entry


def test_this_environment_is_the_locked_one():
    from importlib.metadata import version

    for requirement in NEEDED:
        here = version(requirement.name).removesuffix("+cpu")
        assert here == LOCK[canonicalize_name(requirement.name)], (
            f"{requirement.name}: run make test"
        )


LINUX_ALONE = ("nvidia-", "cuda-", "triton")


def test_what_linux_alone_has_is_marked_in_the_lock():
    lines = re.findall(r"^[A-Za-z0-9].*==.*$", LOCK_TEXT, re.MULTILINE)
    marked = {line.split("==")[0] for line in lines if " ; sys_platform == 'linux' \\" in line}
    assert marked == {name for name in LOCK if name.startswith(LINUX_ALONE)} and len(marked) > 10


# A Python that writes down what it is asked to install, the content of files too.
PYTHON = """#!/bin/bash
case "$*" in
  "-m venv "*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  *"pip install"*) echo "$@" >> asked; for word; do
    if [ "$last" = -r ]; then cat "$word" >> lines; fi; last=$word; done ;;
esac
"""


@pytest.mark.parametrize("index", ["", "https://example.org/cpu"])
def test_an_index_of_its_own_gives_torch_without_a_gpu_s_libraries(tmp_path, index):
    (tmp_path / "src" / "visbook").mkdir(parents=True)
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "src/visbook/pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / "bin" / "python3.11"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)
    own = {"PATH": f"{python.parent}:{os.environ['PATH']}", "TORCH_INDEX": index}
    words = ["make", "--silent", ".venv/.ready", "CONDA_DEFAULT_ENV="]
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, **own}, capture_output=True)
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text()
    names = set(re.findall(r"^([A-Za-z0-9._-]+)==", (tmp_path / "lines").read_text(), re.MULTILINE))
    gone = {*LOCK} - {canonicalize_name(name) for name in names}
    of_torch = {"torch", "torchvision"} | {name for name in LOCK if name.startswith(LINUX_ALONE)}
    assert gone == (of_torch if index else set()) and "--require-hashes" in asked
    wanted = f"--index-url {index} torch=={LOCK['torch']} torchvision=={LOCK['torchvision']}\n"
    assert (wanted in asked) == bool(index) and (tmp_path / ".venv" / ".ready").exists()


def test_conda_s_environment_is_the_only_one(tmp_path):
    """`make` uses the active one and installs nothing beside it."""
    words = ["make", "-n", "-C", ROOT, "test", "CONDA_DEFAULT_ENV=visprompt", "CONDA_PREFIX=/conda"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "/conda/bin/python -m pytest" in said and "venv" not in said


@pytest.mark.parametrize("words", [["format", "--check"], ["check"]], ids=" ".join)
def test_the_code_is_formatted_and_has_no_loose_ends(words):
    folders = [ROOT / name for name in ("src", "notebooks", "tests", "setup.py")]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *words, "--no-cache", *folders],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (
        f"{done.stdout[-2000:]}{done.stderr}: run .venv/bin/ruff {words[0]}"
    )


def test_the_library_s_types_fit():
    """mypy finds nothing; what it knew of an unchanged file is in build/mypy."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_costly_tests_are_named_as_they_are():
    with (ROOT / "tests" / "seconds.csv").open() as file:
        rows = [row["test"].split("::") for row in csv.DictReader(file)]
    texts = {path.name: path.read_text() for path in (ROOT / "tests").glob("test_*.py")}
    gone = [row for row in rows if row[0] not in texts or f"def {row[-1]}(" not in texts[row[0]]]
    assert [row for row in gone if len(row) == 2 or row[0] not in texts] == []
