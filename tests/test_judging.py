"""What a claim is answered with: two families of words, intervals that hold, and what cannot be
judged here."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from visbook.chapters.chapter import Chapter
from visbook.pages import judging
from visbook.pages import page as page_module
from visbook.pages.parameters import Parameters
from visbook.site import claims as site_claims
from visbook.site import results, tables
from visbook.studies import comparable, grids, statistics
from visprompt import papers
from visprompt.errors import BadInput
from visprompt.words import (
    ALIKE,
    EVIDENCE,
    NOT_JUDGED,
    NOT_RUN,
    SIGHTINGS,
    VERDICTS,
    WEIGHTS,
    answers,
)

SOME = papers.Claim(
    "spt.figure-s1.x",
    "spt.figure-s1",
    "Figure S1",
    "a difference",
    "greater",
    "why",
    EVIDENCE,
    margin=0.0,
)
VPT = "spt.table-s3.deep-over-shallow"  # speaks of 19 data sets
SPANS = {"yes": (1.0, 3.0), "no": (-3.0, -1.0), "neither": (-1.0, 3.0)}


class Made:
    """A record that was made up: a run of a small network."""

    def __init__(self, task="letters", seed=0, backbone="vit_micro_patch4_24"):
        self.settings, self.id = (
            {"task": task, "backbone": backbone, "recipe": {"epochs": 2}},
            f"{task}{seed}{backbone}",
        )


RUNS = [Made("letters"), Made("position")]


def said(evidence, span, claim=SOME, records=RUNS):
    return judging.judged(claim, sum(span) / 2, *span, evidence, records, "")


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_every_word_is_reached_and_no_family_speaks_for_the_other(evidence):
    words = [said(evidence, span)["verdict"] for span in SPANS.values()]
    assert words == list(SIGHTINGS if evidence == "trend" else VERDICTS)
    assert not {*words} & {*(VERDICTS if evidence == "trend" else SIGHTINGS)}


@given(
    st.floats(-10, 10),
    st.floats(0, 5),
    st.sampled_from(["greater", "less", "equal"]),
    st.floats(-5, 5),
    st.floats(0, 3),
)
def test_a_trend_never_agrees_nor_disagrees(middle, half, direction, published, tolerance):
    claim = replace(
        SOME, direction=direction, published=published, margin=published, tolerance=tolerance
    )
    for evidence in EVIDENCE:
        assert judging.verdict(claim, middle - half, middle + half, evidence) in answers(evidence)
    assert judging.verdict(claim, middle - half, middle + half, "trend") in SIGHTINGS


def test_a_trend_within_a_point_of_nothing_says_so():
    ways = [((-0.9, 0.9), "no difference"), ((-1.1, 0.9), "open"), ((0.1, 0.9), "seen here")]
    claim = replace(SOME, direction="greater", margin=0)
    for (low, high), word in ways:
        assert judging.verdict(claim, low, high, "trend", 1.0) == word
    assert judging.verdict(claim, -0.9, 0.9, "replicated", 1.0) == "inconclusive"
    assert judging.verdict(claim, -0.9, 0.9, "trend") == "open"


def test_words_of_the_families_are_written_once():
    everything = [*VERDICTS, *SIGHTINGS, ALIKE, NOT_JUDGED, NOT_RUN]
    assert len(set(everything)) == len(everything) == len(tables.EVERY)
    assert {"agrees", "disagrees"} <= {*VERDICTS}


def test_a_trend_says_on_which_images():
    assert said("trend", (1, 2))["images"] == "Drawings: letters, position."
    real = said("trend", (1, 2), records=[Made("digits")])["images"]
    assert real.startswith("Real images: digits")
    mixed = said(
        "trend",
        (1, 2),
        records=[Made("digits"), Made("dtd10", backbone="vit_tiny_patch16_224"), *RUNS],
    )["images"]
    told = "Drawings and real images: digits, letters, position, dtd10; vit_tiny_patch16_224."
    assert mixed == told
    assert said("derived", (1, 2), records=[])["images"] == ""
    with pytest.raises(BadInput, match="on which data"):
        said("trend", (1, 2), records=[])


def test_one_task_does_not_stand_for_several_data_sets():
    many = replace(SOME, data_sets=19)
    found = said("trend", (1, 2), many, [Made("letters", 0), Made("letters", 1)])
    assert (
        found["verdict"] == NOT_JUDGED
        and found["estimate"] is None
        and "19 data sets" in found["note"]
    )
    assert said("trend", (1, 2), many)["verdict"] == "seen here"
    assert said("trend", (1, 2), SOME, [Made("letters")])["verdict"] == "seen here"  # one for one


def test_an_interval_has_a_width_and_possible_bounds():
    share = replace(SOME, least=0, most=100, margin=50)
    found = said("derived", (99.0, 100.5), share)
    assert (found["low"], found["high"]) == (99.0, 100.0)
    same = judging.judged(share, 100, 100, 100, "trend", RUNS, "")
    assert (same["low"], same["high"], same["verdict"]) == (
        None,
        None,
        "open",
    ) and "no interval" in same["note"]
    alone = judging.judged(share, 100, None, None, "trend", RUNS, "")
    assert alone["verdict"] == "open"  # a trend has an interval, or can decide nothing
    exact = judging.judged(share, 100, None, None, "derived", [], "")
    assert (exact["low"], exact["high"], exact["verdict"]) == (100, 100, "agrees")


def test_one_measurement_is_judged_once(monkeypatch):
    shown = []
    monkeypatch.setattr(page_module, "display", lambda thing: shown.append(thing.data))
    page = page_module.Page("spt", Parameters())
    one, same, other = (
        "spt.figure-4.mae-few-images",
        "spt.figure-s3.mae-few-images",
        "spt.figure-s3.mae-many-images",
    )
    span = {"evidence": "trend", "records": RUNS}
    page.judge(one, 2, 1, 3, **span)
    page.judge(one, 2, 1, 3, **span)  # its cell is run again
    assert page.claims[one]["verdict"] == "seen here"
    page.judge(same, 2, 1, 3, **span)
    page.judge(other, 2, 1, 4, **span)
    assert (
        page.claims[same]["verdict"] == NOT_JUDGED
        and one in page.claims[same]["note"]
        and one in shown[2]
    )
    assert page.claims[other]["verdict"] == "seen here"
    page.judge(same, 2, 1, 3, evidence="trend", records=[Made("count")])
    # the same numbers of other runs are another measurement
    assert page.claims[same]["verdict"] == "seen here"


def test_of_claims_on_two_pages_the_weightier_is_judged():
    slope, lemma = "ap.theorem-1.layer-1-slope", "ap.theorem-1.layer-1-free"
    assert papers.claim(slope).weight == "core" and papers.claim(lemma).weight != "core"
    claim = papers.claim(slope)
    found = {c.id: {"estimate": None, "notebook": None} for c in papers.claims()}
    entry = {**judging.judged(claim, 1.0, 0.9, 1.1, "derived", RUNS, ""), "notebook": "ap_theory"}
    found |= {lemma: entry, slope: dict(entry)}
    results.judge_once(found)
    assert found[slope]["verdict"] != NOT_JUDGED and found[lemma]["verdict"] == NOT_JUDGED
    assert slope in found[lemma]["note"]


def frame(values: dict, seeds: int, size: int = 800) -> pd.DataFrame:
    """Rows of {(variant, task): function of the seed}, on one backbone."""
    rows = [
        {
            "variant": v,
            "task": t,
            "seed": s,
            "test": f(s),
            "train_size": size,
            "backbone": "b",
            "record": Made(t, s, v),
        }
        for (v, t), f in values.items()
        for s in range(seeds)
    ]
    return pd.DataFrame(rows)


def coverage(
    interval, tasks: int, seeds: int, of_tasks: float, of_seeds: float, trials: int = 400
) -> float:
    """How often an interval of a table (seeds, tasks) with these deviations holds the mean it was
    drawn around."""
    draw = np.random.default_rng(7)
    tables = of_tasks * draw.normal(size=(trials, 1, tasks)) + of_seeds * draw.normal(
        size=(trials, seeds, tasks)
    )
    spans = [interval(pd.DataFrame(table))[1:] for table in tables]
    return np.mean([low <= 0 <= high for low, high in spans])


def bootstrap(table: pd.DataFrame, draws: int = 400) -> tuple[float, float, float]:
    """Percentiles of means over tasks drawn with replacement, and seeds within each."""
    draw, values = np.random.default_rng(0), table.to_numpy()
    seeds, tasks = values.shape
    task = draw.integers(tasks, size=(draws, 1, tasks))
    means = values[draw.integers(seeds, size=(draws, seeds, tasks)), task].mean((1, 2))
    return values.mean(), *np.percentile(means, [2.5, 97.5])


@pytest.mark.parametrize(("of_tasks", "of_seeds"), [(3.0, 1.0), (1.0, 3.0)])
def test_an_interval_over_tasks_holds_what_it_promises(of_tasks, of_seeds):
    """Known variances: 95 % with three tasks too, where a bootstrap or seeds alone fall far
    short."""
    assert 0.92 <= coverage(statistics.over_tasks, 3, 3, of_tasks, of_seeds) <= 0.98
    assert coverage(bootstrap, 3, 3, of_tasks, 0.1 * of_seeds, 200) < 0.85
    of_seeds_alone = coverage(lambda table: statistics.interval(table.mean(axis=1)), 3, 3, 3.0, 1.0)
    assert of_seeds_alone < 0.7


def test_of_many_tasks_the_bootstrap_says_the_same():
    draw = np.random.default_rng(1)
    table = pd.DataFrame(2 * draw.normal(size=(1, 60)) + draw.normal(size=(5, 60)))
    ours, theirs = statistics.over_tasks(table), bootstrap(table, 4000)
    assert ours[0] == pytest.approx(theirs[0]) and ours[2] - ours[1] == pytest.approx(
        theirs[2] - theirs[1], rel=0.15
    )


def test_one_task_has_its_seeds_for_repetitions_and_two_have_no_interval():
    one = pd.DataFrame({"a": [1.0, 2.0, 4.0]})
    assert statistics.over_tasks(one) == pytest.approx(statistics.interval([1, 2, 4]))
    assert statistics.over_tasks(one.assign(b=2.0))[1:] == (-np.inf, np.inf)
    gap = {
        ("a", "x"): lambda s: 50 + s,
        ("a", "y"): lambda s: 60.0,
        ("b", "x"): lambda s: 40.0,
        ("b", "y"): lambda s: 55.0,
    }
    found = statistics.gain(frame(gap, 3), "a", "b")
    assert found.mean == pytest.approx(8.0) and found.elsewhere == (-np.inf, np.inf)


def test_a_cell_near_chance_leaves_the_mean():
    cells = itertools.product("ab", ["letters", "position", "texture"])
    values = {
        (v, t): (
            lambda s, v=v, t=t: (
                {"letters": 5.0}.get(t, 60.0) + (v == "a") * (9 if t == "letters" else 2)
            )
        )
        for v, t in cells
    }
    near = {key: f for key, f in values.items()}
    near["a", "letters"] = lambda s: 6.0
    rows, why = comparable.whole(frame(near, 3), ["a", "b"], ["letters", "position", "texture"])
    assert (
        why == ""
        and rows.attrs["near_chance"] == ["letters on b"]
        and set(rows.task) == {"position", "texture"}
    )
    assert statistics.gain(rows, "a", "b").mean == pytest.approx(2.0)
    rows, why = comparable.whole(frame(values, 3), ["a", "b"], ["letters", "position", "texture"])
    assert rows.attrs["near_chance"] == [] and statistics.gain(
        rows, "a", "b"
    ).mean == pytest.approx((9 + 2 + 2) / 3)
    rows, why = comparable.whole(frame(near, 3), ["a", "b"], ["letters"])
    assert not len(rows) and "near chance" in why and "letters on b" in why


@pytest.mark.parametrize(("best", "judged"), [(60.0, True), (90.0, False)])
def test_above_full_finetuning_is_not_asked_where_that_always_wins(best, judged, monkeypatch):
    monkeypatch.setattr(page_module, "display", lambda thing: None)
    names = ("SPT-Deep", "VPT-Deep", "Full fine-tuning")
    levels = dict(zip(names, (70.0, 75.0, best), strict=True))
    cells = itertools.product(names, ["letters", "position", "texture"])
    rows = frame({(v, t): (lambda s, v=v: levels[v] + s) for v, t in cells}, 3)
    chapter = Chapter.__new__(Chapter)  # without any run: what it has is given here
    chapter.page, chapter.scope = page_module.Page("spt", Parameters()), grids.scope_of("quick")
    chapter.guessed, chapter.__dict__["frames"] = {}, {"benchmark": rows}
    found = chapter.answers(
        "spt.table-s3.supervised-over-full", rows, ["SPT-Deep", "Full fine-tuning"], "vtab"
    )
    assert bool(len(found)) is judged
    assert ("spt.table-s3.supervised-over-full" in chapter.page.claims) is not judged
    # other questions are asked all the same
    assert len(chapter.answers(VPT, rows, ["SPT-Deep", "VPT-Deep"], "vtab"))
    assert len(chapter.answers(VPT, rows, ["Full fine-tuning", "VPT-Deep"], "vtab"))


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.123456, 0, "0.123"),
        (12.3456, 0, "12.3"),
        (-1234.5, 0, "-1,234"),
        (-0.99998, 0, "-1.00"),
        (55330.0, 0, "55,330"),
        (304.3256, 0.005, "304.326"),
        (0.0, 0.5, "0"),
        (1.5e-12, 0, "1.50e-12"),
    ],
)
def test_numbers_have_three_digits_or_those_that_a_tolerance_needs(value, step, text):
    assert judging.number(value, step) == text


def test_conditions_read_like_sentences():
    equal = replace(SOME, direction="equal", published=0.0, tolerance=0.0)
    assert judging.condition(equal) == "exactly 0"
    assert judging.condition(replace(equal, tolerance=0.015)) == "at most 0.015 from 0"
    assert judging.condition(replace(equal, published=2.83, tolerance=0.01)) == "2.83 ± 0.01"
    assert judging.condition(replace(SOME, direction="less", margin=0.11)) == "below 0.11"
    counted = replace(equal, exceptions=True)
    assert judging.condition(counted) == "no exceptions"
    one = {"estimate": 1.0, "low": 1.0, "high": 1.0}
    assert judging.found_text(counted, one) == "1 exception"
    points = replace(SOME, metric="accuracy of A minus B, MAE, points")
    assert judging.condition(points) == "above 0 points"
    three = {"estimate": 1.0, "low": -0.5, "high": 2.5}
    assert judging.found_text(points, three) == "1 [-0.500, 2.50] points"
    for metric, told in (
        ("AP minus VP, points", "exactly 0 points"),
        ("leads, MAE, points for each doubling", "exactly 0 points"),
        ("entries, thousands", "exactly 0 thousand"),
        ("a share, %", "exactly 0 %"),
        ("a share, per cent of all", "exactly 0"),
        ("how many points", "exactly 0"),
    ):
        assert judging.condition(replace(equal, metric=metric)) == told
    assert (
        judging.sentence("mean Acc.") == "Mean Acc."
        and judging.sentence("iVPT wins") == "iVPT wins."
    )


@pytest.mark.parametrize(
    "text, told",
    [
        ("0.02", "The paper prints 0.02."),
        ("80.45 against 76.03", "The paper prints 80.45 against 76.03."),
    ],
)
def test_a_cell_without_words_is_told_to_be_printed(text, told):
    assert judging.printed(replace(SOME, printed=text)) == told
    assert judging.printed(replace(SOME, printed="AP wins")) == "AP wins."


def test_mathematics_is_handed_to_mathjax_and_nothing_else_is():
    page = BeautifulSoup(judging.rich(r"<b> grows as $1/\alpha_* < \eta$, 5 < 6"), "html.parser")
    assert page.select_one("span.math").get_text() == r"\(1/\alpha_* < \eta\)" and not page.find(
        "b"
    )
    for claim in papers.claims():
        for text in (claim.printed, claim.metric, claim.why):
            assert text.count("$") % 2 == 0, claim.id
            assert judging.re.sub("[^“”]", "", text) in ("", "“”"), claim.id
            # scars of a line's end
            assert not judging.re.search(r"\w- \w|\.\.(?!\.)", text.replace(" .. ", "")), claim.id


def test_a_claim_on_a_page_leads_with_the_paper_and_has_an_address():
    claim = papers.claim("spt.table-2.mae-over-vpt")
    text = judging.claim_html(
        claim, judging.judged(claim, 1.23456, 0.5, 2.0, "trend", RUNS, "How.")
    )
    page = BeautifulSoup(text, "html.parser")
    told = page.get_text()
    order = [told.index(part) for part in ("83.26 against 72.02", "1.23 [0.500, 2]", "How.")]
    assert order == sorted(order) and "Drawings: " in told
    assert page.find("a")["href"] == "../claims.html#spt.table-2.mae-over-vpt"
    assert [badge.get_text() for badge in page.select(".vp-badge")] == ["seen here", "trend"]


def test_weights_are_given_to_all_and_core_is_little():
    for slug in papers.papers():
        weights = [claim.weight for claim in papers.claims(slug)]
        assert set(weights) <= {*WEIGHTS}
        assert 1 <= weights.count("core") <= 9, f"{slug}: one to nine claims have the weight core"


def made_results():
    """Results in which every word stands for some claim, with the evidence that may say it."""
    claims = papers.claims("spt")
    kinds = (
        [(word, "derived") for word in VERDICTS]
        + [(word, "trend") for word in SIGHTINGS]
        + [(NOT_JUDGED, None), (NOT_RUN, None)]
    )
    nothing = {
        "estimate": None,
        "low": None,
        "high": None,
        "images": "",
        "records": [],
        "note": "",
        "notebook": None,
        "parties": [],
        "spread": None,
    }
    found = {
        c.id: {**nothing, "verdict": w, "evidence": e}
        for c, (w, e) in zip(claims, itertools.cycle(kinds))
    }
    found |= {
        c.id: {**nothing, "verdict": NOT_RUN, "evidence": None}
        for c in papers.claims()
        if c.id not in found
    }
    empty = {"evidence": NOT_RUN, "shows": [], "not_run": None, "notebook": None}
    return {
        "claims": found,
        "artifacts": {id: empty for id in papers.artifacts().index},
        "findings": [],
    }


def test_every_claim_has_a_row_with_its_id(tmp_path):
    page = BeautifulSoup(site_claims.explorer(made_results(), tmp_path), "html.parser")
    assert [tag["id"] for tag in page.find_all(id=True)] == [claim.id for claim in papers.claims()]
    rows = dict(
        zip((tag["id"] for tag in page.find_all(id=True)), page.select("tbody tr"), strict=True)
    )
    assert (
        "83.26 against 72.02" in rows["spt.table-2.mae-over-vpt"].get_text()
        and "Acc.." not in page.get_text()
    )
    trends = [row for row in page.select("tbody tr") if row.select(".vp-trend")]
    assert trends and not any(row.select(".vp-agrees, .vp-disagrees") for row in trends)
