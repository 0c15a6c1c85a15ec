"""What the page on released code says of each difference, from pairs of runs."""

import html
from types import SimpleNamespace

import pandas as pd

from visbook.chapters import released_pairs
from visbook.site import recipe_pages
from visbook.studies import grids, statistics
from visprompt import paths
from visprompt.manifests import load_yaml


def runs(variant: str, tests: list[float]) -> list[dict]:
    """Rows of a variant on one task, a seed each."""
    return [
        {
            **dict(variant=variant, backbone="m", task="position", train_size=800, seed=seed),
            "test": test,
            "record": SimpleNamespace(values={}, settings={"task": "position"}),
        }
        for seed, test in enumerate(tests)
    ]


def test_options_with_runs_are_sorted_by_what_they_move_and_the_others_counted(monkeypatch):
    entries = load_yaml(paths.MANIFESTS / "differences.yaml")["da-vpt"]
    entries = [entry for entry in entries if "option" in entry][:2]
    (off, one), (_, other) = (grids.pair("da-vpt", entry) for entry in entries)
    frame = runs(off, [50, 51, 52]) + runs(one, [51, 52, 53]) + runs(other, [40, 41, 42])
    monkeypatch.setattr(released_pairs, "frame", lambda: pd.DataFrame(frame))
    rows = released_pairs.rows(released_pairs.frame())
    assert [(row[1], row[2], row[4]) for row in rows] == [
        (html.escape(entries[1]["what"]), "−10.0", "3"),
        (html.escape(entries[0]["what"]), "+1.0", "3"),
    ]
    assert released_pairs.rows(pd.DataFrame()) == []
    every = released_pairs.options()
    assert f"{every - 2} of {every} options" in recipe_pages.pairs({}, None)
    monkeypatch.setattr(released_pairs, "frame", pd.DataFrame)
    assert "<table" not in recipe_pages.pairs({}, None)


def test_the_page_names_every_option_whose_interval_leaves_out_zero():
    found, clear, reach, same = released_pairs.frame(), {}, [], set()
    for slug, entries in load_yaml(paths.MANIFESTS / "differences.yaml").items():
        for entry in (entry for entry in entries if "option" in entry):
            off, on = grids.pair(slug, entry)
            got = statistics.gain(found, on, off)
            losses = [
                [record.values["loss"] for record in found[found.variant == name].record]
                for name in (off, on)
            ]
            if losses[0] == losses[1] != []:
                same.add((slug, entry["what"]))
            if got and got.here[1] * got.here[2] > 0:
                clear.setdefault(entry["what"], {})[slug] = "raises" if got.mean > 0 else "lowers"
            elif got:
                reach.append(got.here[2] - got.mean)
    raised = dict.fromkeys(("vpt-shallow", "vpt-deep", "spt-deep"), "raises")
    lowered = dict.fromkeys(("gate-vpt", "vpt-shallow", "vpt-deep", "spt-deep"), "lowers")
    assert clear == {
        "average pooling": {**raised, "spt-shallow": "lowers"},
        "the order of norm and mean": lowered,
        "blocks that are not guided": {"da-vpt": "lowers"},
        "the prompts' start": {"da-vpt": "lowers"},
        "the frame's initialisation": {"vp": "lowers"},
    }
    text = (paths.ROOT / "book" / "released-code.md").read_text(encoding="utf-8")
    few = found.groupby(["variant", "backbone"]).seed.nunique()
    assert few.min() == 3 and "three seeds cannot decide" in text
    assert same == {("da-vpt", "gradients"), ("da-vpt", "class means before clustering")}
    assert sum(1 <= half <= 4 for half in reach) > 2 * len(reach) / 3
