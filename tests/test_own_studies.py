"""Studies outside the repository: a folder of one's own with own_studies.yaml, its records, a
notebook on them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from visbook.studies import grids
from visprompt import paths
from visprompt.errors import BadInput

STUDY = """studies:
  mine:
    title: a probe of two seeds
    backbones: [smaller]
    tasks: benchmark
    variants:
      Linear probe: {method: linear-probe, rate_of: none}
"""
NOTEBOOK = """# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% tags=["parameters"]
seeds = [0, 1]

# %%
import visprompt as vp

found = vp.runs(study="mine")
print("runs:", sorted(found[found.seed.isin(seeds)].seed), found.store.unique())
"""


def called(folder: Path, *words: str) -> str:
    """What a program of this environment says in a folder of one's own."""
    environment = {
        **os.environ,
        "VISPROMPT_ROOT": str(folder),
        "PYTHONPATH": str(paths.ROOT / "src"),
    }
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_study_of_ones_own_is_run_listed_and_shown_in_its_own_folder(tmp_path):
    (tmp_path / "own_studies.yaml").write_text(STUDY)
    words = ("study", "mine", "--tasks", "position", "--seeds", "0", "1")
    assert "Linear probe" in called(tmp_path, "visprompt", *words)
    rows = called(tmp_path, "visprompt", "runs", "--study", "mine", "--format", "csv").splitlines()
    assert len(rows) == 3 and all(",here," in row for row in rows[1:])
    assert {path.name for path in tmp_path.iterdir()} == {"own_studies.yaml", "build"}
    (tmp_path / "mine.py").write_text(NOTEBOOK)
    called(tmp_path, "jupytext", "--to", "ipynb", "mine.py")
    called(tmp_path, "papermill", "mine.ipynb", "out.ipynb", "-y", "seeds: [1]")
    assert "runs: [1] ['here']" in (tmp_path / "out.ipynb").read_text()


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path / "own_studies.yaml"


def test_studies_of_ones_own_stand_beside_the_books(own):
    before = grids.studies()
    own.write_text(STUDY)
    assert {**grids.studies()} == before | {
        "mine": grids.studies()["mine"]
    } and "mine" not in before
    assert grids.form("mine", "quick")["tasks"] == ["benchmark"]
    own.write_text(STUDY.replace("benchmark", "ablation"))
    assert grids.form("mine", "quick")["tasks"] == ["ablation"]
    own.unlink()
    assert grids.studies() == before


@pytest.mark.refused
@pytest.mark.parametrize(
    ("text", "wrong", "line", "told"),
    [
        ("mine", "benchmark", 2, "benchmark is a study of the book; give another name"),
        ("smaller", "small", 4, "Did you mean 'smaller'"),
        ("tasks: benchmark", "tasks: bench", 5, "Did you mean 'benchmark'"),
        ("linear-probe", "linear-prob", 7, "Did you mean 'linear-probe'"),
        ("rate_of: none", "rate_of: VPT", 7, "variant of the benchmark"),
        ("rate_of: none", "prompt_tokens: 2", 7, "prompt_tokens"),
        ("    title: a probe of two seeds\n", "", 2, "title"),
    ],
)
def test_what_is_wrong_in_ones_own_file_is_one_line(own, text, wrong, line, told):
    own.write_text(STUDY.replace(text, wrong, 1))
    with pytest.raises(BadInput, match=told) as error:
        grids.studies()
    assert f"own_studies.yaml, line {line}: " in str(error.value)
