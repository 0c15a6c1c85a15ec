"""The command builder: what there is to choose from, as data for the script that writes the
lines."""

import html
import json
from pathlib import Path

from visprompt.words import PLANS

from ..studies.grids import cells, form, studies
from ..studies.roles import cast_for

CHAPTERS = ("davpt", "ivpt", "spt")  # papers whose chapters take tasks, methods and seeds


def choices(results: dict) -> dict:
    """Study -> {"title", "pages": {notebook that shows it: title}, "runs": {profile: {"tasks",
    "methods"}}}."""
    found = {}
    for name in studies():
        runs = {}
        for profile in PLANS:
            if there := [run for _, run, _ in cells(name, cast_for(profile, profile), 1)]:
                runs[profile] = {
                    key: list(dict.fromkeys(getattr(run, key[:-1]) for run in there))
                    for key in ("tasks", "methods")
                }
        shown = (
            page
            for page, own in results["studies"].items()
            if name in own and page.partition("_")[0] in CHAPTERS
        )
        pages = {page: results["titles"][page] for page in shown}
        if runs:
            found[name] = {"title": form(name, "quick")["title"], "pages": pages, "runs": runs}
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
