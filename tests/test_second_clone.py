"""A second clone with other records sends them, the first accepts them, and its book shows both."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import yaml
from sites import ROOT, document

from visbook.pages.judging import RESULTS_MIME

RUN = ["study", "benchmark", "--tasks", "position", "--methods", "linear-probe", "--epochs", "2"]
RUN += ["--backbone", "vit_nano_patch4_24"]
OURS = "The Visual Prompting, Reproduced contributors"
DO = "import ast, sys; from visprompt.__main__ import main\n"
DO += "sys.exit(max(map(main, ast.literal_eval(sys.argv[1]))))"
# The site of one page: neither what the papers say nor what the package is changes with records.
BUILD = """
from visbook.site import api_pages, build, places, record_pages, results
results.audited = list
api_pages.rooms_of = lambda root: {"words": ["visprompt.words"]}
places.script = lambda results, root: ""
build.main()
"""


def git(folder: Path, *words) -> str:
    """Output of a git command."""
    who = ["-c", "user.name=N", "-c", "user.email=n@example.org"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


def python(folder: Path, code: str, *words: str, threads: int = 1) -> str:
    """What a program prints that a clone runs by its own code."""
    own = {"VISPROMPT_ROOT": str(folder), "PYTHONPATH": str(folder / "src")}
    own["OMP_NUM_THREADS"] = str(threads)
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def copy_of_the_tree(folder: Path) -> None:
    """A repository with the code and the manifests of this one, a book of one page, and no
    records."""
    for name in git(ROOT, "ls-files", "-coz", "--exclude-standard").split("\0"):
        if name and not name.startswith(("book/", "notebooks/")) and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "ap_theory.py").write_text("# %% [markdown]\n# # A page\n")
    shutil.copy(ROOT / "notebooks" / "one_cell.py", folder / "notebooks")
    manifest = folder / "data_manifests" / "notebooks.yaml"
    manifest.write_text("ap_theory: {title: A page, artifacts: [ap.lemma-1]}\n")
    shutil.copytree(ROOT / "book" / "_static", folder / "book" / "_static")
    for name in ("help-wanted.md", "references.bib", "stories.yaml", "summaries.yaml"):
        shutil.copy(ROOT / "book" / name, folder / "book" / name)
    (folder / "book" / "index.md").write_text("# A book\n")
    (folder / "book" / "claims.md").write_text("# All claims\n\n<!-- made: claims-of ap -->\n")
    contents = {"format": "jb-book", "root": "index"}
    names = ("help-wanted", "claims", "notebooks/ap_theory")
    contents["chapters"] = [{"file": name} for name in names]
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "All")


def executed(folder: Path) -> None:
    """The one notebook of the copy as if it had run."""
    shows = {"ap.lemma-1": {"shows": [], "not_run": None}}
    results = {"notebook": "ap_theory", "profile": "quick", "commit": "0", "studies": []}
    results |= {"artifacts": shows, "claims": {}}
    output = nbformat.v4.new_output("display_data", data={RESULTS_MIME: results})
    cells = [nbformat.v4.new_markdown_cell("# A page\n\n(ap.lemma-1)=\n## Lemma 1")]
    cells.append(nbformat.v4.new_code_cell("0", outputs=[output], execution_count=1))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    place = folder / "build" / "executed" / "quick" / "ap_theory.ipynb"
    place.parent.mkdir(parents=True)
    nbformat.write(notebook, place)


def test_a_second_clone_submits_the_first_accepts_and_its_book_shows_both(tmp_path):
    before = git(ROOT, "status", "--porcelain")
    first, second = tmp_path / "first", tmp_path / "second"
    copy_of_the_tree(first)
    git(tmp_path, "clone", "-q", "--local", str(first), str(second))
    python(first, DO, str([RUN, ["keep"]]))
    git(first, "add", "book")
    git(first, "commit", "-qm", "Our run")
    send = ["submit", "--name", OURS, "--contact", "c@example.org", "--out", "sent.json"]
    python(second, DO, str([[*RUN, "--precision", "bf16"], send]), threads=2)
    told = python(first, DO, str([["accept", str(second / "sent.json"), "--rerun", "1"]]))
    assert "1 of 1 runs were done again" in told and "accepted as" in told
    kept = [path.name for path in (first / "book" / "records" / "tune").rglob("*.json")]
    assert len(kept) == 1  # its own alone
    executed(first)
    python(first, BUILD)
    page = document(first / "build" / "site" / "help-wanted.html")
    (table,) = [one for one in page.find_all("table") if "Spread" in one.get_text()]
    (row,) = table.find("tbody").find_all("tr")
    cells = [cell.get_text("\n") for cell in row.find_all("td")]
    theirs, ours = cells[4].splitlines()
    assert f"{OURS}, bf16" in theirs and theirs.endswith("threads: 2")
    assert "us, float32" in ours and ours.endswith("threads: 1")
    values = [float(line.split(":")[0]) for line in (theirs, ours)]
    assert cells[5] == f"{abs(values[0] - values[1]):.2f} points"
    # a second machine of this project is no second party
    assert "this project itself, so no second party" in page.get_text()
    assert git(ROOT, "status", "--porcelain") == before
