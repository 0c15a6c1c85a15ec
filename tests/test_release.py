"""A release: the same tree gives the same files, and what changed since the last one is said."""

import os
import shutil
import subprocess

import pytest
import yaml
from sites import ROOT

from visbook.site import release
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


def test_what_changed_names_verdicts_and_reasons(tmp_path):
    before, now = tmp_path / "before.csv", tmp_path / "now.csv"
    before.write_text(HEAD + "a,trend,open,1,[]\nb,trend,open,1,[]\nold,trend,open,1,[]\n")
    now.write_text(HEAD + "a,replicated,agrees,2,[]\nb,trend,open,1,[]\nnew,trend,open,1,[]\n")
    text = release.what_changed(before, now)
    assert "1 of 3 claims" in text and "| `a` | open | agrees | evidence, estimate |" in text
    assert "`new`" in text and "`old`" in text and "`b`" not in text
    with pytest.raises(BadInput, match="no claims.csv"):
        release.what_changed(tmp_path / "none.csv", now)


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
