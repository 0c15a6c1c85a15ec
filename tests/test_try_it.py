"""The cell "Try it": a record of its own beside the book's number."""

import re

import pytest

import visprompt as vp
from visbook.chapters import try_it
from visprompt.records import store


@pytest.fixture
def told(monkeypatch):
    """What the cell has displayed, as text."""
    found = []
    plain = lambda shown: found.append(re.sub(r"<[^>]+>|\s+", " ", shown.data))
    monkeypatch.setattr(try_it, "display", plain)
    return found


def test_a_run_is_shown_beside_the_books_and_found_again(told, tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "records").symlink_to(store.stores()[1])
    monkeypatch.setattr(store, "ROOT", tmp_path)
    for _ in range(2):
        try_it.try_it("linear-probe", images=40, epochs=1)
    assert told[0] == told[1]
    assert "40 images, 1 epochs" in told[0] and "in the book" in told[0] and "±" in told[0]
    assert len([*tmp_path.glob("build/records/tune/**/*.json")]) == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"method": "spt"}, "unknown method 'spt'"),
        ({"method": "bias", "task": "cub"}, "unknown drawn task"),
        ({"method": "bias", "network": "vit"}, "unknown network"),
        ({"method": "bias", "prompt_tokens": 5}, "prompt_tokens"),
    ],
)
def test_what_cannot_be_tried_is_refused(call, said):
    with pytest.raises(vp.BadInput, match=said):
        try_it.try_it(**call)


def test_the_same_settings_are_taken_from_the_book_where_it_has_them():
    run = lambda **settings: try_it.Run(try_it.NETWORK, "position", "spt-deep", settings=settings)
    (usual,) = try_it.recorded_row(run(prompt_tokens=7))
    (drawn,) = try_it.recorded_row(run(prompt_tokens=10, start="k-means"))
    assert usual["what"].startswith("SPT-Deep") and drawn["what"].startswith("k-means")
