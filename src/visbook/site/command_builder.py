"""The command builder: what there is to choose from, as data for the script that writes the
lines."""

import html
import json
from pathlib import Path

from visprompt.words import PLANS

from ..studies.grids import cells, form, studies
from ..studies.plan import recipes
from ..studies.roles import recipe_scope
from .chapters import paper_of


def choices(results: dict) -> dict:
    """Study -> {"title", "pages": {notebook that shows it: title}, "papers": {notebook: paper},
    "runs": {profile: {"tasks", "methods"}}}.

    The notebooks are those of papers with a recipe of their own name: they take tasks, methods and
    seeds.
    """
    paper = {page: paper_of(page, results) for page in results["studies"]}
    chapters = [page for page, slug in paper.items() if slug and recipes().get(slug) == slug]
    found = {}
    for name in studies():
        runs = {}
        for profile in PLANS:
            if there := [run for _, run, _ in cells(name, recipe_scope(profile, profile), 1)]:
                runs[profile] = {
                    key: list(dict.fromkeys(getattr(run, key[:-1]) for run in there))
                    for key in ("tasks", "methods")
                }
        pages = [page for page in chapters if name in results["studies"][page]]
        if runs:
            found[name] = {
                "title": form(name, "quick")["title"],
                "pages": {page: results["titles"][page] for page in pages},
                "papers": {page: paper[page] for page in pages},
                "runs": runs,
            }
    return found


def builder(results: dict, root: Path) -> str:
    """Where a reader chooses, as HTML; without scripts it is the line that does all of a study."""
    usual = html.escape("visprompt study benchmark --profile quick --seeds 0 --search")
    given = json.dumps(choices(results))
    return (
        f'<div class="vp-builder"><script '
        f'type="application/json">{given}</script><pre>$ {usual}</pre></div>'
    )


MAKERS = {"command-builder": builder}
