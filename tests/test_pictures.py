"""The pictures of the methods chapter: one a method, readable, none like another; and its table of
settings."""

import functools
import importlib
from dataclasses import fields

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch, Rectangle

import visprompt as vp
from visbook.chapters.methods import settings_rows
from visbook.pages import diagrams, plots
from visbook.pages.diagrams import hooked
from visprompt.errors import BadInput

# Counterparts of the papers' own drawings, and two pictures that explain the rest.
OTHERS = [
    "vit",
    "davpt.figure-1",
    "ivpt.figure-1",
    "ivpt.figure-3",
    "spt.figure-s2",
    "keys-and-values",
]
HOOKED = [
    f"hooked {slug}"
    for slug in ("linear-probe", "full-finetune", "vp", "vpt-shallow", "lora", "da-vpt-plus")
]


@functools.cache
def drawn(name):
    """A figure with its renderer, and the words on it with the rectangles they take, in pixels."""
    figure = hooked.recipe(name.split()[1])() if name.startswith("hooked ") else diagrams.draw(name)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    words = [text for text in figure.axes[0].texts if text.get_text()]
    return (
        figure,
        canvas,
        [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in words],
    )


def share(first, second):
    """How much two rectangles overlap, in pixels along the shorter side; 0 where they are apart."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return max(0, min(width, height))


def test_every_method_has_a_picture_with_words_for_who_cannot_see_it():
    assert set(plots.NAMES) >= set(vp.METHODS)
    texts = [
        diagrams.alt(name) for name in {**diagrams.RECIPES, **dict.fromkeys([*vp.METHODS, *OTHERS])}
    ]
    assert len(set(texts)) == len(texts)
    assert all(len(text) > 60 and text.endswith(".") and "\n" not in text for text in texts)


def test_a_method_without_a_picture_of_its_own_is_drawn_from_its_hooks(monkeypatch):
    monkeypatch.delitem(diagrams.RECIPES, "da-vpt")
    assert hooked.hooks_of("da-vpt") == ["before_block", "around", "extra", "loss"]
    assert diagrams.alt("da-vpt").endswith("3 the keys and values of a block, 4 the loss.")
    assert [text.get_text() for text in diagrams.draw("da-vpt").axes[0].texts].count(
        "4"
    ) == 2  # on the head, in the list
    assert hooked.hooks_of("full-finetune") == ["trained"] and hooked.hooks_of("linear-probe") == []


def test_an_unknown_picture_is_refused():
    with pytest.raises(BadInput, match="Did you mean 'lora'"):
        diagrams.draw("lorra")
    with pytest.raises(BadInput, match="unknown method"):
        settings_rows("vit")


@pytest.mark.parametrize("name", [*vp.METHODS, *OTHERS, *HOOKED])
def test_no_word_meets_another_or_leaves_the_canvas(name):
    figure, _, words = drawn(name)
    page = figure.bbox
    assert figure.get_figwidth() == diagrams.WIDTH
    for index, (text, box) in enumerate(words):
        assert (
            page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        ), text
        for other, its in words[index + 1 :]:
            assert share(box, its) < 1, f"{text!r} meets {other!r}"
    assert min(text.get_fontsize() for text in figure.axes[0].texts) >= 7
    assert all(
        text.get_fontsize() >= 9 for text in figure.axes[0].texts if len(text.get_text()) > 1
    )


@pytest.mark.parametrize("name", [*vp.METHODS, *OTHERS, *HOOKED])
def test_every_word_lies_in_a_box_or_beside_it(name):
    """A word that crosses the edge of a box or a token belongs to neither."""
    figure, canvas, words = drawn(name)
    for shape in figure.axes[0].patches:
        if not isinstance(shape, (FancyBboxPatch, Rectangle)) or shape.get_gid() == "canvas":
            continue
        edge = shape.get_window_extent(canvas.get_renderer())
        for text, box in words:
            if len(text) > 1 and share(edge, box) > 2:
                inside = (
                    edge.x0 <= box.x0
                    and box.x1 <= edge.x1
                    and edge.y0 <= box.y0
                    and box.y1 <= edge.y1
                )
                assert inside, f"{text!r} crosses the edge of a box"


def test_no_picture_is_another_with_a_new_title():
    """Pixels of two pictures of one size differ in more than their words."""
    arrays = {}
    for name in diagrams.RECIPES:
        figure = diagrams.draw(name)
        for text in figure.axes[0].texts:
            text.set_visible(False)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        image = np.asarray(canvas.buffer_rgba())[..., :3]
        for other, its in arrays.items():
            if its.shape == image.shape:
                assert (its != image).any(-1).mean() > 0.005, f"{name} looks like {other}"
        arrays[name] = image


@pytest.mark.parametrize("slug", vp.METHODS)
def test_every_setting_has_its_default_and_a_reason(slug):
    rows = settings_rows(slug)
    kind = importlib.import_module(f"visprompt.methods.{slug.replace('-', '_')}").Settings
    assert [row["setting"] for row in rows] == [field.name for field in fields(kind)]
    for row in rows:
        assert eval(row["default"], {}) == getattr(kind(), row["setting"])
        assert len(row["reason"]) > 5 and "\n" not in row["reason"], row


def test_a_setting_has_the_reason_that_stands_above_or_behind_it():
    reasons = {row["setting"]: row["reason"] for row in settings_rows("da-vpt")}
    assert reasons["guided_tokens"].startswith("M, clusters of classes")
    assert reasons["guided_to"].startswith("last guided block")
