"""The package as a wheel, in a folder that has nothing else of this repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"seaborn", "nbformat", "IPython", "papermill", "jupytext", "snakemake", "playwright"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import visprompt as vp
from visprompt.__main__ import main
for name in vp.__all__:
    getattr(vp, name)
for words in ("published ap.table-1", "claims --paper spt", "plan ap.table-1", "data list"):
    assert not main(words.split()), words
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with what the wheel holds, as an installer would unpack it."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    subprocess.run(["git", "clone", "-q", ROOT, copy], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, copy]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("visprompt-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def run(site: Path, *words: str) -> subprocess.CompletedProcess:
    kept = {key: value for key, value in os.environ.items() if key not in ("VISPROMPT_ROOT", "PYTHONPATH")}
    work = site.parent / "work"
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *words], cwd=work, env={**kept, "PYTHONPATH": str(site)}, capture_output=True, text=True
    )


def test_an_installed_package_trains_and_saves(site):
    done = run(site, "-c", USE)
    assert done.returncode == 0, done.stderr
    assert list((site.parent / "work" / "build" / "records").rglob("*.json"))


def test_an_installed_package_answers_without_the_extras(site):
    done = run(site, "-c", BASE)
    assert done.returncode == 0 and "LINEAR-PROBE" in done.stdout, done.stderr
