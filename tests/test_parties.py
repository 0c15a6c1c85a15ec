"""Who came to a verdict, and what authors reply to it, beside the claim."""

import pytest
import yaml

from visbook.pages import page
from visbook.sharing import others
from visbook.site import claims, parties
from visprompt import papers, paths
from visprompt.errors import BadInput
from visprompt.records import Record
from visprompt.training.recipe import Recipe

CLAIM = "spt.table-1.max-over-mean"
NOTHING = {"estimate": 1.0, "low": 0.5, "high": 1.5, "images": "", "note": "", "notebook": None}


def run(id, seed, test, precision="float32"):
    """A run of training, as far as these tests look at it."""
    recipe = vars(Recipe(precision=precision))
    settings = {"method": "vpt-deep", "task": "t", "backbone": "b", "seed": seed, "recipe": recipe}
    hardware = {"gpu": "", "cpu": "C", "threads": 1}
    return Record(id, id, "tune", settings, "d", "w", "c", {"test": test}, hardware=hardware)


OURS = {record.id: record for record in (run("a", 0, 70.0), run("b", 1, 71.0))}


def sent(name, *found, equal=()):
    """An accepted submission."""
    return others.Accepted(None, {"name": name}, "2026-11-27", [], list(equal), list(found))


def entry(evidence="replicated", records=("a", "b")):
    return {**NOTHING, "evidence": evidence, "verdict": "agrees", "records": [*records]}


@pytest.fixture
def noted(monkeypatch):
    """What is noted with a claim where these submissions were accepted."""

    def made(*accepted, **kind):
        monkeypatch.setattr(others, "accepted", lambda: [*accepted])
        monkeypatch.setattr(parties.records, "find_records", lambda ids: {i: OURS[i] for i in ids})
        found = {CLAIM: entry(**kind)}
        parties.noted(found)
        return found[CLAIM]

    return made


def test_a_claim_says_on_how_many_parties_it_rests(noted):
    assert parties.told(noted()) == "Replicated by us alone."
    assert parties.told(noted(evidence="derived")) == "Computed by us alone."
    assert parties.told(noted(evidence=None)) == ""
    both = sent("A. Sender", run("x", 0, 70.5, "bf16"), run("y", 1, 71.25))
    told = parties.told(noted(both))
    assert told.startswith("Replicated by 2 independent parties: us, A. Sender. ")
    assert "2 of its 2 runs; the values of one run lie up to 0.50 points apart" in told
    half = parties.told(noted(sent("A. Sender", run("x", 0, 70.5))))
    assert half.startswith("Replicated by us alone. Others also sent 1 of its 2 runs")
    copied = noted(sent("A. Sender", run("x", 0, 70.0), run("y", 1, 71.0), equal=["x"]))
    assert copied["parties"] == ["us"]


def test_replicated_says_by_whom(noted):
    both = sent("<A>", run("x", 0, 70.5), run("y", 1, 71.5))
    assert claims.by_whom(noted(both)).endswith(" by us, &lt;A&gt;")
    assert "by" not in claims.by_whom(noted(evidence="trend")).removesuffix("</span>")
    shown = page.figure_html("<p></p>", "C", "replicated", "How.", "", None)
    assert "replicated</span> by us" in shown
    assert "by us" not in page.figure_html("<p></p>", "C", "trend", "How.", "", None)


def test_parties_stand_below_a_claim_that_unfolds(noted):
    found = noted()
    row = papers.claim(CLAIM)
    shown = claims.folded(row, found, {"artifacts": {row.artifact: {"notebook": None}}}, "")
    assert "Replicated by us alone." in shown and "reply" not in shown.lower()


@pytest.fixture
def replied(tmp_path, monkeypatch):
    """A copy of what the papers print, with a file of replies to fill."""
    (tmp_path / "papers").symlink_to(paths.MANIFESTS / "papers")
    (tmp_path / "artifacts.csv").symlink_to(paths.MANIFESTS / "artifacts.csv")
    monkeypatch.setattr(paths, "MANIFESTS", tmp_path)
    return tmp_path / "replies.yaml"


def test_a_reply_stands_beside_its_claim(replied, noted):
    reply = {"from": "A <i>name</i>", "date": "2026-12-31", "text": "Not $x^2$, but <b>y</b>."}
    replied.write_text(yaml.safe_dump({CLAIM: [reply]}))
    claim, found = papers.claim(CLAIM), noted()
    shown = claims.folded(claim, found, {"artifacts": {claim.artifact: {"notebook": None}}}, "")
    summary, details = shown.split("</summary>")
    assert "author's reply" in summary
    assert "Reply of A &lt;i&gt;name&lt;/i&gt;, 2026-12-31:" in details
    assert "\\(x^2\\)" in details and "&lt;b&gt;y&lt;/b&gt;" in details


@pytest.mark.parametrize(
    "content, why",
    [
        ({"spt.table-1.max-over-meen": [{"from": "N", "date": "2026-12-31", "text": "T"}]}, "mean"),
        ({CLAIM: [{"from": "N", "date": "yesterday", "text": "T"}]}, "date"),
        ({CLAIM: [{"from": "N", "date": "2026-12-31"}]}, "text"),
        ({CLAIM: [{"from": "N", "date": "2026-12-31", "text": "T", "link": "js:x"}]}, "link"),
    ],
)
def test_a_reply_that_cannot_be_shown_is_refused(replied, content, why):
    replied.write_text(yaml.safe_dump(content))
    with pytest.raises(BadInput, match=why) as error:
        claims.replies.given()
    assert "\n" not in str(error.value) and "replies.yaml, line" in str(error.value)


def test_no_reply_is_invented():
    assert claims.replies.given() == {}
