"""What the website asks of Sphinx: anchors spelled as in artifacts.csv, and docstrings in plain
prose."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

CODE = re.compile(r"(``.+?``|`[^`\n]+`)")
# What reStructuredText would read as markup; a star and a blank at the start of a line begin a list
# item.
MARKUP = re.compile(r"(?!^\s*\* )[*|]|(?<=\w)_(?!\w)")


class ExactAnchors(SphinxTransform):
    """Give a section labelled `(ap.table-1)=` that very id, and the cell of that name
    `cell-ap.table-1`.

    Docutils would write `ap-table-1`, which is not the name that the paper's list of artifacts
    uses.
    """

    default_priority = 700  # after docutils has handed the labels on to the sections (260)

    def apply(self) -> None:
        for section in self.document.findall(nodes.section):
            for name in section["names"]:
                if "." in name and " " not in name and name not in section["ids"]:
                    section["ids"].insert(0, name)
        seen = set()
        for cell in self.document.findall(nodes.container):
            name = (cell.get("cell_metadata") or {}).get("name")
            if name and cell.get("nb_element") == "cell_code" and name not in seen:
                seen.add(name)
                cell["ids"].append(f"cell-{name}")


def plain_docstring(app, what, name, obj, options, lines) -> None:
    """Let docstrings be plain prose: `code` is code, and `*`, `|` and `name_` mean themselves."""
    for position, line in enumerate(lines):
        parts = CODE.split(line)
        for index, part in enumerate(parts):
            if index % 2:  # an escaped blank lets a letter follow, as in `Record`s
                parts[index] = f"``{part.strip('`')}``" + (
                    "\\ " if parts[index + 1][:1].isalnum() else ""
                )
            else:
                parts[index] = MARKUP.sub(r"\\\g<0>", part)
        lines[position] = "".join(parts)


def load_mathjax(app, pagename, templatename, context, doctree) -> None:
    """Have MathJax on a page whose only mathematics stands in HTML of ours; Sphinx sees none
    there."""
    if re.search('class="(math |vp-math")', context.get("body", "")):
        app.env.get_domain("math").data["has_equations"][pagename] = True


def setup(app: Sphinx) -> dict:
    """Register all of it with Sphinx."""
    app.connect("html-page-context", load_mathjax, priority=100)  # before MathJax looks
    app.add_transform(ExactAnchors)
    # before napoleon adds its markup
    app.connect("autodoc-process-docstring", plain_docstring, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
