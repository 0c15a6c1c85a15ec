"""What a reader meets, in a headless Chromium: the front page, a chapter's first screen, claims,
phone and paper."""

import csv
import json
import re
import shlex

import pytest
import yaml
from bs4 import BeautifulSoup
from sites import REAL, ROOT, bundle_of, document, ids, pages

import visprompt as vp
from visbook.chapters import method_explorer
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.friendly import signed
from visbook.site import front, stories
from visbook.site.results import read_notebook
from visbook.studies import grids
from visbook.studies.roles import recipe_scope
from visprompt import papers
from visprompt.__main__ import parse
from visprompt.methods import METHODS

BENCHMARKS = grids.scope_of("paper").tasks  # VTAB-1k's 19 are its "benchmark", FGVC's five "fine"

WORST = {"claims": 0.12, "row": 60, "short": 900, "words": 420}


@pytest.fixture(scope="module")
def chapters(whole):
    """The first page of every chapter that the site has."""
    found = [
        page
        for page in sorted((whole / "notebooks").glob("*.html"))
        if document(page).select(".vp-in-short")
    ]
    assert found
    return found


@pytest.fixture
def tab(browser):
    """A window of 1280 x 900."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(120_000)
    yield tab
    context.close()


def test_a_card_a_paper_with_a_bar_that_adds_up(whole):
    cards = document(whole / "index.html").select(".vp-card")
    assert len(cards) == len(papers.papers())
    for card, (slug, paper) in zip(cards, papers.papers().items(), strict=True):
        assert paper["title"] in card.get_text()
        by_hand = slug in front.told(ROOT)
        heads = ["Holds", "Does not", "Only seen at small scale"]
        if paper.get("proposes"):
            heads.insert(0, "On photographs, ViT-Tiny")
        assert [name.get_text() for name in card.select("dt")] == heads * by_hand
        parts = [int(part.get_text().split()[0]) for part in card.select(".vp-legend a")]
        assert sum(parts) == len(papers.claims(slug))
        assert [a["href"] for a in card.select(".vp-bar a")] == [
            a["href"] for a in card.select(".vp-legend a")
        ]
        assert "version may differ" in card.get_text() or not by_hand


def test_no_sentence_waits_for_new_words(whole):
    """Only of the real site: in the small one nothing has run."""
    if not (whole / "notebooks" / "spt.html").exists():
        pytest.skip("the real site is not there; make book builds it")
    waiting = [
        f"{page.name}: {part.get_text()}"
        for page in pages(whole)
        for part in document(page).select(".vp-stale")
    ]
    assert not waiting


def test_each_piece_of_a_bar_leads_to_its_claims(whole, tab):
    for piece in document(whole / "index.html").select(".vp-card")[0].select(".vp-legend a"):
        tab.goto((whole / "index.html").as_uri())
        tab.click(f'.vp-legend a[href="{piece["href"]}"] >> nth=0')
        tab.wait_for_selector(".vp-filter select")
        assert tab.locator(".vp-filterable tbody tr:visible").count() == int(
            piece.get_text().split()[0]
        )


def test_a_selection_of_claims_stays_in_the_address_and_can_be_taken_home(whole, tab):
    address = (whole / "claims.html").as_uri()
    tab.goto(address)
    tab.select_option('select[aria-label="Paper"]', "SPT")
    tab.select_option('select[aria-label="Weight"]', "core")
    tab.fill(".vp-filter input", "fine-tuning")
    rows = tab.locator(".vp-filterable tbody tr:visible")
    left, chosen = rows.count(), tab.url
    assert 0 < left < 8
    with tab.expect_download() as download:
        tab.click("text=CSV of these")
    with open(download.value.path(), newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == left and all(
        papers.claim(line["id"]).weight == "core" == line["Weight"] for line in lines
    )
    tab.goto((whole / "index.html").as_uri())
    tab.go_back()
    tab.wait_for_function("document.querySelector('.vp-filter [role=status]')")
    assert tab.url == chosen and rows.count() == left
    tab.goto("about:blank")
    tab.goto(chosen)
    assert rows.count() == left and tab.locator('select[aria-label="Paper"]').input_value() == "SPT"


def test_a_table_can_be_taken_home(whole, tab):
    tab.goto((whole / "numbers-ap.html").as_uri())
    box = tab.locator(".vp-table:has(+ .vp-take)").first
    heads = [cell.strip() for cell in box.locator("thead th").all_inner_texts()]
    with tab.expect_download() as download:
        tab.locator(".vp-take button", has_text="CSV").first.click()
    assert download.value.suggested_filename == "numbers-ap-1.csv"
    with open(download.value.path(), newline="") as file:
        lines = list(csv.reader(file))
    assert lines[0] == heads and len(lines) == 1 + box.locator("tbody tr").count() > 2
    tab.evaluate("navigator.clipboard.writeText = async (text) => { window.taken = text; }")
    tab.locator(".vp-take button", has_text="Copy").first.click()
    tab.wait_for_selector("text=Copied")
    assert [line.split("\t") for line in tab.evaluate("taken").split("\n")] == lines
    tab.goto((whole / "claims.html").as_uri())
    assert tab.locator(".vp-take").count() == 0


def test_a_chapter_begins_with_a_picture_its_question_and_its_idea(chapters, tab):
    late = []
    told = stories.told(ROOT)
    for page in [page for page in chapters if told[page.stem].asks]:
        story = document(page).select_one(".vp-story")
        tab.goto(page.as_uri())
        asked = tab.locator(".vp-story > p").first.bounding_box()
        words = len(re.findall(r"\S*\w\S*", " ".join(p.get_text(" ") for p in story("dd"))))
        bottom = asked["y"] + asked["height"]
        if bottom > WORST["short"] or words > WORST["words"] or not story.find("svg"):
            late.append(f"{page.stem}: ends at {bottom:.0f} px, {words} words")
        assert document(page).select_one(".vp-about").get_text().count("Audited here") == 1
    assert not late


def test_every_page_ends_with_what_to_take_away_and_how_to_rerun_it(whole):
    for page in sorted((whole / "notebooks").glob("*.html")):
        heads = [head.get_text().rstrip("#") for head in document(page).select("article h2")]
        assert heads[-1] == "Rerun this page", page.stem
        assert heads[-2].startswith("What to take away"), page.stem


def test_a_coloured_word_leads_to_what_it_means(chapters, tab):
    tab.goto(chapters[0].as_uri())
    word = tab.locator("a.vp-term").first
    said = word.inner_text().strip()
    word.click()
    tab.locator(f"dt[id='term-{said.replace(' ', '-')}']").wait_for(state="visible")


def test_a_name_in_a_table_leads_to_its_pictures(site, tab):
    script = (site / "_static" / "names.js").read_text()
    places = json.loads(script.removeprefix("window.vpNames = ").rstrip(";\n"))
    assert len(places) > 20
    for place in places.values():
        page, id = place.split("#")
        assert id in ids(site / page), place
    if site == REAL:
        tab.goto((site / "notebooks" / "small_world.html").as_uri())
        tab.locator("a.vp-name").first.click()
        tab.wait_for_url(re.compile(r"/(data|backbones)\.html#"))


def test_a_claim_can_be_cited(whole, tab):
    tab.goto((whole / "claims.html").as_uri())
    tab.locator(".vp-claims details > summary").first.click()
    assert tab.locator("button.vp-cite").count() == 1
    assert "version" in tab.locator(".vp-edition").get_attribute("data-cited")


CLAIMS = """() => {
  const shown = (list) => [...list].filter((item) => item.checkVisibility());  // what is folded takes no room
  const high = (list) => shown(list).reduce((sum, item) => sum + item.getBoundingClientRect().height, 0);
  return high(document.querySelectorAll(".bd-article .vp-claims")) / document.querySelector(".bd-article").scrollHeight;
}"""
ROWS = """(most) => [...document.querySelectorAll(".bd-article .vp-claims tr, .bd-article .vp-core-claims tr, .vp-printed tr")]
  .filter((row) => row.getBoundingClientRect().height > most).map((row) => row.textContent.trim().slice(0, 60))"""


def test_claims_take_little_of_a_chapter_and_no_row_is_high(chapters, tab):
    much = []
    for page in chapters:
        tab.goto(page.as_uri())
        tab.wait_for_function(
            "document.querySelectorAll('mjx-container svg').length >= "
            "document.querySelectorAll('.bd-article .math').length"
        )
        share = tab.evaluate(CLAIMS)
        if share > WORST["claims"]:
            much.append(f"{page.stem}: {share:.0%} of it are claims")
        much += [f"{page.stem}: high: {row}" for row in tab.evaluate(ROWS, WORST["row"])]
    assert not much, "\n".join(much)


def test_printed_tables_stand_open_and_lead_to_the_numbers(whole, chapters):
    for page in chapters:
        assert not [
            fold
            for fold in document(page).select(".vp-printed summary")
            if "as printed" in fold.get_text()
        ]
        for printed in document(page).select(".vp-printed:has(.vp-printed-head)"):
            assert printed.select("table tbody tr") and not printed.select("details")
            path, _, name = printed.select_one(".vp-printed-head a")["href"].partition("#")
            assert document((page.parent / path).resolve()).find(id=name)


SEEN = """() => [...document.querySelectorAll(".vp-cards tbody tr")].filter((row) => row.offsetParent).filter((row) => {
  const badge = row.querySelector(".vp-badge").getBoundingClientRect();
  return badge.left < 0 || badge.right > innerWidth || row.closest(".vp-table").scrollWidth > innerWidth;
}).map((row) => row.textContent.trim().slice(0, 60))"""


def test_a_phone_shows_verdicts_without_scrolling_sideways(whole, chapters, browser):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    tab = context.new_page()
    hidden = []
    for page in (whole / "claims.html", *chapters):
        tab.goto(page.as_uri())
        hidden += [f"{page.stem}: {row}" for row in tab.evaluate(SEEN)]
    context.close()
    assert not hidden, "\n".join(hidden[:20])


CUT = """() => [...document.querySelectorAll(".bd-article .vp-table")].filter((box) => box.offsetParent)
  .filter((box) => box.querySelector("table").getBoundingClientRect().right > innerWidth + 1)
  .map((box) => box.textContent.trim().slice(0, 60))"""


def test_paper_shows_what_is_folded_and_every_column(whole, chapters, browser):
    context = browser.new_context(viewport={"width": 720, "height": 1000})
    tab = context.new_page()
    lost = []
    for page in (whole / "claims.html", *chapters):
        tab.emulate_media(media="screen")
        tab.goto(page.as_uri())
        folded = tab.locator(".bd-article details:not([open])").count()
        tab.emulate_media(media="print")
        tab.wait_for_function("!document.querySelector('.bd-article details:not([open])')")
        lost += [f"{page.stem}: {text}" for text in tab.evaluate(CUT)]
        tab.emulate_media(media="screen")
        tab.wait_for_function(
            "(n) => document.querySelectorAll('.bd-article details:not([open])').length === n",
            arg=folded,
        )
    context.close()
    assert not lost, "\n".join(lost[:20])


ASKED = {
    "Table A3": "ap.table-a3",
    "ivpt.table-9": "ivpt.table-9",
    "VPT-Deep": "method-vpt-deep",
    "NORM-TUNE": "method-norm-tune",
    "linear probe": "method-linear-probe",
    "E²VPT": "method-e2vpt",
    "licence": "the-papers-data-sets-access-licence-size",
    "build_method": "visprompt.methods.build_method",
    "cub_200_2011": "data-cub_200_2011",
    "CUB-200": "data-cub_200_2011",
    "visprompt claims": "the-papers-numbers-without-running-anything",
    "spt.table-2.largest-gain": "spt.table-2.largest-gain",
}


@pytest.mark.parametrize("asked", ASKED)
def test_the_search_begins_with_the_place_of_that_name(whole, tab, asked):
    tab.goto((whole / "search.html").as_uri() + f"?q={asked}")
    first = tab.locator(".vp-places a").first
    first.wait_for()
    path, _, name = first.get_attribute("href").partition("#")
    # the small site has no page for most artifacts
    assert name == ASKED[asked] or path.endswith("status.html")
    assert len(first.inner_text()) > len(asked)  # a few words beside the name


def test_the_search_knows_a_paper_s_contradicted_claims(whole, tab):
    tab.goto((whole / "search.html").as_uri() + "?q=SPT contradicted")
    tab.locator(".vp-places a").first.click()
    tab.wait_for_url("**/claims.html?paper=SPT&verdict=disagrees")
    tab.wait_for_selector(".vp-filter select")
    rows = tab.locator(".vp-filterable tbody tr:visible").all_inner_texts()
    assert rows and all("SPT" in row and "disagrees" in row for row in rows)


def test_the_jump_box_goes_there_by_keyboard(whole, tab):
    tab.goto((whole / "index.html").as_uri())
    tab.locator(".bd-article .vp-jump-here input").focus()
    tab.keyboard.type("spt.table-2.largest-gain")
    tab.locator(".bd-article [role=option][aria-selected=true]").wait_for()
    for key in ("ArrowDown", "ArrowUp", "Enter"):
        tab.keyboard.press(key)
    tab.wait_for_url("**/claims.html#spt.table-2.largest-gain")
    tab.wait_for_function(
        "document.getElementById('spt.table-2.largest-gain').closest('tr').querySelector('details').open"
    )


@pytest.mark.parametrize(
    ("asked", "first"),
    [("rerun SPT table 2 zzq", "SPT, Table 2"), ("zzq qqz", "search the text")],
)
def test_the_jump_box_always_answers(whole, tab, asked, first):
    """With what has most of the words, or with the search."""
    tab.goto((whole / "index.html").as_uri())
    tab.locator(".bd-article .vp-jump-here input").focus()
    tab.keyboard.type(asked)
    option = tab.locator(".bd-article [role=option]").first
    option.filter(has_text=first).wait_for()
    if first == "search the text":
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"**/search.html?q={asked.replace(' ', '%20')}")


def test_a_plot_follows_the_dark_theme_and_paper_is_light(chapters, tab):
    """Heat maps and photographs keep their colours."""
    kinds = lambda page: [
        kind
        for kind in ("vp-plot", "vp-picture")
        if document(page).select(f".vp-figure img.{kind}")
    ]
    page = max(chapters, key=lambda page: len(kinds(page)))
    tab.goto(page.as_uri())
    inverted = f"""() => String({kinds(page)}.filter((kind) => getComputedStyle(
      document.querySelector(`.vp-figure img.${{kind}}`)).filter.includes("invert")))"""
    assert "vp-plot" in kinds(page)
    for theme, found in {"light": "", "dark": "vp-plot"}.items():
        tab.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        assert tab.evaluate(inverted) == found
        for media, seen in {"print": "", "screen": found}.items():
            tab.emulate_media(media=media)
            tab.wait_for_function(f"({inverted})() === '{seen}'", timeout=9000)


def test_every_place_is_there(whole):
    text = (whole / "_static" / "places.js").read_text()
    places = json.loads(text.removeprefix("window.vpPlaces = ").removesuffix(";\n"))
    assert {id for kind, _, id, _, _ in places if kind == "claim"} == {
        claim.id for claim in papers.claims()
    }
    assert {id for kind, _, id, _, _ in places if kind == "artifact"} == set(
        papers.artifacts().index
    )
    lost = []
    for kind, name, _, address, _ in places:
        path, _, anchor = address.partition("#")
        page = whole / path.partition("?")[0]
        if (whole / "notebooks" / "spt.html").exists() or not path.startswith("notebooks/"):
            if not page.exists() or (anchor and anchor not in ids(page)):
                lost.append(f"{kind} {name}: {address}")
    assert not lost


def test_the_site_is_light(whole):
    """In bytes; the pictures inside a page do not count as its text."""
    assert sum(path.stat().st_size for path in whole.rglob("*") if path.is_file()) < 30e6
    picture = re.compile(r'src="data:[^"]*"')
    heavy = {page.name: len(picture.sub("", page.read_text())) for page in pages(whole)}
    assert not {name: size for name, size in heavy.items() if size > 1e6}


def test_the_method_explorer_counts_as_python_does(whole, tab):
    page = whole / "notebooks" / "methods.html"
    if not page.exists():
        pytest.skip("the real site is not there; make book builds it")
    tab.goto(page.as_uri())
    tab.fill('.vp-explorer input[name="prompts"]', "7")
    tab.fill('.vp-explorer input[name="classes"]', "37")
    tab.select_option('.vp-explorer select[name="method"]', "ivpt")
    for slug in METHODS:
        row = tab.locator(f'.vp-explorer tr:has(th[data-slug="{slug}"]) td').all_inner_texts()
        cost = method_explorer.cost_at(method_explorer.counts(slug, "vit_base_patch16_224"), 7, 37)
        wanted = [
            f"{cost['method']:,}",
            f"{cost['total']:,}",
            f"{cost['flops'] / 1e9:.2f}",
            f"{cost['memory'] / 2**30:.2f}",
        ]
        assert row == wanted, slug
    line = tab.locator(".vp-explorer pre").inner_text()
    model = eval(line.replace('"pretrained"', 'None, device="meta"'), {"vp": vp})
    assert (
        model.slug == "ivpt"
        and "?backbone=vit_base_patch16_224&prompts=7&classes=37&method=ivpt" in tab.url
    )
    tab.goto(tab.url)
    assert tab.locator('.vp-explorer input[name="prompts"]').input_value() == "7"


def test_without_scripts_the_method_explorer_is_a_table(whole, browser):
    page = whole / "notebooks" / "methods.html"
    if not page.exists():
        pytest.skip("the real site is not there; make book builds it")
    assert len(document(page).select(".vp-explorer tbody tr")) == len(METHODS)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"study": "spt-starts", "page": "spt_starts", "seeds": "1"},
        {"study": "davpt-layers", "task": "flowers"},
        {
            "study": "pretraining",
            "profile": "paper",
            "task": "dtd",
            "method": "ivpt",
            "page": "ivpt",
            "device": "cuda",
        },
        {"study": "ap-full", "task": "cifar10", "method": "vp"},
    ],
)
def test_a_built_command_can_be_run(whole, tab, chosen):
    tab.goto((whole / "read-and-rerun.html").as_uri())
    for name, value in chosen.items():
        control = tab.locator(f'.vp-builder [name="{name}"]')
        if not control.locator(f'option[value="{value}"]').count() and name != "seeds":
            pytest.skip(f"only the real site has {name} {value}; make book builds it")
        control.fill(value) if name == "seeds" else control.select_option(value)
    built = tab.locator(".vp-builder pre").inner_text().split("\n")
    study, *of_page = (shlex.split(line) for line in built if line[0] != "#")
    given = parse(study[1:])
    scope = recipe_scope(
        given.recipe or given.profile, given.profile, tasks=given.tasks, methods=given.methods
    )
    grids.check_cells(given.names, scope)
    assert len(given.seeds) == int(chosen.get("seeds", 3)) and (given.data_dir == "FOLDER") == (
        given.profile == "paper"
    )
    if not of_page:
        assert given.names[0].startswith("ap-") or whole != REAL  # the small site has no chapter
        return
    make, *on_cluster, papermill = of_page
    words = dict(word.split("=", 1) for word in make[2:])
    page = re.fullmatch(r"build/ipynb/(\w+)\.ipynb", papermill[1])[1]
    if given.profile == "quick":
        assert (
            make[1] == "notebook"
            and words["NAME"] == page
            and shlex.split(words["ARGS"]) == papermill[-len(shlex.split(words["ARGS"])) :]
        )
    else:
        assert make[1] == "book" and words["PAPERS"] == page.split("_")[0] == given.recipe
        assert set(words) <= {
            "PROFILE",
            "PAPERS",
            "SEEDS",
            "TASKS",
            "METHODS",
            "DATA",
            "DEVICE",
            "GPUS",
        }
        (snakemake,) = on_cluster
        config = dict(word.split("=", 1) for word in snakemake[snakemake.index("--config") + 1 :])
        assert (
            config.pop("device") == ("cuda" if "DEVICE" in words else "cpu")
            and config.pop("profile") == words["PROFILE"]
        )
        names = {
            "PAPERS": "papers",
            "SEEDS": "seeds",
            "TASKS": "tasks",
            "METHODS": "methods",
            "DATA": "data_dir",
        }
        wanted = {name: [words[word]] for word, name in names.items() if word in words}
        assert {name: yaml.safe_load(value) for name, value in config.items()} == wanted
        assert (ROOT / snakemake[snakemake.index("--profile") + 1] / "config.yaml").is_file()
    options = papermill[3:]
    asked = {
        name: yaml.safe_load(value)
        for name, value in zip(options[1::3], options[2::3], strict=True)
    }
    assert asked["profile"] == given.profile and asked["studies"] == given.names
    _, results = read_notebook(ROOT / "build" / "executed" / "quick" / f"{page}.ipynb", "quick")
    assert given.names[0] in results["studies"]
    if given.profile == "quick":
        ChapterParameters(**asked)


@pytest.fixture
def comparing(whole, tab):
    """The page on which a result is compared, open."""
    tab.goto((whole / "compare.html").as_uri())
    return tab.locator(".vp-compare")


def compared(box):
    """Its rows as texts: network, accuracy, how far off, where."""
    return [row.locator("td").all_inner_texts() for row in box.locator("tr:has(td)").all()]


def test_a_typed_accuracy_stands_beside_the_printed_one(comparing):
    comparing.locator('[name="data"]').select_option("Caltech101")
    comparing.locator('[name="method"]').select_option("iVPT")
    comparing.locator('[name="accuracy"]').fill("90")
    printed = papers.published("ivpt.table-1").set_index("method").loc["iVPT", "Caltech101"]
    row = next(row for row in compared(comparing) if row[0] == "ViT-B/16, supervised")
    assert (row[1], row[2]) == (printed, f"−{float(printed) - 90:.1f}") and "iVPT, Table 1" in row[
        3
    ]


def test_a_pasted_record_stands_beside_the_kept_runs(comparing):
    record = next(
        json.loads(path.read_text())
        for path in (ROOT / "book/records/tune/linear-probe/digits").glob("*.json")
    )
    comparing.locator("textarea").fill(json.dumps(record))
    if comparing.locator('option[value="Linear probe"]').count() == 0:
        pytest.skip("only the real site has the weights of kept runs; make book builds it")
    assert comparing.locator('[name="method"]').input_value() == "Linear probe"
    ((network, accuracy, off, where),) = compared(comparing)
    mean = float(accuracy.split(" ± ")[0])
    assert network == record["settings"]["backbone"] and "Kept runs, 5 seeds" in where
    assert abs(abs(float(off.replace("−", "-"))) - abs(record["values"]["test"] - mean)) < 0.051


@pytest.mark.parametrize(
    "text",
    [
        "91.5",
        "{",
        "null",
        "[]",
        '{"kind": "bench"}',
        '{"kind": "tune", "settings": {"method": "<b>"}}',
    ],
)
def test_what_is_no_record_is_refused(comparing, text):
    comparing.locator("textarea").fill(text)
    assert re.search("no record|no accuracy", comparing.locator("[aria-live]").inner_text())
    assert comparing.locator('[name="accuracy"]').input_value() == ""


def test_a_record_of_an_unknown_task_asks_to_choose(comparing):
    record = {
        "kind": "tune",
        "settings": {"method": "<img>", "task": "<b>", "backbone": "b", "seed": 0},
        "values": {"test": 50},
    }
    comparing.locator("textarea").fill(json.dumps(record))
    assert "choose what comes nearest" in comparing.locator("[aria-live]").inner_text()
    assert not comparing.locator("b, img").count()


@pytest.mark.parametrize("task", [*BENCHMARKS["benchmark"], *BENCHMARKS["fine"]])
def test_a_record_of_every_task_of_the_benchmarks_finds_its_printed_name(comparing, task):
    """On the papers' own tasks, VTAB-1k's and FGVC's, nobody has to choose."""
    record = {
        "kind": "tune",
        "settings": {"method": "vpt-deep", "task": task, "backbone": "b", "seed": 0},
        "values": {"test": 50},
    }
    comparing.locator("textarea").fill(json.dumps(record))
    assert f"VPT-Deep on {task}, b" in comparing.locator("[aria-live]").inner_text()


def test_maps_are_leafed_through(whole, tab):
    page = whole / "notebooks" / "davpt_parts.html"
    if not page.exists():
        pytest.skip("the real site is not there; make book builds it")
    tab.goto(page.as_uri())
    box = tab.locator(".vp-maps")
    runs = json.loads(box.locator("script").text_content())
    name, run = next(iter(runs.items()))
    box.locator('[name="run"]').select_option(name)
    box.locator('[name="image"]').select_option("1")
    box.locator('[name="block"]').fill("3")
    captions = box.locator("figcaption").all_inner_texts()
    assert captions[1] == f"class token: {run['most'][1][3][0]:.3f}" and len(captions) == 2 + len(
        run["prompts"]
    )
    assert "block 3 (0 to" in box.locator("output").inner_text()
    shades = (
        "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, "
        "canvas.height).data).size"
    )
    assert box.locator("canvas").first.evaluate(shades) > 3


def test_a_page_of_records_is_a_table_of_runs(whole, tab):
    """Every run has a row that its id leads to, opens in full, and all are a file; the row of what
    stands in full elsewhere leads there."""
    bundles = {page: bundle_of(page) for page in sorted((whole / "records").glob("*.html"))}
    full = {
        page.name: [record for record in bundle["records"] if "kind" in record]
        for page, bundle in bundles.items()
    }
    for bundle in bundles.values():
        linked = [record for record in bundle["records"] if "in" in record]
        assert all(
            record["id"] in {found["id"] for found in full[record["in"]]} for record in linked
        )
    page = max(bundles, key=lambda page: len(full[page.name]))
    bundle, here = bundles[page], full[page.name]
    tab.goto(f"{page.as_uri()}#{here[-1]['id']}")
    assert tab.locator("tbody tr").count() == len(bundle["records"])
    assert tab.locator("tbody tr td > a").count() == len(bundle["records"]) - len(here)
    assert max(map(len, tab.locator("td.number").all_inner_texts())) < 9  # 0.0015, no 0.00149999…
    row = tab.locator("tr:target")
    assert (
        row.locator("button").inner_text() == here[-1]["id"]
        and here[-1]["kind"] in row.inner_text()
    )
    row.locator("button").click()
    assert json.loads(tab.locator("tr:target + tr pre").inner_text()) == here[-1]
    row.locator("button").click()
    assert not tab.locator("tr pre").count()
    with tab.expect_download() as download:
        tab.get_by_text("All of it as JSON").click()
    assert json.loads(download.value.path().read_text()) == bundle
    assert download.value.suggested_filename == f"{page.stem}.json"


def test_a_cell_of_a_results_table_leads_to_its_runs(whole, tab):
    cells = [
        (page, a["href"])
        for page in pages(whole)
        for a in document(page).select('td a[href*="?runs="]')
    ]
    if not cells:
        pytest.skip("the real site is not there; make book builds it")
    known = {
        page.name: {one["id"] for one in bundle_of(page)["records"]}
        for page in (whole / "records").glob("*.html")
    }
    for page, address in cells:
        there, _, runs = address.rpartition("?runs=")
        assert {*runs.split(",")} <= known[there.rpartition("/")[2]], f"{page.name}: {address}"
    page, address = max(cells, key=lambda cell: len(cell[1]))
    runs = address.rpartition("=")[2].split(",")
    tab.goto(
        (page.parent / address.partition("?")[0]).resolve().as_uri() + f"?runs={','.join(runs)}"
    )
    assert tab.locator("tbody tr:visible, li:visible").count() == len(runs)
    tab.get_by_text("Show all").click()
    assert tab.locator("tbody tr:visible, li:visible").count() > len(runs)


def test_the_chosen_photographs_lead_the_table(whole, tab):
    """Their column stands behind the names, highest first; a head sorts by its own column then."""
    tab.goto((whole / "which-method.html").as_uri())
    table = tab.locator(".vp-which table")

    def column(n):
        return [float(text) for text in table.locator(f"tbody td:nth-child({n})").all_inner_texts()]

    heads, means = table.locator("th").all_inner_texts(), column(2)
    options = tab.locator("select[name=task] option")
    for at in (2, 1, 0):
        tab.locator("select[name=task]").select_option(index=at)
        wanted = options.nth(at).inner_text() if at else heads[1]
        now = table.locator("th").all_inner_texts()
        assert now[1] == wanted and sorted(now) == sorted(heads)
        assert column(2) == sorted(column(2), reverse=True)
    assert now == heads and column(2) == means
    tab.locator("select[name=task]").select_option(index=1)
    table.locator("th button").nth(1).click()
    assert column(2) == sorted(column(2))


def test_the_page_on_real_images_has_the_numbers_of_the_claims(whole):
    page = whole / "notebooks" / "real_images.html"
    if not page.exists():
        pytest.skip("the small site has no page on real images")
    plain = lambda text: " ".join(text.split()).replace("−", "-").replace("E²VPT", "E2VPT")
    shown = {}
    for row in BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").select("tbody tr"):
        cells = [plain(cell.get_text()) for cell in row.select("td")]
        if len(cells) == 5 and " over " in cells[1]:
            shown[tuple(cells[1].split(" over "))] = cells[2:4]
    same = 0
    with (whole / "downloads" / "claims.csv").open(encoding="utf-8") as file:
        for claim in csv.DictReader(file):
            note = plain(claim["note"])
            pair = re.match(r"(\S.*?) - (\S.*?): 5 tasks", note)
            drawn = re.search(r"On embedded tasks (\S+ \[.+?\]): \d+ tasks", note)
            if pair and drawn and (found := shown.get(pair.groups())):
                seen = [plain(signed(float(claim[name]))) for name in ("estimate", "low", "high")]
                assert found[0].startswith("{} [{}, {}];".format(*seen)), claim["id"]
                assert found[1].startswith(f"{drawn[1]};"), claim["id"]
                same += 1
    assert same >= 8
