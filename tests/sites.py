"""The sites that tests look at: the real one where it was built, and a small one from one notebook;
and a browser."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from visbook.site.pdf import chromium
from visprompt.records import commit

ROOT = Path(__file__).parents[1]
REAL = ROOT / "build" / "site"
CHROMIUM = chromium()
EVERYTHING = bool(os.environ.get("VISPROMPT_WHOLE"))  # not only a share of what is costly
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


# what leads to a notebook, or to the label of one
LEADS = re.compile(r"\[([^]]*)\]\(notebooks/(\w+)\.ipynb\)|{ref}`(.*?) *<method-explorer>`")


def words_alone(found: re.Match) -> str:
    """The words of a link to a notebook that the small repository lacks."""
    return found[0] if found[2] == "ap_theory" else found[1] or found[3] or found[2]


def small_root(folder: Path) -> Path:
    """A repository with one small notebook, beside the real prose, manifests and settings."""
    folder.mkdir()
    for name in ("book", "data_manifests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("weights"))
    for name in ("_config.yml", "CONTRIBUTING.md", "CITATION.cff"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    (folder / "src").symlink_to(ROOT / "src")
    (folder / "notebooks").mkdir()
    shutil.copy(Path(__file__).parent / "small_notebook.py", folder / "notebooks" / "ap_theory.py")
    shutil.copy(ROOT / "notebooks" / "one_cell.py", folder / "notebooks" / "one_cell.py")
    (folder / "data_manifests" / "notebooks.yaml").write_text(
        "ap_theory: {title: A small notebook, artifacts: [ap.lemma-1, ap.theorem-1]}\n"
    )
    for page in (folder / "book").glob("*.md"):
        page.write_text(LEADS.sub(words_alone, page.read_text()))
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    there = {"notebooks/ap_theory", *(path.stem for path in (ROOT / "book").glob("*.md"))}

    def kept(entries: list[dict]) -> list[dict]:
        """The entries of pages that are there, each with its sections that are."""
        found = [entry for entry in entries if entry.get("file") in there | {None}]
        for entry in found:
            if sections := kept(entry.pop("sections", [])):
                entry["sections"] = sections
        return found

    for part in contents["parts"]:
        part["chapters"] = kept(part["chapters"])
    contents["parts"] = [part for part in contents["parts"] if part["chapters"]]
    (folder / "_toc.yml").write_text(yaml.safe_dump(contents))
    return folder


def call(*command, root: Path) -> subprocess.CompletedProcess:
    """Run a program on a small repository."""
    settings = {
        "VISPROMPT_ROOT": str(root),
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *map(str, command)]
    return subprocess.run(
        command, cwd=root, env={**os.environ, **settings}, capture_output=True, text=True
    )


@pytest.fixture(scope="session")
def small(tmp_path_factory, worker_id) -> Path:
    """The small repository with its notebook run and its site built, once for all processes; no
    test changes it."""
    base = tmp_path_factory.getbasetemp()
    base = base if worker_id == "master" else base.parent  # which the processes share
    with FileLock(base / "small.lock"):
        if not (base / "small" / "build" / "site" / "index.html").exists():
            build_small(base / "small")
    return base / "small"


def build_small(folder: Path) -> None:
    """Run the notebook of the small repository and build its site."""
    build_site(small_root(folder), ["ap_theory"])


def build_site(
    root: Path, notebooks: list[str], build: Sequence[str] = ("-m", "visbook.site.build", "quick")
) -> None:
    """Run notebooks of a repository and build its site."""
    done = root / "build" / "executed" / "quick"
    done.mkdir(parents=True)
    (root / "build" / "ipynb").mkdir()
    commands = []
    for name in notebooks:
        ipynb, source = root / "build" / "ipynb" / f"{name}.ipynb", f"notebooks/{name}.py"
        commands += [
            ["-m", "jupytext", "--quiet", "--to", "ipynb", "--output", ipynb, source],
            ["-m", "papermill", "--no-progress-bar", ipynb, done / f"{name}.ipynb"],
        ]
    for command in [*commands, build]:
        ran = call(*command, root=root)
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]


def stale() -> Path | None:
    """The newest source, where the real site is older than it."""
    sources = [*(ROOT / "book").glob("*.*"), *(ROOT / "data_manifests").rglob("*.*")]
    newest = max([*sources, *ROOT.glob("notebooks/*.py")], key=lambda path: path.stat().st_mtime)
    return newest if newest.stat().st_mtime > (REAL / "index.html").stat().st_mtime else None


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium found; install one or set VISPROMPT_CHROMIUM to its path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@cache
def document(path: Path):
    """A page's parse tree."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(path.read_text(), "html.parser")


@cache
def bundle_of(path: Path) -> dict:
    """What a page of records holds, with what it says once put back into each record."""
    text = document(path).find(id="bundle").string
    shared = json.loads(text)["shared"]
    put_back = json.loads(
        text, object_hook=lambda part: shared[part["$shared"]] if "$shared" in part else part
    )
    return {name: value for name, value in put_back.items() if name != "shared"}


def ids(path: Path) -> set[str]:
    """All ids of a page, which many links ask for."""
    return {tag["id"] for tag in document(path).find_all(id=True)}


def pages(site: Path) -> list[Path]:
    """All pages of the book; those of records, all of one mould, have tests of their own.

    Eight of them, other ones for every commit, unless VISPROMPT_WHOLE is set.
    """
    found = sorted(site.rglob("*.html"))
    found = [page for page in found if not {"_static", "records"} & {*page.relative_to(site).parts}]
    return found if EVERYTHING else drawn(found, 8)


def drawn(things: list, count: int) -> list:
    """So many of some things, the same for a commit, in their order; see `seed`."""
    places = random.Random(seed()).sample(range(len(things)), min(count, len(things)))
    return [things[place] for place in sorted(places)]


def seed() -> str:
    """VISPROMPT_SEED, which draws the same again, or the commit."""
    return os.environ.get("VISPROMPT_SEED", commit())


@pytest.fixture(scope="session", params=["small", "real"])
def site(request) -> Path:
    """The small site, and the real one where it has been built."""
    if request.param == "small":
        return request.getfixturevalue("small") / "build" / "site"
    if not (REAL / "index.html").exists():
        pytest.skip("build/site is not there; make book builds it")
    if newer := stale():
        pytest.skip(f"build/site is older than {newer.relative_to(ROOT)}; make book renews it")
    return REAL


@pytest.fixture(scope="session")
def whole(request):
    """The real site where it has been built from today's sources, else the small one."""
    if (REAL / "index.html").exists() and not stale():
        return REAL
    return request.getfixturevalue("small") / "build" / "site"
