"""Parameters are checked, claims are judged by their interval, a page forgets no artifact."""

from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from visprompt import manifests, notebook
from visprompt.errors import BadInput


@dataclass(frozen=True)
class Settings(notebook.Parameters):
    seeds: list[int] | None = None
    rate: float = 0.1
    measure: bool = False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sede": [0]}, "unknown notebook parameter 'sede'. Did you mean 'seeds'"),
        ({"seeds": "0"}, "seeds must be"),
        ({"seeds": [0.5]}, "seeds must be"),
        ({"seeds": [True]}, "seeds must be"),
        ({"rate": "fast"}, "rate must be float"),
        ({"measure": 1}, "measure must be bool"),
        ({"profile": "papper"}, "Did you mean 'paper'"),
        ({"device": "gpu"}, "unknown device"),
    ],
)
def test_a_wrong_parameter_is_refused(given, message):
    with pytest.raises(BadInput, match=message):
        notebook.read_parameters(Settings, given)


def test_right_parameters_are_read_and_notebook_names_are_ignored():
    namespace = {"In": [], "_1": 3, "pd": pd, "Settings": Settings, "seeds": [1, 2], "rate": 1, "get_ipython": len}
    assert notebook.read_parameters(Settings, namespace) == Settings(seeds=[1, 2], rate=1)


def test_text_from_the_command_line_is_read_as_a_list():
    assert notebook.read_parameters(Settings, {"seeds": "[0, 3]", "rate": "0.5"}) == Settings(seeds=[0, 3], rate=0.5)
    with pytest.raises(BadInput, match="seeds must be"):
        notebook.read_parameters(Settings, {"seeds": "[0"})


def claim(direction, **fields):
    base = manifests.Claim("ap.table-1.x", "ap.table-1", "Table 1", "gain", direction, "why", ("trend",))
    return replace(base, **fields)


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-5, 5))
def test_greater_and_less_are_mirror_images(middle, half, margin):
    low, high = middle - half, middle + half
    up = notebook.verdict(claim("greater", margin=margin), low, high)
    assert up == notebook.verdict(claim("less", margin=-margin), -high, -low)
    assert (up == "agrees") == (low > margin)
    assert (up == "disagrees") == (high < margin)


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-5, 5), st.floats(0, 3))
def test_equal_wants_the_interval_inside(middle, half, published, tolerance):
    low, high = middle - half, middle + half
    found = notebook.verdict(claim("equal", published=published, tolerance=tolerance), low, high)
    inside = published - tolerance <= low and high <= published + tolerance
    apart = high < published - tolerance or low > published + tolerance
    assert found == ("agrees" if inside else "disagrees" if apart else "inconclusive")


@pytest.fixture
def page(capsys):
    return notebook.Page("ap_theory", Settings())


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
    text = notebook.figure_html(pictures, "Time & <P>", "derived", "counted", "", "a line")
    box = BeautifulSoup(text, "html.parser").select_one("figure .vp-slices")
    assert [image["alt"] for image in box.find_all("img")] == [f"{label}: a line" for label in pictures]
    assert [image["data-label"] for image in box.find_all("img") if not image.has_attr("hidden")] == ["P = 16"]
    slider = box.find("input", type="range")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "1")
    assert slider["aria-label"] == "Slider: Time & <P>" and slider.find_parent("label").has_attr("hidden")
    assert not any(map(plt.fignum_exists, numbers))
    with pytest.raises(BadInput, match="two pictures or more"):
        notebook.figure_html({"P = 8": plt.figure()}, "c", "derived", "counted", "", "a line")
    with pytest.raises(BadInput, match="needs alt="):
        notebook.figure_html({"a": plt.figure(), "b": plt.figure()}, "c", "derived", "counted", "", None)
    plt.close("all")


def test_a_page_does_not_close_with_an_artifact_forgotten(page):
    page.show("ap.lemma-1", pd.DataFrame({"a": [1]}), evidence="derived", how="counted", caption="c")
    with pytest.raises(BadInput, match="no figure, table or not_run for ap.theorem-1, ap.lemma-2"):
        page.close()
    for artifact in ("ap.theorem-1", "ap.lemma-2", "ap.lemma-3", "ap.proposition-1"):
        page.not_run(artifact, command="make book", why="a test")
    page.close()


def test_every_artifact_has_one_notebook_at_most():
    notebooks = manifests.load_yaml(manifests.ROOT / "data_manifests" / "notebooks.yaml")
    listed = [id for entry in notebooks.values() for id in entry["artifacts"]]
    assert len(listed) == len(set(listed)) and set(listed) <= set(manifests.artifacts().index)
    assert {id for id in listed if id.startswith("ap.")} == set(manifests.artifacts("ap").index)  # the finished paper
