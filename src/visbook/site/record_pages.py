"""The page of an artifact's records: its runs as a table that `records.js` draws from what the page
holds."""

import html
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from string import Template

from visprompt import papers, records
from visprompt.records import test_images
from visprompt.records.index import COMPARED, minor, other_versions

from ..pages import judging
from .rerun_box import length
from .tables import code, printed_name

MOST = 500  # numbers of one value that the page of a record shows
PAGE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Records of $name</title>
<link rel="stylesheet" href="../_static/records.css">
<script src="../_static/controls.js" defer></script>
<script src="../_static/records.js" defer></script>
</head>
<body>
<main>
<h1>Records of $name</h1>
$warning<p>$count behind the tables, figures and claims of <a href="$section">$title</a>, shown by
profile $profile at commit $commit.$took$others <noscript>Scripts are off, so they are here only in
the source of this page, as JSON.</noscript></p>
</main>
<script type="application/json" id="bundle">$bundle</script>
</body>
</html>
"""
)


def record_page(artifact: str, bundle: dict) -> str:
    """An artifact's records as a page of its own, with all that `bundle` says as JSON in it."""
    row, count = papers.artifact(artifact), len(bundle["records"])
    return PAGE.substitute(
        name=html.escape(f"{papers.papers()[row['paper']]['short']}, {printed_name(row)}"),
        title=html.escape(row["title"]),
        count=f"The {count} records"
        if count > 1
        else "The one record"
        if count
        else "No record is",
        section=html.escape(f"../notebooks/{bundle['notebook']}.html#{artifact}"),
        profile=html.escape(bundle["profile"]),
        commit=code(str(bundle["commit"])),
        took=html.escape(told_time(bundle["machines"])) if count else "",
        others=html.escape(told_versions(bundle.get("other_versions", {}), count)),
        warning=f"{judging.warning()}\n" if bundle["profile"] == "rehearsal" else "",
        bundle=json.dumps(said_once(bundle), separators=(",", ":")).replace("<", r"\u003c"),
    )


def said_once(bundle: dict) -> dict:
    """The bundle with what several records have, such as a recipe or a machine, in a list "shared":
    {"$shared": 3} stands in each for the fourth of it, and `records.js` puts it back."""
    records = json.loads(json.dumps(bundle["records"]))  # a copy to change
    places = [
        (where, name)
        for record in records
        if "kind" in record
        for where in (record, record["settings"])
        for name, value in where.items()
        if isinstance(value, dict) and name not in ("settings", "values")
    ]
    often = Counter(json.dumps(where[name]) for where, name in places)
    shared = [part for part, times in often.items() if times > 1 and len(part) > 20]
    for where, name in places:
        if (part := json.dumps(where[name])) in shared:
            where[name] = {"$shared": shared.index(part)}
    return bundle | {"records": records, "shared": [json.loads(part) for part in shared]}


def bundles(results: dict) -> Iterator[tuple[str, dict]]:
    """For each artifact that a notebook shows, everything behind it: see `bundle`.

    Raises:
        BadInput: as `records.find_records`, which goes through the records once for all artifacts.
    """
    shown = {id: entry for id, entry in results["artifacts"].items() if entry["notebook"]}
    parts = [show for entry in shown.values() for show in entry["shows"]] + [
        *results["claims"].values()
    ]
    found = records.find_records(id for part in parts for id in part["records"])
    held = {}  # a record stands in full in one file, and is named with that file in the others
    for artifact in shown:
        whole = bundle(artifact, results, found)
        whole["records"] = [
            record
            if held.setdefault(record["id"], artifact) == artifact
            else {"id": record["id"], "in": f"{held[record['id']]}.html", "brief": brief(record)}
            for record in whole["records"]
        ]
        yield artifact, whole


def brief(record: dict) -> list:
    """What a row of the table says of a record that stands in full in another file: kind, method,
    backbone, task, seed, test accuracy, seconds and hardware."""
    named = [record["settings"].get(name) for name in ("method", "backbone", "task", "seed")]
    test = record["values"].get("test") if record["kind"] == "tune" else None
    hardware = record["hardware"].get("gpu") or record["hardware"].get("cpu")
    return [record["kind"], *named, test, record["seconds"], hardware]


def bundle(artifact: str, results: dict, found: dict[str, records.Record]) -> dict:
    """What the paper shows of one artifact, what was shown, every record in full, claims."""
    entry = results["artifacts"][artifact]
    judged = {
        claim.id: {**asdict(claim), **results["claims"][claim.id]}
        for claim in papers.claims(artifact.split(".")[0])
        if claim.artifact == artifact
    }
    wanted = [id for part in (*entry["shows"], *judged.values()) for id in part["records"]]
    told = [told_of(found[id]) for id in dict.fromkeys(wanted)]
    return {
        "artifact": {"id": artifact, **papers.artifact(artifact).to_dict()},
        "profile": results["profile"],
        "commit": results["notebooks"][entry["notebook"]],
        "result": entry,
        "claims": judged,
        "notebook": entry["notebook"],
        "records": told,
        "machines": {
            name: sum(r["seconds"] for r in told if machine(r["hardware"]) == name)
            for name in dict.fromkeys(machine(record["hardware"]) for record in told)
        },
        "other_versions": Counter(
            record["other_versions"] for record in told if record["other_versions"]
        ),
    }


def seconds(notebook: str, bundles: dict[str, dict]) -> list[tuple[float, str]]:
    """What each record that a notebook shows took when it was made, and on which machine."""
    every = [record for found in bundles.values() for record in found["records"]]
    known = {
        record["id"]: (record["seconds"], machine(record["hardware"]))
        for record in every
        if "seconds" in record
    }
    mine = [found for found in bundles.values() if found["notebook"] == notebook]
    return [known[id] for id in {record["id"] for found in mine for record in found["records"]}]


def machine(hardware: dict) -> str:
    """A machine in words: its card, or its processor and how many threads computed."""
    threads = hardware.get("threads")
    often = f", {threads} thread{'s' if threads > 1 else ''}" if threads else ""
    return hardware.get("gpu") or f"{hardware.get('cpu') or 'a processor without a name'}{often}"


def told_of(record: records.Record) -> dict:
    """All that a record says but for its longest lists, whether it is by today's code, and of which
    other versions."""
    values = {
        name: counted(value) for name, value in record.values.items() if name != test_images.NAME
    }
    others, carried = other_versions(record.versions), record.carried
    told = {
        **asdict(record),
        "values": values,
        "current": records.is_current(record),
        "other_versions": others,
    }
    return told | {
        "carried": f"after {carried['sample']} at {carried['commit']}" if carried else ""
    }


def told_time(machines: dict[str, float]) -> str:
    """How long records took to make, machine -> seconds."""
    each = ", ".join(f"{length(seconds)} on {name}" for name, seconds in machines.items())
    return f" Making them took {each}."


def told_versions(found: dict[str, int], count: int) -> str:
    """How many of the records were made with other versions of torch, torchvision or timm than this
    site; "" where none.

    Args:
        found: the versions -> number of records.
    """
    here = ", ".join(f"{name} {minor(records.versions()[name])}" for name in COMPARED)
    made = ", ".join(f"{number} with {versions}" for versions, number in found.items())
    return f" Of {count}, {made}; this site was built with {here}." if found else ""


def counted(value):
    """A value, or how many numbers it holds where that is more than MOST: maps of attention weigh
    more than all else."""
    many = numbers(value)
    return (
        f"{many:,} numbers, which the record's file in book/records has" if many > MOST else value
    )


def numbers(value) -> int:
    """How many numbers nested lists hold."""
    return sum(map(numbers, value)) if isinstance(value, list) else 1
