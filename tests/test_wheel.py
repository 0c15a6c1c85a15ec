"""The two packages as wheels, in folders that have nothing else of this repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from visprompt.__main__ import OF_THE_BOOK

ROOT = Path(__file__).parents[1]
USE = """
import visprompt as vp
from visprompt.paths import PACKAGE
assert "site" in str(PACKAGE), PACKAGE
backbone, task = vp.load_backbone("vit_nano_patch4_24"), vp.load_task("position", train_size=40)
model = vp.build_method("vpt-deep", backbone, task.classes, prompt_tokens=2)
values = vp.fit(model, task, vp.Recipe(epochs=1))
record = vp.tune(model, task, vp.Recipe(epochs=1))
assert record.values["test"] == values["test"]
vp.save_method(model, "one.safetensors")
assert vp.load_method("one.safetensors", backbone).slug == "vpt-deep"
"""
# As if the extras were not installed: what a base installation does not bring.
BASE = """
import sys
from pathlib import Path
if "visbook" in MORE:  # no way to the one of this repository either
    sys.path[:] = [path for path in sys.path if not Path(path, "visbook").is_dir()]
    sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"seaborn", "nbformat", "IPython", "papermill", "jupytext", "snakemake", "playwright"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import visprompt as vp
from visprompt.__main__ import main
for name in dir(vp):
    getattr(vp, name)
for words in WORDS:
    assert not main(words.split()), words
"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory) -> tuple[Path, Path]:
    """A folder with what the library's wheel holds, as an installer would unpack it, and one with
    the book's too."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    subprocess.run(["git", "clone", "-q", ROOT, copy], check=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        folder,
    ]
    subprocess.run([*command, copy, copy / "src" / "visbook"], check=True, capture_output=True)
    for wheels, site in (("visprompt-*.whl", "site"), ("vis*.whl", "both-site")):
        for wheel in folder.glob(wheels):
            zipfile.ZipFile(wheel).extractall(folder / site)
    return folder / "site", folder / "both-site"


def run(site: Path, *words: str) -> subprocess.CompletedProcess:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("VISPROMPT_ROOT", "PYTHONPATH")
    }
    work = site.parent / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *words],
        cwd=work,
        env={**kept, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )


def test_an_installed_package_trains_and_saves(sites):
    done = run(sites[0], "-c", USE)
    assert done.returncode == 0, done.stderr
    assert list((sites[0].parent / "work" / "build" / "records").rglob("*.json"))


def test_both_installed_packages_answer_without_what_only_the_site_needs(sites):
    words = ["published ap.table-1", "claims --paper spt", "plan ap.table-1", "data list"]
    done = run(sites[1], "-c", f"MORE, WORDS = set(), {words}\n{BASE}")
    assert done.returncode == 0 and "LINEAR-PROBE" in done.stdout, done.stderr


def test_the_library_alone_says_what_a_command_of_the_book_needs(sites):
    assert not (sites[0] / "visbook").exists()
    alone = "MORE, WORDS = {'visbook'}, ['data list']\n" + BASE
    done = run(sites[0], "-c", alone)
    assert done.returncode == 0, done.stderr
    for name in OF_THE_BOOK:
        done = run(sites[0], "-c", f"{alone}\nmain(['{name}'])")
        said = (
            f"visprompt: {name} is a command of the book's package. Install it from the repository"
        )
        assert (
            done.returncode == 2 and done.stderr.startswith(said) and done.stderr.count("\n") == 1
        )
    done = run(sites[0], "-c", f"{alone}\nvp.claims()")
    assert "AttributeError: vp.claims is of the book's package. Install it" in done.stderr
