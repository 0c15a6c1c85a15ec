"""Parameters are checked, claims are judged by their interval, a page forgets no artifact."""

import ast
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace

import jupytext
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from visbook.pages import judging
from visbook.pages import page as page_module
from visbook.pages import parameters as parameters_module
from visbook.studies import statistics
from visprompt import manifests, papers, paths, records
from visprompt.errors import BadInput

SMALL = Path(__file__).with_name("small_notebook.py")
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.py"))


@dataclass(frozen=True)
class Settings(parameters_module.Parameters):
    seeds: list[int] | None = None
    rate: float = 0.1
    measure: bool = False


@pytest.mark.refused
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": "0"}, "seeds must be"),
        ({"seeds": [0.5]}, "seeds must be"),
        ({"seeds": [True]}, "seeds must be"),
        ({"seeds": "2024-13-45"}, "seeds must be"),
        ({"rate": "fast"}, "rate must be float"),
        ({"measure": 1}, "measure must be bool"),
        ({"profile": "papper"}, "Did you mean 'paper'"),
        ({"profile": 3}, "profile must be str, not 3"),
        ({"device": "gpu"}, "unknown device"),
        ({"device": "cuda:x"}, "torch finds no device 'cuda:x'"),
    ],
)
def test_a_wrong_parameter_is_refused(given, message):
    with pytest.raises(BadInput, match=message):
        parameters_module.read_parameters(Settings, given)


def test_parameters_are_read_and_other_names_of_a_notebook_are_ignored():
    namespace = {
        "In": [],
        "_1": 3,
        "pd": pd,
        "Settings": Settings,
        "p": 3,
        "seeds": [1, 2],
        "rate": 1,
        "open": len,
    }
    assert parameters_module.read_parameters(Settings, namespace) == Settings(seeds=[1, 2], rate=1)


def test_text_from_the_command_line_is_read_as_a_list():
    assert parameters_module.read_parameters(
        Settings, {"seeds": "[0, 3]", "rate": "0.5"}
    ) == Settings(seeds=[0, 3], rate=0.5)
    with pytest.raises(BadInput, match="seeds must be"):
        parameters_module.read_parameters(Settings, {"seeds": "[0"})


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (["# Parameters\nsede = [0]\n"], "sede"),
        (["profile = 'quick'\nsede = [0]", "import numpy as np", "x = 1"], "sede"),
        (["profile = 'quick'", "# Parameters\nnp = 3\n"], "np"),
        (["profile = 'quick'\nrates: float = 1", "# Parameters\nseeds = [0]\n"], "rates"),
    ],
)
def test_a_foreign_name_in_a_cell_of_parameters_is_refused(cells, name):
    with pytest.raises(BadInput, match=f"unknown notebook parameter '{name}'"):
        parameters_module.read_parameters(Settings, {}, cells)


@pytest.mark.parametrize(
    "cells",
    [
        ["profile = 'quick'\nsede = [0]", "profile = 'quick'\nseeds = [0]"],  # mended and run again
        ["# Parameters\nsede = [0]", "# Parameters\nseeds = [0]"],
        [
            "profile = 'quick'",
            "for profile in ['quick']: x = 1",
            "%time x = 1",
            "profile, x = 'quick', 1",
        ],
        ["", "def profile():\n    return 1", "tables = 3", "profile[0] = 1\nx = 2"],
    ],
)
def test_other_cells_are_no_parameters(cells):
    assert parameters_module.read_parameters(Settings, {"seeds": [0]}, cells) == Settings(seeds=[0])


@pytest.fixture
def shell():
    """An IPython that runs cells in this process, as a kernel does."""
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def small_notebook(folder):
    """The small notebook's parameters cell and setup cell as an ipynb."""
    small = jupytext.read(SMALL)
    small.cells = [cell for cell in small.cells if cell.cell_type == "code"][:2]
    nbformat.write(small, folder / "small.ipynb")
    return folder / "small.ipynb"


@pytest.mark.refused
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"profil": "quick"}, "unknown notebook parameter 'profil'. Did you mean 'profile'"),
        ({"np": 1}, "unknown notebook parameter 'np'"),
        ({"pd": 1}, "unknown notebook parameter 'pd'"),
        ({"open": 1}, "unknown notebook parameter 'open'"),
        ({"_x": 1}, "unknown notebook parameter '_x'"),
        ({"In": 1}, "unknown notebook parameter 'In'"),
        ({"get_ipython": 1}, "unknown notebook parameter 'get_ipython'"),
        ({"page": 1, "device": "cpu"}, "unknown notebook parameter 'page'"),
        ({"device": 1}, "device must be str"),
        ({"profile": "[0]"}, "profile '\\[0]'"),
    ],
)
def test_what_papermill_injects_is_checked(shell, stores, capsys, tmp_path, given, message):
    small = papermill.iorw.load_notebook_node(str(small_notebook(tmp_path)))
    small = papermill.parameterize.parameterize_notebook(small, given)
    results = [shell.run_cell(cell.source, store_history=True) for cell in small.cells]
    with pytest.raises(BadInput, match=message):
        results[-1].raise_error()
    shown = capsys.readouterr().out.strip()
    assert shown.startswith("BadInput: ") and "\n" not in shown  # no traceback


def test_the_setup_cell_runs_again_and_reads_a_changed_parameter(shell, stores, tmp_path):
    parameters, setup = (cell.source for cell in nbformat.read(small_notebook(tmp_path), 4).cells)
    for source in (parameters, setup, setup, parameters.replace("quick", "paper"), setup, setup):
        shell.run_cell(source, store_history=True).raise_error()
    assert shell.user_ns["settings"].profile == shell.user_ns["page"].profile == "paper"
    shell.run_cell(parameters + "\nsede = [0]", store_history=True).raise_error()
    with pytest.raises(BadInput, match="'sede'"):
        shell.run_cell(setup, store_history=True).raise_error()
    shell.run_cell(parameters, store_history=True).raise_error()
    shell.run_cell(setup, store_history=True).raise_error()


def test_papermill_itself_refuses_a_name_that_an_import_takes(tmp_path):
    with pytest.raises(
        papermill.PapermillExecutionError, match="BadInput: unknown notebook parameter 'plt'"
    ):
        papermill.execute_notebook(small_notebook(tmp_path), None, {"plt": 3}, progress_bar=False)


def cells_of(path):
    """(parameters cell, all other code cells), as syntax trees."""
    code = [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    own = [cell for cell in code if "parameters" in cell.metadata.get("tags", [])]
    assert len(own) == 1
    return ast.parse(own[0].source), [ast.parse(cell.source) for cell in code if cell is not own[0]]


def bound(nodes):
    """The names that statements give to a notebook itself, not to a function or a comprehension in
    it."""
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(
            node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            yield from bound(ast.iter_child_nodes(node))


# one_cell is installed by its own first cells, and is no page
PAGES = [path for path in NOTEBOOKS if path.stem != "one_cell"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_parameters_stay_what_they_are_until_the_setup_cell_runs_again(path):
    parameters, others = cells_of(path)
    names = parameters_module.assigned(ast.unparse(parameters))
    assert names[:2] == ["profile", "device"]
    assert not set(names) & {name for cell in others for name in bound(cell.body)}


@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.stem != "batch"], ids=lambda path: path.stem
)
def test_a_page_opens_again_with_all_its_parameters_and_runs_nothing(path, stores):
    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"][:2]
    namespace = {"__name__": "__main__"}
    for source in (*cells, cells[1], 'data_dir = "."; profile = "paper"', cells[1]):
        exec(source, namespace)
    settings = namespace["page"].settings
    assert settings.profile == namespace["page"].profile == "paper"
    assert sorted(parameters_module.assigned(cells[0])) == sorted(
        field.name for field in fields(settings)
    )
    assert not any(store.exists() for store in stores)


def test_a_mean_has_a_deviation_from_two_values_on():
    assert statistics.spread(pd.Series([61.26])) == "61.3"
    assert statistics.spread([60.0, 62.0]) == "61.0 ± 1.4"
    assert statistics.spread(np.array([60.0, 62.0, 64.0])) == "62.0 ± 2.0"
    # half of the best is no fall; below it is, whatever the mean over tasks
    assert statistics.spread([30.0, 60.0]) == "45.0 ± 21.2"
    assert statistics.spread([20.0, 60.0, 64.0]) == "48.0 ± 24.3 (median 60.0; 1 of 3 collapsed)"
    rows = pd.DataFrame({"variant": "AP", "task": ["a", "b"] * 2, "seed": [0, 0, 1, 1]})
    rows = rows.assign(group="other", test=[90.0, 10.0, 90.0, 80.0])
    (line,) = statistics.group_table(rows).to_dict("records")
    assert line["other"] == "67.5 ± 24.7 (median 67.5; 1 of 4 collapsed)"
    assert statistics.task_table(rows).loc["AP", "b"] == "45.0 (median 45.0; 1 of 2 collapsed)"
    assert statistics.names_of_fallen(rows) == ["AP on b, seed 0: 10.0 %"]


@pytest.mark.parametrize("cell", ["block", "prepared_on"])
def test_a_run_falls_within_its_own_block_or_source_of_prompts(cell):
    rows = pd.DataFrame({"variant": "AP", "task": "a", "seed": [0, 1] * 2})
    rows = rows.assign(test=[90.0, 80.0, 20.0, 9.0])
    assert statistics.fallen(rows).tolist() == [False, False, True, True]
    for values in ([0, 0, 1, 1], [(0, 1)] * 2 + [2.0] * 2):  # blocks may be several
        assert statistics.fallen(rows.assign(**{cell: values})).tolist() == [False] * 3 + [True]


def test_a_mean_leads_to_its_runs_and_the_rest_of_its_table_is_text():
    one, other = (SimpleNamespace(id=id) for id in ("1f2e", "3a4b"))
    table = pd.DataFrame(
        {
            "<method>": ["a < b", "c"],
            "mean": [statistics.spread([2, 3], [one, other]), "–"],
            "seeds": [2, 0],
        }
    )
    shown = page_module.linked(table, "ap.table-1", [one, other])
    assert shown.to_dict("list") == {
        "&lt;method&gt;": ["a &lt; b", "c"],
        "mean": ['<a href="../records/ap.table-1.html?runs=1f2e,3a4b">2.5 ± 0.7</a>', "–"],
        "seeds": [2, 0],
    }
    assert isinstance(shown.index, pd.RangeIndex)  # which is not shown
    assert list(
        page_module.linked(table.set_index("<method>"), "ap.table-1", [one, other]).index
    ) == ["a &lt; b", "c"]
    with pytest.raises(BadInput, match="over runs that records= lacks"):
        page_module.linked(table, "ap.table-1", [one])


def test_a_page_says_what_its_records_were_made_with(monkeypatch):
    monkeypatch.setattr(records, "is_current", lambda record: record.id != "old")
    monkeypatch.setattr(records, "versions", lambda: {"torch": "2.10.0+cpu", "timm": "1.0.20"})

    def made(id, torch="2.10.0", timm="1.0.20"):
        return records.Record(
            id, "key", "test", {}, "", "", "", {}, versions={"torch": torch, "timm": timm}
        )

    assert page_module.with_age("Counted.", ()) == "Counted."
    assert (
        page_module.with_age(
            "Counted.", [made("a"), records.Record("b", "key", "test", {}, "", "", "", {})]
        )
        == "Counted."
    )
    assert page_module.with_age("Counted.", [made("old"), made("a"), made("a")]) == (
        "Counted. 1 of 2 records was made by older code."
    )
    assert page_module.with_age(
        "Counted.", [made("a", "2.9.0+cu128"), made("b", "2.8.0"), made("c")]
    ) == ("Counted. 2 of 3 records were made with torch 2.8.0 or 2.9.0 (here: 2.10.0).")
    assert page_module.with_age("Counted.", [made("old", "2.9.0"), made("b", timm="1.0.3")]) == (
        "Counted. 1 of 2 records was made by older code. "
        "All 2 records were made with torch 2.9.0 (here: 2.10.0) and timm 1.0.3 "
        "(here: 1.0.20)."
    )


def claim(direction, **fields):
    base = papers.Claim(
        "ap.table-1.x", "ap.table-1", "Table 1", "gain", direction, "why", ("derived",)
    )
    return replace(base, **fields)


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-5, 5))
def test_greater_and_less_are_mirror_images(middle, half, margin):
    low, high = middle - half, middle + half
    up = judging.verdict(claim("greater", margin=margin), low, high, "derived")
    assert up == judging.verdict(claim("less", margin=-margin), -high, -low, "derived")
    assert (up == "agrees") == (low > margin)
    assert (up == "disagrees") == (high < margin)


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-5, 5), st.floats(0, 3))
def test_equal_wants_the_interval_inside(middle, half, published, tolerance):
    low, high = middle - half, middle + half
    found = judging.verdict(
        claim("equal", published=published, tolerance=tolerance), low, high, "derived"
    )
    inside = published - tolerance <= low and high <= published + tolerance
    apart = high < published - tolerance or low > published + tolerance
    assert found == ("agrees" if inside else "disagrees" if apart else "inconclusive")


@pytest.fixture
def page(capsys):
    return page_module.Page("ap_theory", Settings())


def test_what_only_the_papers_own_runs_settle_is_not_judged_by_fewer(page):
    claim = "ivpt.table-5.ivpt-over-vpt-huge"
    assert (
        "trend" not in papers.claim(claim).settles and "replicated" in papers.claim(claim).settles
    )
    page.judge(claim, 1.0, 0.5, 1.5, evidence="trend")
    assert page.claims[claim]["verdict"] == "not judged" and "these are a part" in str(
        page.claims[claim]
    )


def test_a_page_refuses_what_is_not_its_own(page):
    table = pd.DataFrame({"a": [1]})
    with pytest.raises(BadInput, match="Did you mean 'ap.lemma-1'"):
        page.show("ap.lema-1", table, evidence="derived", how="counted", caption="c")
    with pytest.raises(BadInput, match="unknown evidence 'measurd'"):
        page.show("ap.lemma-1", table, evidence="measurd", how="counted", caption="c")
    with pytest.raises(BadInput, match="needs alt="):
        page.show("ap.lemma-1", plt.figure(), evidence="derived", how="counted", caption="c")
    with pytest.raises(BadInput, match="unknown claim"):
        page.judge("ap.lemma-1.befor", 0, evidence="derived")
    with pytest.raises(BadInput, match="unknown evidence for ap.lemma-1.before"):
        page.judge("ap.lemma-1.before", 0, evidence="trend")


def test_a_slider_shows_its_middle_picture_until_a_script_runs():
    pictures = {f"P = {n}": plt.figure(figsize=(1, 1)) for n in (8, 16, 32)}
    numbers = [picture.number for picture in pictures.values()]
    text = page_module.figure_html(pictures, "Time & <P>", "derived", "counted", "", "a line")
    box = BeautifulSoup(text, "html.parser").select_one("figure .vp-slices")
    assert [image["alt"] for image in box.find_all("img")] == [
        f"{label}: a line" for label in pictures
    ]
    assert [
        image["data-label"] for image in box.find_all("img") if not image.has_attr("hidden")
    ] == ["P = 16"]
    slider = box.find("input", type="range")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "1")
    assert slider["aria-label"] == "Slider: Time & <P>" and slider.find_parent("label").has_attr(
        "hidden"
    )
    assert not any(map(plt.fignum_exists, numbers))
    with pytest.raises(BadInput, match="two pictures or more"):
        page_module.figure_html({"P = 8": plt.figure()}, "c", "derived", "counted", "", "a line")
    with pytest.raises(BadInput, match="needs alt="):
        page_module.figure_html(
            {"a": plt.figure(), "b": plt.figure()}, "c", "derived", "counted", "", None
        )
    plt.close("all")


def test_a_page_does_not_close_with_an_artifact_forgotten(page):
    page.show(
        "ap.lemma-1", pd.DataFrame({"a": [1]}), evidence="derived", how="counted", caption="c"
    )
    with pytest.raises(BadInput, match="no figure, table or not_run for ap.theorem-1. Add"):
        page.close()
    page.not_run("ap.theorem-1", command="make book", why="a test")
    page.close()


def test_every_artifact_has_one_notebook():
    notebooks = manifests.load_yaml(paths.MANIFESTS / "notebooks.yaml")
    listed = [id for entry in notebooks.values() for id in entry["artifacts"]]
    assert len(listed) == len(set(listed)) and set(listed) <= set(papers.artifacts().index)
    missing = sorted(set(papers.artifacts().index) - set(listed))
    assert not missing, (
        f"write {missing[0]} under the page that shows it in data_manifests/notebooks.yaml"
    )


def test_every_artifact_has_its_heading_and_its_cell():
    for page, entry in manifests.load_yaml(paths.MANIFESTS / "notebooks.yaml").items():
        text = (paths.ROOT / "notebooks" / f"{page}.py").read_text(encoding="utf-8")
        for id in entry["artifacts"]:
            assert f"({id})=\n" in text, (
                f"notebooks/{page}.py lacks a heading with '({id})=' above it"
            )
            assert f'name="{id}"' in text, f'notebooks/{page}.py lacks a cell with name="{id}"'
