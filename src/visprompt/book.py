"""The website: executed notebooks and prose are laid out in build/pages and built into build/site.

    python -m visprompt.book quick

The repository root is not the source of the book, so that only what belongs on the site gets on it.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from . import book_pages, manifests
from .errors import BadInput, choose

PROFILES = ("quick", "paper")
RESULTS_MIME = "application/vnd.visprompt.results+json"
# An artifact shown in several ways counts as the weakest of them: exact parameters beside a trend make a trend.
WEAKEST_FIRST = ("trend", "measured", "derived", "replicated")
# Jupyter Book's command in the Python that runs this, without colour codes for the logs.
START = "from sphinx.util.console import nocolor; nocolor(); from jupyter_book.cli.main import main; main()"
MARKER = re.compile(r"<!-- made: ([a-z-]+) -->")


def notebooks(root: Path) -> dict:
    """Name -> {title, artifacts, slices} from data_manifests/notebooks.yaml."""
    return manifests.load_yaml(root / "data_manifests" / "notebooks.yaml")


def read_notebook(path: Path, profile: str) -> tuple[nbformat.NotebookNode, dict]:
    """Return an executed notebook and the results that its last cell left.

    Raises:
        BadInput: it is missing or damaged, a cell did not run or failed, it left no results, or it
            ran with another profile; the message names the notebook and the cell.
    """
    again = f"Run it again: make book PROFILE={profile}"
    if not path.exists():
        raise BadInput(f"{path} does not exist, so notebook {path.stem} has not run. {again}")
    try:
        notebook = nbformat.read(path, as_version=4)
    except (ValueError, nbformat.reader.NotJSONError) as error:
        raise BadInput(f"{path} is no notebook ({error}). Delete it. {again}") from error
    results = None
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(code, start=1):
        which = cell.metadata.get("name") or first_line(cell.source)
        name = f"notebook {path.stem}, code cell {number} ({which})"
        if cell.execution_count is None:
            raise BadInput(f"{name} did not run. {again}")
        for output in cell.outputs:
            if output.output_type == "error":
                raise BadInput(f"{name} failed with {output.ename}: {output.evalue}. Mend it. {again}")
            results = output.get("data", {}).get(RESULTS_MIME, results)
    if results is None:
        raise BadInput(f"notebook {path.stem} left no results; its last cell must be page.close(). {again}")
    if results["profile"] != profile:
        raise BadInput(f"notebook {path.stem} ran with profile {results['profile']}, not {profile}. {again}")
    return notebook, results


def first_line(source: str) -> str:
    """The first line of a cell, to tell the reader which one is meant."""
    return repr(source.strip().splitlines()[0][:60])


def read_results(profile: str = "quick", root: Path | None = None) -> dict:
    """Return what the executed notebooks of a profile found, for every artifact and every claim.

    The result holds "profile", "notebooks" (name -> commit), "artifacts" (id -> "evidence", "shows",
    "not_run", "notebook") and "claims" (id -> "verdict", "evidence", "estimate", "low", "high",
    "records", "note", "notebook"). What no notebook speaks of is there too, as `not run`.

    Raises:
        BadInput: a notebook has not run, ran only in part, or ran with another profile.
    """
    choose("profile", profile, PROFILES)
    root = root or manifests.ROOT
    nothing = {"evidence": "not run", "shows": [], "not_run": None, "notebook": None}
    unasked = {"verdict": "not run", "note": "", "records": [], "notebook": None}
    unasked |= dict.fromkeys(("evidence", "estimate", "low", "high"))
    found = {
        "profile": profile,
        "notebooks": {},
        "artifacts": {id: dict(nothing) for id in manifests.artifacts().index},
        "claims": {claim.id: dict(unasked) for claim in manifests.claims()},
    }
    for name in notebooks(root):
        _, results = read_notebook(root / "build" / "executed" / profile / f"{name}.ipynb", profile)
        found["notebooks"][name] = results["commit"]
        for id, entry in results["artifacts"].items():
            choose(f"artifact in notebook {name}:", id, found["artifacts"])
            shown = {show["evidence"] for show in entry["shows"]}
            evidence = next((kind for kind in WEAKEST_FIRST if kind in shown), "not run")
            found["artifacts"][id] = {**entry, "evidence": evidence, "notebook": name}
        for id, entry in results["claims"].items():
            choose(f"claim in notebook {name}:", id, found["claims"])
            found["claims"][id] = {**entry, "notebook": name}
    return found


def assemble(profile: str, root: Path | None = None) -> Path:
    """Lay out build/pages afresh: prose, generated parts, notebooks, records and downloads; return it.

    Raises:
        BadInput: as `read_results`, or a record that a page names is nowhere.
    """
    root = root or manifests.ROOT
    results = read_results(profile, root)
    pages = root / "build" / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    skipped = shutil.ignore_patterns("records", "_static", "__pycache__")
    shutil.copytree(root / "book", pages, ignore=skipped)
    # Not as `_static`: Jupyter Book would load every script it finds there, MathJax twice.
    shutil.copytree(root / "book" / "_static", pages / "static")
    for page in pages.glob("*.md"):
        text = page.read_text()
        page.write_text(MARKER.sub(lambda match: book_pages.make(match[1], results, root), text))
    for folder in ("notebooks", "extra/downloads", "extra/records"):
        (pages / folder).mkdir(parents=True)
    for name in notebooks(root):
        add_notebook(name, profile, root, pages)
    for id, entry in results["artifacts"].items():
        if entry["notebook"]:
            bundle = book_pages.bundle(id, results, root)
            (pages / "extra" / "records" / f"{id}.json").write_text(json.dumps(bundle, indent=1))
    return pages


def add_notebook(name: str, profile: str, root: Path, pages: Path) -> None:
    """Put one executed notebook on the site: as a page, and as downloads of source and result."""
    executed = root / "build" / "executed" / profile / f"{name}.ipynb"
    notebook, results = read_notebook(executed, profile)
    downloads = pages / "extra" / "downloads"
    shutil.copy(executed, downloads / f"{name}.ipynb")
    shutil.copy(root / "notebooks" / f"{name}.py", downloads / f"{name}.py")
    for cell in notebook.cells:
        if cell.cell_type == "code":  # the results are for this program; a page has no way to show them
            cell.outputs = [out for out in cell.outputs if RESULTS_MIME not in out.get("data", {})]
    title = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if title is None:
        raise BadInput(f"notebooks/{name}.py has no text; begin it with a markdown cell '# Title'.")
    line = (
        f'<p class="vp-source">Profile <strong>{profile}</strong>, commit <code>{results["commit"]}</code>. '
        f'Download: <a href="../downloads/{name}.py" download>source ({name}.py)</a>, '
        f'<a href="../downloads/{name}.ipynb" download>executed notebook ({name}.ipynb)</a>.</p>'
    )
    title.source = re.sub(r"(?m)^(# .*)$", lambda match: f"{match[1]}\n\n{line}\n", title.source, count=1)
    nbformat.write(notebook, pages / "notebooks" / f"{name}.ipynb")


def build(profile: str, root: Path | None = None) -> Path:
    """Build the website of a profile into build/site and return that folder.

    Raises:
        BadInput: as `assemble`, or Sphinx gave a warning or an error; its message stands above.
    """
    root = root or manifests.ROOT
    pages = assemble(profile, root)
    out = root / "build" / "jupyter-book"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-c", START, "build", str(pages), "--path-output", str(out)]
    command += ["--config", str(root / "_config.yml"), "--toc", str(root / "_toc.yml")]
    done = subprocess.run([*command, "-W", "-n", "--keep-going"])
    if done.returncode:
        raise BadInput("the website was not built: mend the warnings above, which count as errors.")
    site = root / "build" / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(out / "_build" / "html", site)
    return site


def main() -> None:
    """Build the website for the profile named on the command line."""
    try:
        site = build(sys.argv[1] if len(sys.argv) > 1 else "quick")
    except BadInput as problem:
        sys.exit(f"visprompt.book: {problem}")
    print(f"The website is ready: open {site / 'index.html'} in a browser.")


if __name__ == "__main__":
    main()
