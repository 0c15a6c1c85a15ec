"""What runs are evidence of: made-up records reach every word, and each thing that is not the
paper's costs `replicated`."""

from dataclasses import asdict, replace

import pandas as pd
import pytest

from visbook.chapters.chapter import Chapter
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.page import Page
from visbook.studies import evidence, plan
from visbook.studies.roles import recipe_scope
from visprompt.data import catalogue
from visprompt.records import Record
from visprompt.training.protocol import protocol
from visprompt.training.recipe import load_recipe
from visprompt.words import REHEARSED

LISTS = "0123456789ab"


@pytest.fixture(autouse=True)
def known_lists(monkeypatch):
    """Somebody has noted the lists of every task."""
    found = {}
    for name, one in catalogue.datasets().items():
        tasks = {task: {**about, "lists": LISTS} for task, about in one.tasks.items()}
        found[name] = catalogue.DataSet(**{**vars(one), "tasks": tasks})
    monkeypatch.setattr(catalogue, "datasets", lambda: found)


def made_up(
    method="spt-deep", task="dtd", seed=0, backbone="vit_base_patch16_224.mae", test=50.0
) -> Record:
    """A record as SPT's own run of a method would leave it."""
    own, group = protocol("spt"), catalogue.group(task)
    about = next(one.tasks[task] for one in catalogue.datasets().values() if task in one.tasks)
    counts = [about["splits"][part] for part in ("train", "val", "test")]
    settings = {
        "method": method,
        "method_settings": {},
        "backbone": backbone,
        "task": task,
        "seed": seed,
    }
    settings |= {
        "train_size": sum(counts[:2]) if own.joins(group) else counts[0],
        "resize": own.resize(group),
    }
    settings["recipe"] = asdict(load_recipe("spt", method, True, **own.of_group(group)))
    how = {
        "profile": "paper",
        "recipe": "spt",
        "weights": "published",
        "split": {"counts": counts, "lists": LISTS},
    }
    values = {"test": test, "val": test, "fit_seconds": 1.0, "parameters": {"method": 1}}
    return Record(
        f"{method} {task} {seed} {backbone}",
        "",
        "tune",
        settings,
        "",
        "fedcba987654",
        "",
        values,
        about=how,
    )


def three(**changes) -> list[Record]:
    return [made_up(seed=seed, **changes) for seed in range(3)]


def changed(record: Record, where: str, **values) -> Record:
    return replace(record, **{where: getattr(record, where) | values})


def test_the_papers_own_runs_are_replicated():
    assert evidence.of_records(
        [*three(), *three(task="cub_200_2011"), *three(method="linear-probe")], "spt"
    ) == (
        "replicated",
        "",
    )


@pytest.mark.parametrize(
    ("where", "values", "why"),
    [
        ("settings", {"backbone": "vit_small_patch16_224"}, "is not a backbone of the paper"),
        ("settings", {"architecture": {"rehearsal": {}}}, "is not a backbone of the paper"),
        ("about", {"weights": "from a file"}, "no manifest knows the weights fedcba987654"),
        ("settings", {"task": "digits"}, "digits is no data set of the paper"),
        ("settings", {"task": "dtd10"}, "in the paper -"),
        (
            "about",
            {"split": {"counts": [800, 200, 700], "lists": LISTS}},
            "dtd has 800, 200, 700 images, in the paper 800, 200",
        ),
        (
            "about",
            {"split": {"counts": [800, 200, 1880], "lists": "ba9876543210"}},
            "no manifest knows the lists of dtd",
        ),
        ("about", {"split": None}, "dtd has - images"),
        ("settings", {"train_size": 400}, "dtd was learned from 400 images"),
        ("about", {"recipe": "quick"}, "its recipe is 'quick', not 'spt'"),
        (
            "settings",
            {"recipe": asdict(load_recipe("spt", "spt-deep", True, epochs=3))},
            "epochs is 3, in the paper's recipe 100",
        ),
        ("settings", {"resize": "crop"}, "pictures were resized by 'crop'"),
        ("about", {"rehearsal": REHEARSED}, "the numbers mean nothing"),
    ],
)
def test_what_is_not_the_papers_makes_a_trend(where, values, why):
    word, said = evidence.of_records([*three(), changed(made_up(), where, **values)], "spt")
    assert word == "trend" and why in said


def test_narrowed_runs_few_seeds_and_none_are_a_trend():
    assert evidence.of_records(three()[:2], "spt") == ("trend", "2 of 3 seeds were run")
    assert evidence.of_records(three(), "spt", "its list of runs was narrowed") == (
        "trend",
        "its list of runs was narrowed",
    )
    assert evidence.of_records([], "spt")[0] == "trend"
    assert len(plan.conditions("spt", "paper")[1]) == 3


def test_a_searched_rate_and_a_precision_are_no_difference():
    recipe = load_recipe("spt", "spt-deep", True, learning_rate=0.005, precision="bf16")
    runs = [changed(record, "settings", recipe=asdict(recipe)) for record in three()]
    assert evidence.of_records(runs, "spt")[0] == "replicated"


def rows(lead: float, *, tasks, **changes) -> pd.DataFrame:
    """SPT-Deep and VPT-Deep on some tasks, the first ahead by a lead."""
    found = []
    for number, task in enumerate(tasks):
        for variant, method, ahead in (
            ("SPT-Deep", "spt-deep", lead + number % 3 - 1),
            ("VPT-Deep", "vpt-deep", 0.0),
        ):
            for seed in range(3):
                record = made_up(method, task, seed, test=50 + ahead * (1 + seed / 10), **changes)
                row = {
                    "variant": variant,
                    "task": task,
                    "seed": seed,
                    "backbone": record.settings["backbone"],
                }
                row |= {
                    "test": record.values["test"],
                    "record": record,
                    "train_size": record.settings["train_size"],
                }
                found.append(row | {"group": catalogue.group(task), "run": None})
    return pd.DataFrame(found)


@pytest.mark.parametrize(
    ("lead", "verdict"), [(8.0, "agrees"), (-8.0, "disagrees"), (0.0, "inconclusive")]
)
def test_a_replicated_claim_says_that_a_paper_is_right_or_wrong(lead, verdict):
    p = ChapterParameters(profile="paper")
    chapter = Chapter(Page("spt", p), p, [], [])
    chapter.frames = {}
    frame = rows(lead, tasks=recipe_scope("spt", "paper").tasks["pretraining"])
    chapter.judge(
        "spt.table-2.mae-over-vpt", frame, "SPT-Deep", "VPT-Deep", on="pretraining", parts=["mae"]
    )
    found = chapter.page.claims["spt.table-2.mae-over-vpt"]
    assert (found["evidence"], found["verdict"]) == ("replicated", verdict)


def test_the_same_runs_on_a_narrowed_list_only_show_a_direction():
    p = ChapterParameters(profile="paper", epochs=100)
    chapter = Chapter(Page("spt", p), p, [], [])
    chapter.frames = {}
    frame = rows(8.0, tasks=recipe_scope("spt", "paper").tasks["pretraining"])
    chapter.judge(
        "spt.table-2.mae-over-vpt", frame, "SPT-Deep", "VPT-Deep", on="pretraining", parts=["mae"]
    )
    found = chapter.page.claims["spt.table-2.mae-over-vpt"]
    assert (found["evidence"], found["verdict"]) == ("trend", "seen here")
    assert "epochs" in chapter.evidence(frame.record)[1]
