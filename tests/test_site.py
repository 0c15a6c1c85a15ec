"""The website, opened from its folder in a headless Chromium: nothing leaves the page, nothing is
broken.

A small site is built here with the same program, pages and settings as the real one, from one
notebook that runs in seconds; the real site is examined too when `make book` has built one.
"""

import csv
import json
import re
import shutil
import types
import zipfile
from collections import Counter, defaultdict
from urllib.parse import urldefrag, urlsplit

import nbformat
import pytest
import yaml
from sites import ROOT, bundle_of, call, document, pages

from visbook.auditing.sentences import read_sentences
from visbook.site import build, front, manifest_pages, record_pages
from visbook.site import claims as site_claims
from visbook.site.lighten import lighten
from visprompt import manifests, papers
from visprompt.errors import BadInput
from visprompt.words import ALIKE, SIGHTINGS, VERDICTS


def test_every_page_on_a_phone_needs_nothing_from_outside(site, browser):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    tab = context.new_page()
    tab.set_default_timeout(120_000)  # a busy machine is no failure
    heard, where = [], [""]
    tab.on(
        "request",
        lambda request: (
            urlsplit(request.url).scheme in ("file", "data", "blob")
            or heard.append(f"{where[0]} asks for {request.url}")
        ),
    )
    tab.on(
        "requestfailed", lambda request: heard.append(f"{where[0]} could not load {request.url}")
    )
    tab.on("pageerror", lambda error: heard.append(f"{where[0]}: {error}"))
    tab.on(
        "console",
        lambda message: message.type == "error" and heard.append(f"{where[0]}: {message.text}"),
    )
    mathematics = 0
    for page in pages(site):
        where[0] = str(page.relative_to(site))
        tab.goto(page.as_uri(), wait_until="load")
        formulas = tab.locator(".math").count()
        if formulas:
            tab.wait_for_function(
                "document.querySelectorAll('mjx-container svg').length >= "
                "document.querySelectorAll('.bd-article .math').length"
            )
            mathematics += formulas
        width = tab.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            heard.append(f"{where[0]} is {width} px wide on a phone of 390")
        unnamed = tab.evaluate("[...document.images].filter((i) => !(i.alt || '').trim()).length")
        if unnamed:
            heard.append(f"{where[0]} has {unnamed} images without alt text")
        broken = tab.evaluate("[...document.images].filter((i) => !i.naturalWidth).length")
        if broken:
            heard.append(f"{where[0]} has {broken} images that do not show")
    context.close()
    assert not heard
    assert mathematics, "no page had a formula, so nothing was learnt about formulas"


def test_search_finds_a_word_without_a_server(site, browser):
    tab = browser.new_page()
    tab.goto((site / "search.html").as_uri() + "?q=inconclusive")
    tab.wait_for_selector("#search-results li a", timeout=20_000)
    assert "glossary.html" in " ".join(
        link.get_attribute("href") for link in tab.locator("#search-results li a").all()
    )
    tab.close()


def test_filter_leaves_the_rows_with_the_words(site, browser):
    tab = browser.new_page()
    tab.goto((site / "status.html").as_uri())
    whole = tab.locator(".vp-filterable tbody tr:visible").count()
    assert whole == len(papers.artifacts())
    tab.fill(".vp-filter input", "ap lemma-2")
    assert tab.locator(".vp-filterable tbody tr:visible").count() == 1
    tab.close()


def test_lists_beside_the_filter_pick_rows(site, browser):
    tab = browser.new_page()
    tab.goto((site / "status.html").as_uri())
    tab.select_option('select[aria-label="Paper"]', "SPT")
    assert tab.locator(".vp-filterable tbody tr:visible").count() == len(papers.artifacts("spt"))
    # the first is all
    every = tab.locator('select[aria-label="Evidence"] option').all_inner_texts()[1:]
    assert every
    for evidence in every:
        tab.select_option('select[aria-label="Evidence"]', label=evidence)
        shown = tab.locator(".vp-filterable tbody tr:visible")
        badges = tab.locator(f".vp-filterable tbody tr:visible .vp-{evidence.replace(' ', '-')}")
        assert badges.count() >= shown.count()
    tab.close()


def test_a_head_sorts_its_column_by_value(site, browser):
    tab = browser.new_page()
    tab.goto((site / "numbers-ap.html").as_uri())
    table = tab.locator("section#tables .vp-sortable table").nth(1)  # Table 2
    head = table.locator("thead th").filter(has_text="memory")
    column = tab.evaluate("(head) => head.cellIndex", head.element_handle())
    cells = table.locator(f"tbody tr td:nth-child({column + 1})")
    for direction in (1, -1):
        head.locator("button").click()
        shown = [float(text.rstrip("✗?")) for text in cells.all_inner_texts()]
        assert len(shown) == 10 and shown == sorted(shown, reverse=direction < 0)
    assert head.get_attribute("aria-sort") == "descending"
    tab.close()


def test_a_marked_cell_leads_to_its_finding(site, browser):
    tab = browser.new_page()
    tab.goto((site / "numbers-ap.html").as_uri())
    tab.fill(".vp-filter input >> nth=0", "no such finding")  # the row is filtered away
    tab.locator("section#tables .vp-audit-disagrees").first.click()
    name = urldefrag(tab.url)[1]
    tab.wait_for_function(
        "(name) => document.getElementById(name).closest('tr').offsetParent", arg=name
    )
    tab.close()


def test_everything_can_be_downloaded(site):
    folder = site / "downloads"
    artifacts, claims, cells = (
        manifests.read_table(folder / f"{name}.csv") for name in ("artifacts", "claims", "cells")
    )
    assert set(artifacts["id"]) == set(papers.artifacts().index)
    assert set(claims["id"]) == {claim.id for claim in papers.claims()}
    printed = list(
        cells["printed"][(cells["artifact"] == "ap.table-1") & (cells["row"] == "ResNet-101 AP")]
    )
    assert printed[:2] == ["ResNet-101", "AP"] and "69.42" in printed
    with zipfile.ZipFile(folder / "everything.zip") as whole:
        names = {*whole.namelist()} - {"sentences.csv"}
        for name in names:
            assert whole.read(name) == (folder / name).read_bytes()
        assert names == {path.name for path in folder.glob("*.csv")}
        rows = list(csv.DictReader(whole.read("sentences.csv").decode().splitlines()))
    assert {row["paper"] for row in rows} == {*papers.papers()}
    assert len(rows) == sum(len(read_sentences(paper)) for paper in papers.papers())
    for path in folder.glob("*.ipynb"):
        nbformat.validate(notebook := nbformat.read(path, as_version=4))
        assert not any(cell.get("outputs") for cell in notebook.cells)  # its page shows them


def test_source_link_unfolds_its_cell(small, browser):
    tab = browser.new_page()
    tab.goto((small / "build" / "site" / "notebooks" / "ap_theory.html").as_uri())
    code = tab.locator('[id="cell-ap.lemma-1"] .cell_input pre').first
    assert not code.is_visible()
    tab.click("text=source cell >> nth=0")
    code.wait_for(state="visible", timeout=5_000)
    tab.close()


def test_a_slider_changes_its_picture_by_keyboard(small, browser):
    tab = browser.new_page()
    tab.goto((small / "build" / "site" / "notebooks" / "ap_theory.html").as_uri())
    slider, pictures = (
        tab.get_by_role("slider", name="Slider: Lines"),
        tab.locator(".vp-slices img:visible"),
    )
    seen = []
    for key in ("Tab", "ArrowRight", "Home"):
        slider.press(key)
        assert pictures.count() == 1
        seen.append(pictures.get_attribute("data-label"))
        assert (
            tab.locator(".vp-slices output").inner_text()
            == slider.get_attribute("aria-valuetext")
            == seen[-1]
        )
    assert seen == ["P = 16", "P = 32", "P = 8"]
    tab.close()


def test_without_scripts_a_slider_is_its_middle_picture(small, browser):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((small / "build" / "site" / "notebooks" / "ap_theory.html").as_uri())
    assert [
        image.get_attribute("data-label") for image in tab.locator(".vp-slices img:visible").all()
    ] == ["P = 16"]
    assert not tab.locator(".vp-slices input").is_visible()
    context.close()


def test_a_page_of_records_says_once_what_records_share(tmp_path):
    recipe = {"learning_rate": 0.01, "optimizer": "adam of this test"}
    alone = recipe | {"optimizer": "written for one run only"}
    runs = [
        {"id": str(at), "kind": "tune", "settings": {"recipe": one}, "values": {"of": recipe}}
        for at, one in enumerate([recipe, recipe, alone])
    ] + [{"id": "3", "in": "ap.table-2.html", "brief": ["tune"]}]
    bundle = {"profile": "quick", "commit": "0", "notebook": "ap", "machines": {}, "records": runs}
    page = tmp_path / "page.html"
    page.write_text(record_pages.record_page("ap.table-1", bundle))
    assert bundle_of(page) == bundle
    text = page.read_text()
    assert text.count("of this test") == 1 + len(runs[:3])  # once for the recipes, and in values
    assert text.count('{"$shared":0}') == 2 and text.count("for one run only") == 1


def test_every_shown_artifact_has_section_cell_and_record(site):
    root = site.parents[1]
    for name, entry in manifests.load_yaml(root / "data_manifests" / "notebooks.yaml").items():
        page = document(site / "notebooks" / f"{name}.html")
        for download in (f"{name}.py", f"{name}.ipynb"):
            assert (site / "downloads" / download).is_file()
        for artifact in entry["artifacts"]:
            assert page.find("section", id=artifact), f"{name}: no section with the id {artifact}"
            assert page.find(id=f"cell-{artifact}"), f"{name}: no cell cell-{artifact}"
            bundle = bundle_of(site / "records" / f"{artifact}.html")
            named = {id for show in bundle["result"]["shows"] for id in show["records"]}
            assert named <= {record["id"] for record in bundle["records"]}
            figures = [
                {a["href"] for a in f.find_all("a", href=True)}
                for f in page.select("figure.vp-figure")
            ]
            figures = [links for links in figures if f"../records/{artifact}.html" in links]
            assert len(figures) == len(bundle["result"]["shows"])
            assert all(f"#cell-{artifact}" in links for links in figures)


def test_no_two_places_give_a_claim_another_verdict(site):
    """Every row with one claim and one verdict, on whatever page, against all others of it."""
    told, words = defaultdict(set), "|".join({*VERDICTS, *SIGHTINGS, ALIKE, "open"})
    for page in site.rglob("*.html"):
        own = page.parent == site and page.name == "claims.html"
        for row in re.findall(r"<tr>.*?</tr>", page.read_text(encoding="utf-8"), re.S):
            place = (
                r'id="([a-z]+\.[a-z0-9-]+\.[a-z0-9.-]+)"' if own else r'claims\.html#([a-z0-9.-]+)"'
            )
            claims = {*re.findall(place, row)}
            badges = {*re.findall(rf'class="vp-badge[^"]*">({words})<', row)}
            if len(claims) == len(badges) == 1:
                told[claims.pop()].add((page.name, badges.pop()))
    several = {id: places for id, places in told.items() if len(places) > 1}
    assert len(several) > (100 if (site / "notebooks" / "spt.html").exists() else 0)
    assert {
        id: places for id, places in several.items() if len({word for _, word in places}) > 1
    } == {}


def test_counts_of_evidence_add_up(small):
    page = document(small / "build" / "site" / "status.html")
    rows = [
        [cell.get_text() for cell in row.find_all("td")]
        for row in page.select_one(".vp-table tbody").find_all("tr")
    ]
    for row in rows:
        assert int(row[1]) == sum(map(int, row[2:]))
    total = len(papers.artifacts("ap"))
    # Lemma 1, derived and a trend
    assert rows[0] == ["AP", str(total), "0", "0", "1", "0", str(total - 1)]


def test_weakest_evidence_counts(small, monkeypatch):
    monkeypatch.setattr("visprompt.records.store.ROOT", small)  # whose audit is done
    found = build.read_results("quick", small)
    # shown as derived and as a trend
    assert found["artifacts"]["ap.lemma-1"]["evidence"] == "trend"
    assert found["artifacts"]["ap.theorem-1"]["evidence"] == "not run"
    assert found["artifacts"]["spt.table-1"]["notebook"] is None
    by_audit = {finding["claim"] for finding in found["findings"]}
    judged = {id for id, claim in found["claims"].items() if claim["evidence"]}
    assert judged <= by_audit and all(found["claims"][id]["evidence"] == "derived" for id in judged)
    assert judged and {*found["claims"][min(judged)]["parties"]} == {"us"}
    assert all(not claim["parties"] for claim in found["claims"].values() if not claim["evidence"])


@pytest.mark.parametrize(
    "damage, message",
    [
        ("skip", "did not run"),
        ("fail", "failed with ValueError"),
        ("profile", "ran with profile paper"),
        ("unclosed", "page.close"),
        ("gone", "does not exist"),
        ("torn", "is no notebook"),
        ("folder", "cannot be read"),
        ("bytes", "is no notebook"),
        ("by hand", "did not write"),
        ("listed", "did not write"),
    ],
)
def test_a_page_that_did_not_run_as_it_says_is_refused(small, tmp_path, damage, message):
    path = tmp_path / "ap_theory.ipynb"
    text = (small / "build" / "executed" / "quick" / "ap_theory.ipynb").read_text()
    notebook = json.loads(text)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    results = code[-1]["outputs"][-1]["data"]
    if damage == "skip":
        code[2]["execution_count"] = None
    elif damage == "fail":
        code[2]["outputs"] = [
            {"output_type": "error", "ename": "ValueError", "evalue": "x", "traceback": []}
        ]
    elif damage == "profile":
        results[build.RESULTS_MIME]["profile"] = "paper"
    elif damage == "unclosed":
        del results[build.RESULTS_MIME]
    elif damage == "by hand":
        del results[build.RESULTS_MIME]["claims"]
    elif damage == "listed":
        results[build.RESULTS_MIME] = ["profile"]
    if damage == "folder":
        path.mkdir()
    elif damage == "bytes":
        path.write_bytes(b"\xff\xfe{")
    elif damage != "gone":
        path.write_text(text[:500] if damage == "torn" else json.dumps(notebook))
    with pytest.raises(BadInput, match=message) as told:
        build.read_notebook(path, "quick")
    assert "\n" not in str(told.value)


ATTACK = """x"onmouseover="a()' <script>a()</script>\n\n<img src=x onerror=a()>\n\n`</code>"""


def test_no_name_becomes_part_of_a_page(tmp_path, monkeypatch):
    """Ids, names, captions and settings with HTML and quotes in them are shown as they are, in
    texts and attributes."""
    from markdown_it import MarkdownIt

    paper, artifact = papers.artifacts("ap").index[0].split(".")[0], papers.artifacts("ap").index[0]
    show = {
        "evidence": ATTACK,
        "how": ATTACK,
        "caption": ATTACK,
        "cell": ATTACK,
        "records": [ATTACK],
    }
    entry = {
        "evidence": ATTACK,
        "shows": [show],
        "not_run": {"why": ATTACK, "command": ATTACK},
        "notebook": ATTACK,
    }
    unseen = {"evidence": "not run", "shows": [], "not_run": None, "notebook": None}
    claim = {
        "verdict": ATTACK,
        "note": ATTACK,
        "images": ATTACK,
        "records": [ATTACK],
        "notebook": ATTACK,
        "evidence": ATTACK,
        "estimate": 1.0,
        "low": None,
        "high": None,
        "parties": [],
        "spread": None,
    }
    finding = {
        "id": ATTACK,
        "paper": paper,
        "artifact": artifact,
        "where": ATTACK,
        "kind": "mean",
        "what": ATTACK,
        "printed": ATTACK,
        "computed": ATTACK,
        "quote": ATTACK,
        "verdict": "disagrees",
        "reading": ATTACK,
        "cells": [],
    }
    results = {
        "profile": "quick",
        "notebooks": {"a": ATTACK},
        "findings": [finding],
        "artifacts": {id: entry if id == artifact else unseen for id in papers.artifacts().index},
        "claims": {claim_.id: claim for claim_ in papers.claims()},
    }
    hostile = tmp_path / "data_manifests" / "hostile.yaml"  # one without a schema
    hostile.parent.mkdir()
    hostile.write_text(yaml.safe_dump({ATTACK: {ATTACK: {ATTACK: [ATTACK, {ATTACK: ATTACK}]}}}))
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "a.py").touch()
    (hostile.parent / "notebooks.yaml").write_text(
        yaml.safe_dump({"a": {"title": ATTACK, "artifacts": []}})
    )
    row = papers.artifacts("ap").iloc[0].to_dict() | {"title": ATTACK, "number": ATTACK}
    assert set(build.MAKERS) >= {"artifacts", "claims", "notebooks", "disagreements"}
    made = {
        name: build.make(name, results, tmp_path)
        for name in ("evidence", "artifacts", "claims", "notebooks")
    }
    made["findings"] = build.make(f"disagreements {paper}", results, tmp_path)
    made["backbones"] = manifest_pages.manifest(hostile)
    monkeypatch.setattr(papers, "artifact", lambda id: row)
    made["one claim"] = build.make(f"claims-of {paper}", results, tmp_path)
    for name, text in made.items():
        # as Markdown, because a blank line would end the HTML
        page = parsed(MarkdownIt("commonmark").enable("table").render(text))
        assert not page.find_all(["script", "img"]), name
        strange = [
            (tag.name, key) for tag in page.find_all() for key in tag.attrs if key not in ATTRIBUTES
        ]
        assert not strange, name
    assert "<script>a()</script>" in parsed(made["findings"]).get_text()


ATTRIBUTES = {
    "class",
    "id",
    "href",
    "title",
    "style",
    "scope",
    "tabindex",
    "data-choices",
    "data-address",
    "data-head",
    "download",
}


def parsed(text: str):
    from bs4 import BeautifulSoup

    return BeautifulSoup(text, "html.parser")


def test_no_caption_becomes_part_of_a_figure(monkeypatch):
    import matplotlib.pyplot as plt
    import pandas as pd

    from visbook.pages import page as page_module
    from visbook.pages import parameters

    monkeypatch.setattr(page_module.run_records, "is_current", lambda record: True)
    shown, record = [], types.SimpleNamespace(id=ATTACK, versions={"torch": ATTACK}, carried={})
    monkeypatch.setattr(page_module, "display", lambda thing, **more: shown.append(thing.data))
    monkeypatch.setattr(page_module, "HTML", lambda text: types.SimpleNamespace(data=text))
    page = page_module.Page("ap_theory", parameters.Parameters())
    words = {"evidence": "trend", "how": ATTACK, "caption": ATTACK, "records": [record]}
    page.present(pd.DataFrame({ATTACK: [ATTACK]}, index=[ATTACK]), **words)
    page.show("ap.lemma-1", plt.figure(figsize=(1, 1)), alt=ATTACK, **words)
    page.show(
        "ap.lemma-1",
        {ATTACK: plt.figure(figsize=(1, 1)), "b": plt.figure(figsize=(1, 1))},
        alt=ATTACK,
        **words,
    )
    page.not_run("ap.theorem-1", command=ATTACK, why=ATTACK)
    allowed = ATTRIBUTES | {
        "alt",
        "src",
        "hidden",
        "border",
        "type",
        "min",
        "max",
        "step",
        "value",
        "autocomplete",
        "aria-label",
        "data-label",
    }
    for text in shown:
        found = parsed(text)
        assert not found.find_all("script") and all(
            image["src"].startswith("data:") for image in found.find_all("img")
        )
        assert {key for tag in found.find_all() for key in tag.attrs} <= allowed
    assert len(shown) == 4 and ATTACK in parsed(shown[0]).get_text()


@pytest.mark.parametrize("slug", front.told(ROOT))
def test_sentences_that_wait_for_new_words_stop_no_site(slug, monkeypatch):
    """From nothing recorded, or on another machine, trends come out otherwise: their sentences
    wait, and no more."""
    paper = front.told(ROOT)[slug]
    words = {
        id: word for sentence in paper.holds + paper.fails for id, word in sentence["rests"].items()
    }
    judged = {
        claim.id: {"verdict": words.get(claim.id), "estimate": 1.0, "notebook": None}
        for claim in papers.claims(slug)
    }
    monkeypatch.setattr(front.overview, "beside_base", lambda slug: "")
    short = front.sayings(slug, paper, {"claims": judged, "titles": {}})
    assert short.count("waits for new words") == len(paper.small)


@pytest.mark.refused
def test_more_words_than_a_first_screen_holds_are_refused(tmp_path):
    (tmp_path / "book").mkdir()
    told = yaml.safe_load((ROOT / "book" / "summaries.yaml").read_text(encoding="utf-8"))
    told["ap"]["hard"] = "word " * 111
    (tmp_path / "book" / "summaries.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    with pytest.raises(BadInput, match="ap has .* words; a first screen holds 110"):
        front.told(tmp_path)


def test_a_missing_record_stops_the_site(small, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(
        small, root, symlinks=True, ignore=shutil.ignore_patterns("jupyter-book", "site")
    )
    # the notebook's; what the audit left is slow to make
    shutil.rmtree(root / "build" / "records" / "test")
    ran = call("-m", "visbook.site.build", "quick", root=root)
    assert ran.returncode != 0 and "no record" in ran.stderr


def test_a_broken_reference_stops_the_site(small, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(
        small, root, symlinks=True, ignore=shutil.ignore_patterns("jupyter-book", "site")
    )
    # two pages are enough
    (root / "_toc.yml").write_text("{format: jb-book, root: index, chapters: [{file: data}]}")
    for name, text in (("index", "A page."), ("data", "{ref}`no-such-label`")):
        (root / "book" / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    ran = call("-m", "visbook.site.build", "quick", root=root)
    told = ran.stdout + ran.stderr
    assert ran.returncode != 0 and "no-such-label" in told and told.count("WARNING:") == 1, told


def test_the_page_of_a_record_counts_what_is_too_long_to_show():
    maps, loss = [[[0.5] * 600] * 2] * 2, [0.1] * 40
    assert (
        record_pages.counted(maps) == "2,400 numbers, which the record's file in book/records has"
    )
    assert (
        record_pages.counted(loss) == loss
        and record_pages.counted([]) == []
        and record_pages.counted("word") == "word"
    )


def test_no_two_claims_of_a_paper_read_alike():
    said = Counter(
        (claim.artifact.split(".")[0], site_claims.statement(claim)) for claim in papers.claims()
    )
    assert not [words for words, count in said.items() if count > 1]


def test_a_site_keeps_the_icons_that_its_pages_name_and_no_others(tmp_path):
    """The theme's script has two thousand; an icon may be asked for by another of its names."""
    icons = (
        '{bars:[448,512,["navicon"],"f0c9","M0 96C0 78"],"arrow-up":[384,512,[8593],"f062",'
        '"M214 41"],sun:[512,512,[9728],"f185",["M3","M4"]]}'
    )
    for path, text in {
        "_static/scripts/fontawesome.js": f"(()=>{{var o={icons},p={icons}}})()",
        "_static/scripts/theme.js": 'icon("fa-solid fa-arrow-up")',
        "index.html": '<i class="fa-solid fa-navicon"></i>',
        "_static/fonts/fa-brands-400.woff2": "",
        "_static/fonts/fa-solid-900.woff2": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    lighten(tmp_path)
    left = icons.replace(',sun:[512,512,[9728],"f185",["M3","M4"]]', ",")
    found = (tmp_path / "_static/scripts/fontawesome.js").read_text()
    assert found == f"(()=>{{var o={left},p={left}}})()"
    assert [path.name for path in (tmp_path / "_static/fonts").iterdir()] == ["fa-solid-900.woff2"]
