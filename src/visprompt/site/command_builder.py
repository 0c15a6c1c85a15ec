"""The command builder: what there is to choose from, as data for the script that writes the lines."""

import html
import json
from pathlib import Path

from ..studies.casting import cast_for
from ..studies.grids import cells, form, studies
from ..words import PLANS

CHAPTERS = ("davpt", "ivpt", "spt")  # papers whose chapters take tasks, methods and seeds


def choices(root: Path) -> dict:
    """Study -> {"title", profile: {"tasks", "methods"}}, of those that a profile has cells of."""
    found = {}
    for name in studies():
        entry = {"title": form(name, "quick")["title"]}
        for profile in PLANS:
            runs = [run for _, run, _ in cells(name, cast_for(profile, profile), 1)]
            if runs:
                entry[profile] = {
                    key: list(dict.fromkeys(getattr(run, key[:-1]) for run in runs)) for key in ("tasks", "methods")
                }
        if len(entry) > 1:
            found[name] = entry
    return found


def builder(results: dict, root: Path) -> str:
    """Where a reader chooses, as HTML; without scripts it is the line that does all of a study."""
    given = {
        "studies": choices(root),
        "papers": {name: results["titles"][name] for name in CHAPTERS if name in results["titles"]},
    }
    usual = html.escape("visprompt study benchmark --profile quick --seeds 0 --search")
    return f'<div class="vp-builder"><script type="application/json">{json.dumps(given)}</script><pre>$ {usual}</pre></div>'


MAKERS = {"command-builder": builder}
