"""A release: the same tree gives the same files, and what changed since the last one is said."""

import json
import os
import re
import shutil
import subprocess
from datetime import date

import pytest
import yaml
from sites import ROOT

from visbook.site import build, claims, edition, release, what_changed
from visprompt import papers
from visprompt.errors import BadInput

HEAD = "id,evidence,verdict,estimate,records\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A committed tree of a few files, with a website beside them."""
    monkeypatch.setattr(release, "wheels", lambda folder, root, when: None)
    root = tmp_path / "tree"
    site = root / "build" / "site" / "downloads"
    (root / "book" / "records").mkdir(parents=True)
    site.mkdir(parents=True)
    (site / "claims.csv").write_text(HEAD + "a,trend,open,1,[]\n")
    (root / "book" / "records" / "one.json").write_text("{}")
    (root / ".gitignore").write_text("build/\n")
    cite = "title: T\nabstract: A\nversion: 1\nlicense: MIT\nauthors: [{name: N}]\n"
    (root / "CITATION.cff").write_text(cite)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"]):
        who = ["-c", "user.name=N", "-c", "user.email=n@example.org"]
        subprocess.run(["git", *who, *words], cwd=root, check=True)
    return root


def test_two_releases_of_one_tree_are_equal(tree, tmp_path):
    files = release.made(tmp_path / "one", tree)
    for path in tree.rglob("*"):
        if ".git" not in path.parts:
            os.utime(path, (0, 0))
    release.made(tmp_path / "two", tree)
    assert release.compared(tmp_path / "one", tmp_path / "two") == []
    names = {path.name for path in files}
    assert {"source.tar.gz", "records.tar.gz", "site.tar.gz", "ro-crate-metadata.json"} < names
    (tree / "build" / "site" / "index.html").write_text("other")
    shutil.rmtree(tmp_path / "two")
    release.made(tmp_path / "two", tree)
    others = {release.SITE, release.SUMS, "ro-crate-metadata.json"}
    assert set(release.compared(tmp_path / "one", tmp_path / "two")) == others


def test_no_release_of_a_tree_that_is_not_clean(tree, tmp_path):
    (tree / "more.txt").write_text("x")
    with pytest.raises(BadInput, match="not clean"):
        release.made(tmp_path / "one", tree)
    assert not (tmp_path / "one").exists()


OLD = HEAD + "a,trend,open,1,[]\nb,trend,open,1,[]\nc,trend,open,1,[]\nold,trend,open,1,[]\n"
NEW = (
    HEAD
    + "a,replicated,agrees,2,[]\nb,trend,open,1,[]\nc,trend,open,1.5,[1]\nnew,trend,open,1,[]\n"
)


def test_what_changed_names_verdicts_estimates_and_reasons(tmp_path):
    before, now = tmp_path / "before.csv", tmp_path / "now.csv"
    before.write_text(OLD)
    now.write_text(NEW)
    text = release.what_changed(before, now)
    assert "1 of 4 claims have another verdict, and 1 more another estimate." in text
    assert "| `a` | open | agrees | evidence, estimate |" in text
    assert "| `c` | 1 | 1.50 | the runs, estimate |" in text
    assert "`new`" in text and "`old`" in text and "`b`" not in text
    with pytest.raises(BadInput, match="no claims.csv"):
        release.what_changed(tmp_path / "none.csv", now)


@pytest.fixture
def results():
    """What a book found that ran nothing."""
    nothing = {"verdict": "not run", "note": "", "images": "", "records": [], "notebook": None}
    nothing |= dict.fromkeys(("evidence", "estimate", "low", "high", "spread")) | {"parties": []}
    artifacts = dict.fromkeys(papers.artifacts().index, {"notebook": None})
    return {"claims": {one.id: nothing for one in papers.claims()}, "artifacts": artifacts}


def test_the_page_compares_with_the_newest_release_and_old_claims_keep_their_address(
    results, tmp_path
):
    assert "No earlier release" in what_changed.section(results, tmp_path)
    first = papers.claims()[0].id
    kept = tmp_path / "book" / "releases"
    kept.mkdir(parents=True)
    lines = {"0.9.0": f"{first},trend,open,1,[]\nspt.table-1.gone,trend,seen here,1,[]\n"}
    lines["0.10.0"] = f"{first},measured,agrees,1,[]\n"
    for version, rows in lines.items():
        (kept / f"{version}.csv").write_text(HEAD + rows)
    assert [*what_changed.older(tmp_path)] == ["0.9.0", "0.10.0"]
    page = build.make("what-changed", results, tmp_path)
    assert page.startswith("Since version 0.10.0: 1 of ") and "spt.table-1.gone" not in page
    assert f"| `{first}` | agrees | not run | evidence, estimate" in page
    assert page.index("claims-0.10.0.csv") < page.index("claims-0.9.0.csv")
    shown = claims.explorer(results, tmp_path)
    (row,) = [row for row in shown.split("<tr>") if 'id="spt.table-1.gone"' in row]
    assert "of version 0.9.0" in row and "then: seen here" in row
    assert shown.count(f'id="{first}"') == 1
    assert "spt.table-1.gone" not in claims.explorer(results, tmp_path, "ap")
    (kept / "last.csv").write_text(HEAD)
    with pytest.raises(BadInput, match="no version"):
        what_changed.older(tmp_path)


def faults(folder) -> list[str]:
    """What RO-Crate 1.1 requires and a folder with a crate lacks; its section is named."""
    graph = json.loads((folder / "ro-crate-metadata.json").read_text())
    known = {entity["@id"]: entity for entity in graph["@graph"]}
    found = []

    def needs(what, holds):
        found.extend([] if holds else [what])

    needs("4.1: context", graph["@context"] == "https://w3id.org/ro/crate/1.1/context")
    needs("3.1: one entity of an id", len(known) == len(graph["@graph"]))
    about = known.get("ro-crate-metadata.json", {})
    needs("4.1: descriptor", about.get("@type") == "CreativeWork")
    version = "https://w3id.org/ro/crate/1.1"
    needs("4.1: version", about.get("conformsTo") == {"@id": version})
    whole = known.get(about.get("about", {}).get("@id"), {})
    needs("4.2: root", whole.get("@id") == "./" and whole.get("@type") == "Dataset")
    needed = ("name", "description", "license", "datePublished")
    needs("4.2.1: root's properties", all(whole.get(name) for name in needed))
    try:
        date.fromisoformat(whole.get("datePublished", ""))
    except ValueError:
        found.append("4.2.1: date")
    parts = {part["@id"] for part in whole.get("hasPart", ())}
    files = {id for id, entity in known.items() if entity.get("@type") == "File"}
    needs("5.1: every file is a part", files == parts)
    for id in files:
        there = folder / id
        needs("5.1: file is there", there.is_file())
        size = str(there.stat().st_size) if there.is_file() else ""
        needs("5.2: size", known[id].get("contentSize") == size)
        needs("5.2: form", re.fullmatch(r"\w+/[\w.+-]+", known[id].get("encodingFormat", "")))
    values = [value for entity in known.values() for value in entity.values()]
    links = [link for value in values for link in (value if isinstance(value, list) else [value])]
    ids = {link["@id"] for link in links if isinstance(link, dict)} - {version}
    needs("3.1: what is named is described", ids <= known.keys())
    people = [entity for entity in known.values() if entity.get("@type") == "Organization"]
    needs("6.2: authors have names", people and all(one.get("name") for one in people))
    return found


def test_the_crate_has_what_its_rules_ask_for(tree, tmp_path):
    release.made(tmp_path / "one", tree)
    assert faults(tmp_path / "one") == []
    path = tmp_path / "one" / "ro-crate-metadata.json"
    good = path.read_text()
    for wrong, right, fault in (
        ("conformsTo", "conforms", "4.1: version"),
        ('"name": "T"', '"title": "T"', "4.2.1: root's properties"),
        ("claims.csv", "others.csv", "5.1: file is there"),
        ("application/gzip", "gzip", "5.2: form"),
    ):
        path.write_text(good.replace(wrong, right))
        assert fault in faults(path.parent)
    path.write_text(good.replace('"@id": "#author-0",', '"@id": "#author-1",'))
    assert faults(path.parent) == ["3.1: what is named is described"]


def test_a_doi_has_its_place(tree, tmp_path):
    release.made(tmp_path / "one", tree)
    assert "doi" not in edition.citation({}, tree)
    assert '"url"' not in (tmp_path / "one" / "ro-crate-metadata.json").read_text()
    config = "repository: {url: 'https://example.org/book/'}\n"
    (tree / "_config.yml").write_text(config)
    path = tree / "CITATION.cff"
    path.write_text(path.read_text() + "doi: 10.1234/x\n")
    who = ["-c", "user.name=N", "-c", "user.email=n@example.org"]
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "A DOI"], cwd=tree, check=True)
    release.made(tmp_path / "two", tree)
    text = (tmp_path / "two" / "ro-crate-metadata.json").read_text()
    assert '"identifier": "https://doi.org/10.1234/x"' in text
    assert '"url": "https://example.org/book"' in text
    assert "doi = {10.1234/x}" in edition.citation({}, tree)
    assert "\n# doi: " in (ROOT / "CITATION.cff").read_text()  # until there is one
    told = edition.footer(ROOT)
    assert f"Version {edition.given(ROOT)['version']}" in told and "commit" in told


def test_forms_and_workflow_can_be_read():
    forms = [*(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    for path in forms:
        form = yaml.safe_load(path.read_text())
        if path.stem != "config":
            assert form["name"] and form["description"]
            kinds = {"input", "textarea", "dropdown", "checkboxes", "markdown"}
            assert {part["type"] for part in form["body"]} <= kinds
            ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
            assert len(ids) == len({*ids}) > 0
    assert len(forms) == 5
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text())
    runs = [step.get("run", "") for job in flow["jobs"].values() for step in job["steps"]]
    targets = {word for run in runs for word in run.split()[1:2]}
    named = (ROOT / "Makefile").read_text()
    assert targets == {"book", "test", "release"} and all(f"\n{t}: " in named for t in targets)
