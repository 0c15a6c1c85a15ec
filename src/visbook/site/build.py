"""The website: executed notebooks and prose are laid out in build/pages and built into build/site.

    python -m visbook.site.build quick

The repository root is not the source of the book, so that only what belongs on the site gets on it.
"""

import ctypes
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from visprompt import paths
from visprompt.errors import BadInput, choose

from ..pages import judging
from ..pages.friendly import friendly
from . import (
    api_pages,
    chapters,
    claims,
    command_builder,
    compare,
    edition,
    excerpts,
    front,
    help_wanted,
    links,
    manifest_pages,
    number_pages,
    pictures,
    places,
    prose,
    recipe_pages,
    record_pages,
    rerun_box,
    rule_pages,
    sentence_pages,
    tables,
    what_changed,
    which_method,
)
from .lighten import lighten
from .results import RESULTS_MIME, notebooks, read_notebook, read_results

# Jupyter Book's command in the Python that runs this, without colour codes for the logs.
START = (
    "from sphinx.util.console import nocolor; nocolor(); from jupyter_book.cli.main "
    "import main; main()"
)
MADE_BY = (
    tables,
    manifest_pages,
    api_pages,
    number_pages,
    recipe_pages,
    claims,
    front,
    edition,
    command_builder,
    compare,
    help_wanted,
    rule_pages,
    sentence_pages,
    what_changed,
    which_method,
)
MAKERS = {name: make for module in MADE_BY for name, make in module.MAKERS.items()}
FOR_READERS = {  # where ids have names for readers
    name
    for module in (claims, front, number_pages, recipe_pages, rule_pages, sentence_pages, tables)
    for name in module.MAKERS
}
MARKER = re.compile(r"<!-- made: ([a-z -]+) -->")


def assemble(profile: str, root: Path | None = None) -> Path:
    """Lay out build/pages afresh: prose, generated parts, notebooks, records and downloads; return
    it.

    Raises:
        BadInput: as `read_results`, or a record that a page names is nowhere.
    """
    root = root or paths.ROOT
    results = read_results(profile, root)
    pages = root / "build" / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    skipped = shutil.ignore_patterns("records", "_static", "__pycache__", "*.md")
    shutil.copytree(root / "book", pages, ignore=skipped)
    # Not as `_static`: Jupyter Book would load every script it finds there, MathJax twice.
    shutil.copytree(root / "book" / "_static", pages / "static")
    for name, text in prose.pages(root).items():
        text = MARKER.sub(lambda match: make(match[1], results, root), warned(text, profile))
        (pages / f"{name}.md").write_text(spelled(text), encoding="utf-8")
    for folder in ("notebooks", "api", "extra/downloads", "extra/records"):
        (pages / folder).mkdir(parents=True)
    for room, text in api_pages.api_pages(root):
        (pages / "api" / f"{room}.md").write_text(text, encoding="utf-8")
    (pages / "static" / "places.js").write_text(
        spelled(places.script(results, root)), encoding="utf-8"
    )
    (pages / "static" / "names.js").write_text(manifest_pages.names(root), encoding="utf-8")
    bundles = dict(record_pages.bundles(results))
    for name in notebooks(root):
        add_notebook(name, results, root, pages, record_pages.seconds(name, bundles))
    one = f"{rerun_box.ONE_CELL}.py"
    shutil.copy(root / "notebooks" / one, pages / "extra" / "downloads" / one)
    for id, bundle in bundles.items():
        text = record_pages.record_page(id, bundle)
        (pages / "extra" / "records" / f"{id}.html").write_text(text, encoding="utf-8")
    number_pages.downloads(results, pages / "extra" / "downloads")
    sentence_pages.downloads(pages / "extra" / "downloads")
    for version, path in what_changed.older(root).items():
        shutil.copy(path, pages / "extra" / "downloads" / f"claims-{version}.csv")
    return pages


def spelled(text: str) -> str:
    """A text for readers: a method's name as its authors write it, which no file or column name
    could hold."""
    return text.replace("E2VPT", "E²VPT")


def make(part: str, results: dict, root: Path) -> str:
    """The generated part of a page that `<!-- made: name words -->` asks for."""
    name, *words = part.split()
    made = MAKERS[choose("generated part", name, MAKERS)](results, root, *words)
    return friendly(made) if name in FOR_READERS else made


def add_notebook(
    name: str, found: dict, root: Path, pages: Path, took: list[tuple[float, str]]
) -> None:
    """Put one executed notebook on the site: as a page, and as downloads of its source and
    of a notebook to run.

    Args:
        took: the seconds of each record that it shows, and the machine.
    """
    profile = found["profile"]
    executed = root / "build" / "executed" / profile / f"{name}.ipynb"
    notebook, results = read_notebook(executed, profile)
    downloads = pages / "extra" / "downloads"
    to_run = json.dumps(unrun(notebook), ensure_ascii=False, separators=(",", ":"))
    (downloads / f"{name}.ipynb").write_text(to_run, encoding="utf-8")
    shutil.copy(root / "notebooks" / f"{name}.py", downloads / f"{name}.py")
    for cell in notebook.cells:
        # the results are for this program; a page has no way to show them
        if cell.cell_type == "code":
            cell.outputs = [out for out in cell.outputs if RESULTS_MIME not in out.get("data", {})]
    title = next((cell for cell in notebook.cells if cell.cell_type == "markdown"), None)
    if title is None:
        raise BadInput(f"notebooks/{name}.py has no text; begin it with a markdown cell '# Title'.")
    left = chapters.take_not_run(notebook, found)
    chapters.arrange(notebook, name, found, root)
    rerun_box.with_box(notebook, name, found, took, left)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = spelled(cell.source)
        for output in cell.get("outputs", []):
            if "text/markdown" in output.get("data", {}):
                told = "".join(output["data"]["text/markdown"])
                output["data"]["text/markdown"] = friendly(spelled(told))
            if "text/html" in output.get("data", {}):
                shown = pictures.smaller("".join(output["data"]["text/html"]))
                shown = friendly(spelled(shown))
                # the head of an index
                output["data"]["text/html"] = shown.replace("<th></th>", "<td></td>")
    line = (
        f'<p class="vp-source">Profile <strong>{profile}</strong>, commit '
        f"{tables.code(str(results['commit']))}. "
        f'Download: <a href="../downloads/{name}.py" download>source ({name}.py)</a>, '
        f'<a href="../downloads/{name}.ipynb" download>notebook to run ({name}.ipynb)</a>.'
        f"{edition.links(name, root)}</p>"
    )
    title.source = warned(title.source, results["profile"])
    notebook.cells.append(nbformat.v4.new_markdown_cell(line))
    nbformat.write(notebook, pages / "notebooks" / f"{name}.ipynb")


def unrun(notebook: nbformat.NotebookNode) -> dict:
    """A notebook as before it ran: the page shows what came out."""
    whole = json.loads(nbformat.writes(notebook))
    for cell in whole["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
            cell["metadata"].pop("papermill", None)
    whole["metadata"].pop("papermill", None)
    return whole


def warned(text: str, profile: str) -> str:
    """The text of a page; of a rehearsal with a red line below its title."""
    if profile != "rehearsal":
        return text
    return re.sub(
        r"(?m)^(# .*)$", lambda match: f"{match[1]}\n\n{judging.warning()}\n", text, count=1
    )


def build(profile: str, root: Path | None = None) -> Path:
    """Build the website of a profile into build/site and return that folder; until then the old
    site stands.

    Raises:
        BadInput: as `assemble`; Sphinx gave a warning or an error, and its message stands above; a
            link leads nowhere; or a file cannot be read or written.
    """
    root = root or paths.ROOT
    site, work = root / "build" / "site", root / "build" / "jupyter-book"
    # A folder a run: what is left of a run that was killed may still be writing into its own.
    out = work / str(os.getpid())
    try:
        mend(site)
        shutil.rmtree(work, ignore_errors=True)
        pages = assemble(profile, root)
        check_room(pages)
        command = [sys.executable, "-c", START, "build", str(pages), "--path-output", str(out)]
        command += ["--config", str(edition.settings(root, out)), "--toc", str(root / "_toc.yml")]
        done = subprocess.run([*command, "-W", "-n", "--keep-going"])
        if done.returncode:
            raise BadInput(
                "the website was not built: mend the warnings above, which count as errors."
            )
        excerpts.write(out / "_build" / "html")
        links.check(out / "_build" / "html")
        lighten(out / "_build" / "html")
        replace(site, out / "_build" / "html")
    except OSError as error:
        raise BadInput(
            f"the website was not built: {told(error)}. Free space or mend that, and run again."
        ) from error
    shutil.rmtree(work, ignore_errors=True)
    return site


def check_room(pages: Path) -> None:
    """Raise OSError where a website of these pages may not fit on their disk: Sphinx would go on, a
    warning a file."""
    taken = sum(path.stat().st_size for path in pages.rglob("*") if path.is_file())
    # what Sphinx knows of each page too; the theme's own files
    if shutil.disk_usage(pages).free < 2 * taken + 2**25:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(pages.parent))


def told(error: OSError) -> str:
    """What went wrong with which file, on one line; of many files the first."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        _, path, why = error.args[0][0]
        return f"{path}: {why}"
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def replace(site: Path, new: Path) -> None:
    """Put a finished site in the place of the old one, which may go on being read.

    In one step where the system has one; else in two, and `mend` undoes the first where a kill
    comes between.
    """
    if site.exists() and not exchange(new, site):
        os.rename(site, site.with_name("site.old"))
    if not site.exists():
        os.rename(new, site)
    shutil.rmtree(site.with_name("site.old"), ignore_errors=True)


def mend(site: Path) -> None:
    """Put the old site back where a kill left none, and remove what is left of one that was
    replaced."""
    old = site.with_name("site.old")
    if old.exists() and not site.exists():
        os.rename(old, site)
    shutil.rmtree(old, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change names in one step, and return True; False where the system cannot."""
    call = getattr(ctypes.CDLL(None), "renameat2", None)  # of Linux; Python has no name for it
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return call is not None and call(here, os.fsencode(one), here, os.fsencode(other), swap) == 0


def main() -> None:
    """Build the website for the profile named on the command line."""
    try:
        site = build(sys.argv[1] if len(sys.argv) > 1 else "quick")
    except BadInput as problem:
        sys.exit(f"visbook.site.build: {problem}")
    print(f"The website is ready: open {site / 'index.html'} in a browser.")


if __name__ == "__main__":
    main()
