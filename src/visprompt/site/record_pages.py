"""The page of an artifact's records: its runs as a table that `records.js` draws from what the page holds."""

import html
import json
from string import Template

from .. import papers
from .tables import code, printed_name

PAGE = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Records of $name</title>
<link rel="stylesheet" href="../_static/records.css">
<script src="../_static/records.js" defer></script>
</head>
<body>
<main>
<h1>Records of $name</h1>
<p>$count behind the tables, figures and claims of <a href="$section">$title</a>, made by profile $profile at commit
$commit. <noscript>Scripts are off, so they are here only in the source of this page, as JSON.</noscript></p>
</main>
<script type="application/json" id="bundle">$bundle</script>
</body>
</html>
"""
)


def record_page(artifact: str, bundle: dict) -> str:
    """An artifact's records as a page of its own, with all that `tables.bundle` says as JSON in it."""
    row, count = papers.artifact(artifact), len(bundle["records"])
    return PAGE.substitute(
        name=html.escape(f"{papers.papers()[row['paper']]['short']}, {printed_name(row)}"),
        title=html.escape(row["title"]),
        count=f"The {count} records" if count > 1 else "The one record" if count else "No record is",
        section=html.escape(f"../notebooks/{bundle['notebook']}.html#{artifact}"),
        profile=html.escape(bundle["profile"]),
        commit=code(str(bundle["commit"])),
        bundle=json.dumps(bundle, separators=(",", ":")).replace("<", r"\u003c"),
    )
