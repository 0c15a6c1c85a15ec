"""A page that remembers what it showed."""

import base64
import html
import io
import re
from collections.abc import Sequence

import pandas as pd
from IPython.display import HTML, display
from matplotlib.figure import Figure

from visprompt import manifests, papers, paths
from visprompt import records as run_records
from visprompt.errors import BadInput, choose
from visprompt.records.index import COMPARED
from visprompt.words import EVIDENCE, NOT_RUN

from ..studies import plan
from ..studies.statistics import Cell
from . import judging
from .friendly import named
from .parameters import Parameters


class Page:
    """One notebook's page: what it shows, what it cannot, and how the claims came out."""

    def __init__(self, name: str, settings: Parameters):
        self.name, self.settings, self.profile = name, settings, settings.profile
        self.notebooks = manifests.load_yaml(paths.MANIFESTS / "notebooks.yaml")
        choose("notebook", name, self.notebooks)
        self.artifacts = {
            id: {"shows": [], "not_run": None} for id in self.notebooks[name]["artifacts"]
        }
        self.paper = papers.paper_of(self.artifacts)  # "" of a page on none, or on several
        self.claims = {}
        self.studies: list[str] = []  # those whose runs it shows; a chapter says which

    def show(self, artifact, thing, *, evidence, how, records=(), caption, alt=None) -> None:
        """Display a figure or a table with its evidence, its record and its source cell.

        Args:
            artifact: id such as "ap.table-1", one of this notebook's.
            thing: a matplotlib `Figure` (closed afterwards); {label: `Figure`}, a slider with a
                picture for every label; or a `pandas.DataFrame` formatted for reading.
            evidence: one of `EVIDENCE`.
            how: one sentence: how the numbers came about.
            records: the `Record`s behind it.
            alt: for figures: what there is to see, in a sentence.

        Raises:
            BadInput: unknown artifact or evidence, a figure without `alt`, or a table's mean over
                runs that `records` lacks.
        """
        choose("artifact of this notebook", artifact, self.artifacts)
        how = with_age(how, records)
        leads = isinstance(thing, pd.DataFrame) and any(
            isinstance(cell, Cell) for cell in thing.to_numpy().flat
        )
        thing = linked(thing, artifact, records) if leads else thing
        links = (
            f'<a href="../records/{artifact}.html">record</a> · <a '
            f'href="#cell-{artifact}">source cell</a>'
        )
        display(HTML(figure_html(thing, caption, evidence, how, links, alt, escape=not leads)))
        self.artifacts[artifact]["shows"].append(
            {
                "evidence": evidence,
                "how": how,
                "caption": caption,
                "cell": artifact,
                "records": ids(records),
            }
        )

    def present(
        self, thing, *, evidence, how, records=(), caption, alt=None, cell="", escape=True
    ) -> None:
        """Display what belongs to no artifact of a paper, with its evidence; the arguments are
        those of `show`.

        Args:
            thing: or ready HTML, which is shown as it is.
            cell: name of the cell that makes it, for a link.
            escape: False lets HTML in a table's cells through.
        """
        links = f'<a href="#cell-{cell}">source cell</a>' if cell else ""
        if records:
            named = ", ".join(f"<code>{html.escape(id)}</code>" for id in ids(records))
            named += with_sample(records)
            links += f" <details><summary>records</summary>{named}</details>"
        display(
            HTML(figure_html(thing, caption, evidence, with_age(how, records), links, alt, escape))
        )

    def printed(self, artifact: str, caption: str) -> None:
        """Display a table as the paper prints it, for comparison; it is nobody's evidence."""
        table = papers.published(artifact)
        doubts = [f"row {row + 1}: {doubt}" for row, doubt in enumerate(table["doubt"]) if doubt]
        table = table.drop(columns="doubt").set_axis(range(1, len(table) + 1))
        body = boxed(table.to_html(border=0, escape=True))
        note = f" Doubtful in the text: {'; '.join(dict.fromkeys(doubts))}." if doubts else ""
        display(
            HTML(
                f'<div class="vp-printed"><details><summary>{html.escape(caption)}</summary>{body}'
                f"<p>{html.escape(note)}</p></details></div>"
            )
        )

    def not_run(self, artifact: str, *, why: str, command: str = "") -> None:
        """Say that an artifact, or the part of it named in `why`, has not been run, and what would
        run it.

        Args:
            command: for a part that the plan does not know; else it is the plan's.
        """
        choose("artifact of this notebook", artifact, self.artifacts)
        command = command or plan.command(artifact)
        self.artifacts[artifact]["not_run"] = {"command": command, "why": why}
        display(
            HTML(
                f'<div class="vp-notrun">{judging.badge(NOT_RUN)} {html.escape(why)} '
                f"This would run it:<pre>{html.escape(command)}</pre></div>"
            )
        )

    def judge(
        self, claim_id, estimate, low=None, high=None, *, evidence, records=(), note="", alike=None
    ) -> None:
        """Hold a measured interval against a claim, display what follows and remember it.

        A trend says `seen here` or `not seen here`, and of which images; other evidence `agrees` or
        `disagrees`. Not judged is what one task would have to say of several data sets, what
        another claim was judged by, and what only the paper's own runs could settle where these are
        fewer.

        Args:
            alike: see `judging.verdict`.

        Raises:
            BadInput: unknown claim or evidence, evidence that the claim does not accept, or a trend
                without records.
        """
        claim = papers.claim(claim_id)
        choose("evidence", evidence, EVIDENCE)
        if evidence == "trend" and "replicated" in claim.settles and "trend" not in claim.settles:
            return self.not_judged(
                claim_id, "only the paper's whole list of runs can settle it, and these are a part"
            )
        choose(f"evidence for {claim_id}", evidence, claim.settles)
        found = judging.judged(claim, estimate, low, high, evidence, records, note, alike)
        for earlier, other in self.claims.items():
            if judging.same_measurement(claim, found, papers.claim(earlier), other):
                found = judging.repeated(earlier, found)
        self.claims[claim_id] = found
        display(HTML(judging.claim_html(claim, found)))

    def judge_count(self, claim_id: str, count, *, records=(), note: str = "") -> None:
        """Hold a row of `measure.counts.printed_counts` against a claim; not judged where its
        settings had to be fitted."""
        if pd.isna(count.agrees):
            self.not_judged(
                claim_id,
                f"the paper does not state this setting, so it was fitted: {count.reading}",
            )
        else:
            self.judge(
                claim_id,
                count.computed,
                evidence="derived",
                records=records,
                note=note or judging.sentence(f"Built as {count.reading}"),
            )

    def not_judged(self, claim_id: str, why: str) -> None:
        """Say that what was run cannot test a claim, and why."""
        claim = papers.claim(claim_id)
        self.claims[claim_id] = judging.unjudged(judging.sentence(why))
        display(HTML(judging.claim_html(claim, self.claims[claim_id])))

    def checked(self, what: str, value: float, at_most: float = 0) -> None:
        """Say that the code does what a drawing of the paper shows; that is no verdict on the
        paper.

        Raises:
            BadInput: it does not.
        """
        if not value <= at_most:
            raise BadInput(
                f"{what}: {value:g}; at most {at_most:g} is right, so the code does not do "
                f"what the page says."
            )
        display(
            HTML(
                f'<p class="vp-checked">Checked in the code: {html.escape(what)}: {value:.2g}.</p>'
            )
        )

    def close(self) -> None:
        """End the page: every artifact must have been shown or be `not run`; keep the results in
        the notebook.

        Raises:
            BadInput: an artifact of this notebook was forgotten.
        """
        forgotten = [
            id
            for id, entry in self.artifacts.items()
            if not entry["shows"] and not entry["not_run"]
        ]
        if forgotten:
            raise BadInput(
                f"no figure, table or not_run for {', '.join(forgotten)}. Add one in "
                f"notebooks/{self.name}.py."
            )
        results = {
            "notebook": self.name,
            "profile": self.profile,
            "commit": run_records.commit(),
            "artifacts": self.artifacts,
            "claims": self.claims,
            "studies": self.studies,
        }
        display({judging.RESULTS_MIME: results, "text/plain": f"results of {self.name}"}, raw=True)


def with_age(how: str, records: Sequence[run_records.Record]) -> str:
    """How numbers came about, and how many of their records other code or other versions of torch,
    torchvision or timm made.

    The page on rerunning says what older code means.
    """
    records = list({record.id: record for record in records}.values())
    old = sum(not run_records.is_current(record) for record in records)
    if old:
        how = f"{how} {some_of(old, len(records))} made by older code."
    others, made = [], set()
    for name in [name for name in COMPARED if name in run_records.versions()]:
        installed = public(run_records.versions()[name])
        found = {record.id: public(record.versions.get(name, installed)) for record in records}
        found = {id: version for id, version in found.items() if version != installed}
        if found:
            others.append(f"{name} {' or '.join(sorted({*found.values()}))} (here: {installed})")
            made |= found.keys()
    if others:
        how = f"{how} {some_of(len(made), len(records))} made with {' and '.join(others)}."
    return how


def some_of(some: int, all: int) -> str:
    """How many of all records something is said of, with the verb."""
    if some == all:
        return "The record was" if all == 1 else f"All {all} records were"
    return f"{some} of {all} records {'was' if some == 1 else 'were'}"


def with_sample(records: Sequence[run_records.Record]) -> str:
    """Below a list of records: how many were carried to newer code, after which sample; "" if none.
    Of what belongs to an artifact, the page of each record says it."""
    carried = [record.carried for record in {record.id: record for record in records}.values()]
    carried = [part for part in carried if part]
    samples = sorted({f"{part['sample']} at commit {part['commit']}" for part in carried})
    told = f"; {len(carried)} carried to newer code (sample run again: {' and '.join(samples)})"
    return told if carried else ""


def public(version: str) -> str:
    """A version without its build: 2.9.0 of 2.9.0+cpu."""
    return version.split("+")[0]


def boxed(table: str) -> str:
    """A table's HTML in a box that scrolls sideways, by keyboard too; long texts get a wide
    column."""
    table = re.sub(r"<td>(?=[^<]{61})", '<td class="vp-wide">', table)
    return f'<div class="vp-table" tabindex="0">{table}</div>'


def figure_html(thing, caption, evidence, how, links, alt, escape=True) -> str:
    """A figure, a table or ready HTML with caption, evidence and links.

    Raises:
        BadInput: unknown evidence, or a figure without `alt`.
    """
    choose("evidence", evidence, EVIDENCE)
    if isinstance(thing, (Figure, dict)):
        if not alt:
            raise BadInput(
                f"{caption!r}: a figure needs alt=, one sentence that says what is to be seen."
            )
        alt = named(alt)  # it is no text of the page, in which the site does it
        if isinstance(thing, dict):
            body = slider_html(thing, caption, alt)
        else:
            body = image(thing, alt)
    elif isinstance(thing, str):
        body = thing
    else:
        index = not isinstance(thing.index, pd.RangeIndex)
        body = boxed(thing.to_html(border=0, escape=escape, index=index))
    by = " by us" if evidence == "replicated" else ""  # a page shows no other's runs
    return (
        f'<figure class="vp-figure">{body}<figcaption>{html.escape(caption)} '
        f'{judging.badge(evidence)}{by} <span class="vp-how">{html.escape(how)}</span> '
        f"{links}</figcaption></figure>"
    )


def linked(
    table: pd.DataFrame, artifact: str, records: Sequence[run_records.Record]
) -> pd.DataFrame:
    """A table as HTML, in which every mean leads to its runs on the page of the artifact's records.

    Raises:
        BadInput: a mean is over runs that are not among the records.
    """
    known = {*ids(records)}

    def shown(cell):
        runs = ids(getattr(cell, "records", ()))
        if not known.issuperset(runs):
            raise BadInput(
                f"{artifact}: a table's {cell!r} is over runs that records= lacks; give it "
                f"all that are shown."
            )
        text = escaped(cell)
        return (
            f'<a href="../records/{artifact}.html?runs={",".join(runs)}">{text}</a>'
            if runs
            else text
        )

    table = table.map(shown).rename(columns=escaped)
    # numbers are not shown
    return table if isinstance(table.index, pd.RangeIndex) else table.rename(index=escaped)


def escaped(thing):
    """A text as HTML; what is none as it is."""
    return html.escape(thing) if isinstance(thing, str) else thing


def slider_html(pictures: dict[str, Figure], caption: str, alt: str) -> str:
    """One picture for every stop of a slider; without a script the middle one stands alone. See
    site.js.

    Raises:
        BadInput: fewer than two pictures.
    """
    if len(pictures) < 2:
        raise BadInput(
            f"{caption!r}: a slider needs two pictures or more, as {{label: Figure}}; show "
            f"one as it is."
        )
    middle = (len(pictures) - 1) // 2
    images = "".join(
        image(
            picture,
            f"{label}: {alt}",
            f' data-label="{html.escape(label)}"{"" if number == middle else " hidden"}',
        )
        for number, (label, picture) in enumerate(pictures.items())
    )
    return (
        f'<div class="vp-slices"><label hidden><input type="range" min="0" '
        f'max="{len(pictures) - 1}" step="1" '
        f'value="{middle}" autocomplete="off" aria-label="Slider: {html.escape(caption)}"> '
        f"<output></output></label>"
        f"{images}</div>"
    )


def ids(records) -> list[str]:
    """The ids of some records, each once, in order."""
    return list(dict.fromkeys(record.id for record in records))


def image(figure: Figure, alt: str, more: str = "") -> str:
    """A figure as an <img> that holds its picture, so that a page needs no second file; closes the
    figure. Plots without pictures in them have a class, by which a dark page inverts them."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import QuadMesh
    from matplotlib.image import AxesImage, BboxImage

    pictures = any(figure.findobj(kind) for kind in (AxesImage, BboxImage, QuadMesh))
    kind = "vp-picture" if pictures else "vp-plot"
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight")
    plt.close(figure)
    return (
        f'<img class="{kind}" alt="{html.escape(alt)}"{more} '
        f'src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
    )
