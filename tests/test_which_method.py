"""The page "Which method?" and the front page's finding are made from the kept runs."""

import re
import statistics

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from visbook.chapters import real
from visbook.site import compare, overview, scatter, which_method
from visbook.studies import grids, rates
from visbook.studies.case import rate_name
from visbook.studies.statistics import gain
from visprompt import papers, paths
from visprompt.manifests import load_yaml

RESULTS = {"artifacts": {id: {"notebook": "spt"} for id in papers.artifacts().index}}


@pytest.fixture(scope="module")
def every():
    return overview.overview()


def test_a_method_s_accuracy_is_the_mean_of_its_kept_runs(every):
    frame = real.photographs()
    means = frame.groupby(["variant", "task"]).test.mean().groupby("variant").mean()
    assert {one.name: round(one.accuracy, 6) for one in every} == means.round(6).to_dict()
    assert [one.accuracy for one in every] == pytest.approx(sorted(means, reverse=True))


def test_the_finding_says_of_each_method_what_the_rule_says(every):
    text = BeautifulSoup(overview.finding(), "html.parser").get_text()
    above, rest = text.split(" are more accurate than ", 1)
    for one in every:
        assert (f"{one.name} ({one.accuracy:.1f} %)" in above) == (one.way == "above"), one.name
    proposed = {name for slug in papers.papers() for name in overview.proposes(slug)}
    open_ = {one.name for one in every if one.way == "open"} & proposed
    told = re.search(r"propose, .*? above it; (.*) not clearly different", rest)[1]
    assert {name for name in proposed if f"{name} (" in told} == open_
    assert rest.endswith(
        f"The setting is small: {overview.LIMITS[0].lower()}{overview.LIMITS[1:]}."
    )


def test_the_lesson_of_the_photographs_names_the_methods_that_are_above(every):
    (lesson,) = load_yaml(paths.ROOT / "book/stories.yaml")["real_images"]["takes"][:1]
    names = re.search(r"photographs, (.*) are ahead of VPT-Deep: most", lesson["says"])[1]
    above = {one.name for one in every if one.way == "above"}
    assert {*re.split(", | and ", names)} == {name.replace("Full", "full") for name in above}
    leads = real.photographs().groupby(["variant", "task"]).test.mean().unstack()
    leads = leads.loc[[*above]] - leads.loc[overview.BASE]
    assert leads.mean().idxmax() == "gtsrb" and leads.mean().idxmin() == "dtd10"
    assert {*leads.columns[leads.loc["AP"] > 0]} == {"gtsrb", "caltech101"}
    assert "it is ahead on two data sets of five. The others are level with" in lesson["says"]
    others = leads.drop("AP")
    assert (others.dtd10.abs() < 1).all() and (others.drop(columns="dtd10") > 0).all(axis=None)
    ap = leads.loc["AP"].round(1)
    told = load_yaml(paths.ROOT / "book/stories.yaml")["ap_peft"]["takes"][1]["says"]
    assert (
        f"AP is {ap.gtsrb} points above VPT-Deep on traffic signs and {ap.caltech101} on Ca" in told
    )
    means = real.photographs().groupby(["variant", "task"]).test.mean().unstack()
    shallow = means.loc["AP"] - means.loc["VPT-Shallow"]
    assert ((shallow > 0) == (leads.loc["AP"] > 0)).all() and "below both methods on the" in told


def test_methods_that_leave_the_network_alone_are_told_from_those_that_change_it(every):
    above = [one for one in every if one.way == "above"]
    alone = [one for one in above if one.kind == overview.LEAVES]
    follows = overview.finding().partition("What follows:</strong> ")[2]
    assert follows.startswith(
        f"in this setting {len(above) - len(alone)} of these {len(above)} meth"
    )
    second = which_method.advice({}, None).partition("stay as it is")[2]
    means = real.photographs().groupby(["variant", "task"]).test.mean().unstack()
    for one in alone:
        leads = means.loc[one.name] - means.loc[overview.BASE]
        rest = f"{leads.drop(leads.idxmax()).mean():.1f} on average".replace("-", "−")
        said = f"it is ahead on {(leads > 0).sum()} of 5 sets: +{leads.max():.1f} points on "
        assert f"{one.name} does not; {said}" in follows and rest in follows
        assert said in second and rest in second and one.name in second


def test_what_keeps_spt_below_full_fine_tuning_is_told(every):
    spt, full = (
        [one for one in every if one.name == n][0] for n in ("SPT-Deep", "Full fine-tuning")
    )
    story = load_yaml(paths.ROOT / "book/stories.yaml")["spt"]
    told = " ".join(line["says"] for line in story["ours"] + story["takes"] if "says" in line)
    behind = full.runs.loc["gtsrb"].mean() - spt.runs.loc["gtsrb"].mean()
    assert len(spt.fell) == 1 and f"one collapsed run of {spt.runs.size})" in told
    assert f"({full.accuracy - spt.without:.1f} without one" in told
    assert f"On traffic signs it is {behind:.1f} points below." in told
    (deep,) = (one for one in every if one.name == overview.BASE)
    assert f"and {spt.without - deep.accuracy:.1f} above without one collapsed run" in told


def test_ivpt_is_below_on_drawings_of_the_middle_sized_network():
    frame = compare.drawn_runs("benchmark")
    assert gain(frame, "iVPT", overview.BASE).here[2] < 0


def test_the_best_method_is_said_to_be_alone_only_where_it_is(every):
    first, *_ = which_method.advice({}, None).split("</li>")
    open_ = {name for name, way in which_method.against(every[0].name).items() if way == "open"}
    assert ("clearly above that of every other method" in first) == (not open_)
    assert all(name in first for name in open_)


def test_a_method_that_cannot_be_told_from_the_best_is_named(monkeypatch, every):
    """Also one whose lead over the base is open, such as one with a collapsed run."""
    best, other = every[0].name, next(one for one in every if one.way == "open")
    beside = dict.fromkeys((one.name for one in every), "below") | {other.name: "open"}
    monkeypatch.setattr(which_method, "against", lambda name: {best: beside}[name])
    first, *_ = which_method.advice({}, None).split("</li>")
    assert f"though {other.name} cannot be told from it" in first
    assert f"{other.name} (" not in first and "every other method" not in first


def test_a_mean_without_its_fallen_runs_and_where_a_lead_lies(every):
    frame = real.photographs()
    for one in (one for one in every if one.fell):
        rows = frame[frame.variant == one.name]
        kept = rows[[(t, s) not in one.fell for t, s in zip(rows.task, rows.seed)]]
        assert one.without == pytest.approx(kept.groupby("task").test.mean().mean())
        assert 0 not in {seed for _, seed in one.fell}  # the seed that chose the learning rate
    means = frame.groupby(["variant", "task"]).test.mean().unstack()
    above = means.loc[[one.name for one in every if one.way == "above"]].mean()
    leads = (above - means.loc[overview.BASE]).sort_values()
    told = overview.finding().replace("−", "-")
    for end, place in (("largest", -1), ("smallest", 0)):
        task = overview.TITLES[leads.index[place]]
        assert f"{end}, {leads.iloc[place]:+.1f} points on {task}" in told


def test_the_limits_that_the_pages_name_are_those_of_the_runs():
    frame = real.photographs()
    settings = [record.settings for record in frame.record]
    assert {s["backbone"] for s in settings} == {real.REAL} and "tiny" in real.REAL
    assert {s["image_size"] for s in settings} == {112}
    assert {s["recipe"]["epochs"] for s in settings} == {10}
    assert overview.LIMITS == "One ViT-Tiny, images of 112 pixels, ten epochs"


def test_every_search_on_photographs_is_bracketed_but_the_one_that_the_page_names():
    kept = real.kept_rows("tune", tasks=grids.scope_of("real").tasks["real"], backbone=real.REAL)
    kept = [r for r in kept if r.settings["recipe"]["precision"] == "float32"]
    rows, at_an_end = [], set()
    for part in real.alike(kept):
        method, task = part[0].settings["method"], part[0].settings["task"]
        field = rate_name(method)
        middle = getattr(rates.recipe_at(method, None), field)
        three = [r for r in part if middle / 6 < r.settings["recipe"][field] < middle * 6]
        (best, tried), (first, near) = real.at_best_rate(part), real.at_best_rate(three)
        best, first = (  # of the seeds that both rates were run with
            [r for r in runs if r.settings["seed"] in range(3)] for runs in (best, first)
        )
        assert len(near) == 3 and len(best) == len(first) == 3
        if best[0].settings["recipe"][field] in (tried[0], tried[-1]):
            assert rates.further(tried, best[0].settings["recipe"][field], middle, 3) is None
            at_an_end.add((method, task))
        if real.of_variants(part):
            means = [statistics.mean(r.values["test"] for r in runs) for runs in (best, first)]
            rows.append((method, best[0] is not first[0], *means))
    assert at_an_end == {("vp", "dtd10")}
    moved = pd.DataFrame(rows, columns=["method", "other", "best", "first"])
    lead = moved.groupby("method").best.mean() - moved.groupby("method")["first"].mean()
    told = (paths.ROOT / "notebooks/real_images.py").read_text().replace("\n# ", " ")
    again = f"smaller rates raised VP by {lead['vp']:.1f} points"
    assert again in (paths.ROOT / "book/stories.yaml").read_text()
    assert f"in {moved.other.sum()} of {len(moved)} searches" in told
    rose = f"rose by {lead.pop('vp'):.1f} points for VP and by {lead.pop('vpt-shallow'):.1f} for"
    assert rose in told and 0.1 < lead.abs().max() < 0.2
    means = real.photographs().groupby(["variant", "task"]).test.mean()
    vp, probe = means["VP"], means["Linear probe"]
    assert f"({vp['dtd10']:.1f} and {probe['dtd10']:.1f} %)" in told
    assert {*vp.index[vp < probe]} == {"dtd10", "caltech101", "ucmerced"}  # the page on AP


def test_a_picture_has_a_mark_for_every_method_and_a_cross_for_every_fallen_seed(every):
    shown = BeautifulSoup(scatter.picture(every, scatter.AXES["share"]), "html.parser")
    assert [mark["data-slug"] for mark in shown.find_all("g")] == [one.slug for one in every]
    crosses = {mark["data-slug"] for mark in shown.find_all("g") if mark.select(".vp-fell")}
    assert crosses == {one.slug for one in every if one.fell}
    for mark, one in zip(shown.find_all("g"), every, strict=True):
        assert len(mark.select("circle:not(.vp-mean), .vp-fell")) == one.runs.shape[1]


def test_the_table_has_every_method_with_what_a_budget_asks(every):
    page = BeautifulSoup(which_method.which(RESULTS, None), "html.parser")
    heads = page.select("thead th")
    rows = page.select("tbody tr")
    assert len(rows) == len(every) and all(len(row("td")) == len(heads) for row in rows)
    assert {row.span["data-kind"] for row in rows} == set(overview.KINDS)
    assert all(float(row.span["data-memory"]) > 0 for row in rows)
    shown = [picture for picture in page.select("svg") if not picture.has_attr("hidden")]
    assert len(page.select("svg")) == 3 * (1 + len(every[0].runs)) and len(shown) == 1


def test_advice_names_no_method_that_lies_below_the_base(every):
    first, _, second, _ = BeautifulSoup(which_method.advice({}, None), "html.parser")("li")
    for one in every:
        assert one.way == "above" or f"{one.name} (" not in first.strong.get_text()
        assert one.way != "below" or f"{one.name} (" not in second.strong.get_text()


def test_far_from_imagenet_the_best_small_methods_are_named(every):
    """Nothing of at most 1 % is better on the task where the linear probe is lowest."""
    told = BeautifulSoup(which_method.advice({}, None), "html.parser")("li")[1].get_text()
    means = real.photographs().groupby(["task", "variant"]).test.mean().unstack()
    task = means["Linear probe"].idxmin()
    small = means.loc[task, [one.name for one in every if one.share <= 1]].sort_values()
    named = [f"{name} ({value:.1f} %)" for name, value in small.items()]
    assert all(words in told for words in named[-3:]) and overview.TITLES[task] in told
    assert not any(words in told for words in named[:-3])


def test_a_reader_s_result_is_compared_with_the_photographs_too():
    """Under the name that papers print, where they have the same data set."""
    rows = compare.on_photographs(["CIFAR-100", "Clevr/count"])
    frame = real.photographs()
    mine = frame[(frame.task == "cifar100") & (frame.variant == "VPT-Deep")].test
    (row,) = [row for row in rows if row[:2] == ["CIFAR-100", "VPT-Deep"]]
    assert row[3:5] == [round(mine.mean(), 1), f"{mine.std():.1f}"] and "112 pixels" in row[5]
    assert {row[0] for row in rows} > {"CIFAR-100", "gtsrb"}
