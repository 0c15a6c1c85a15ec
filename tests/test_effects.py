"""The difference of two methods on the tasks that were run, against its definition and by
simulation."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from visbook.studies import effects, statistics
from visprompt.errors import BadInput
from visprompt.records import test_images

TASKS = ("position", "texture", "count")


def rows(tests: dict, variant: str = "a", records=None, test=None) -> pd.DataFrame:
    """Rows of a method: task -> accuracies by seed."""
    found = [
        {
            **dict(variant=variant, backbone="m", task=task, train_size=800, seed=seed),
            "test": value,
            "record": SimpleNamespace(
                values={"test": value} if records is None else records[task][seed],
                settings={"task": task},
                about={},
            ),
        }
        for task, values in tests.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(found if test is None else [row | {"test": test} for row in found])


def test_one_task_is_welchs_test_of_two_samples_beside_its_images():
    a, b = [70.0, 72.0, 77.0], [60.0, 61.0, 63.0]
    found = effects.effect(rows({"position": a}), rows({"position": b}))
    share = np.mean(a) / 100, np.mean(b) / 100
    assert found.of_images == pytest.approx(1e4 * sum(p * (1 - p) for p in share) / 1000)
    alone = effects.Effect(found.mean, found.of_seeds, found.freedom, 0.0, 3)
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert alone.interval == pytest.approx((73 - 61 - 1 / 3, low, high))
    error = math.sqrt(sum(found.of_seeds) + found.of_images)
    assert stats.norm.ppf(0.975) * error < found.half() < stats.t.ppf(0.975, 2) * error


def test_tasks_count_alike_and_share_the_spread_of_a_method():
    a = {"position": [70.0, 72.0], "texture": [50.0, 50.0, 53.0]}
    b = {"position": [60.0, 60.0], "texture": [50.0, 50.0, 50.0]}
    found = effects.effect(rows(a), rows(b))
    assert found.mean == pytest.approx((11 + 1) / 2)
    pooled = (2 + 6) / 3  # squares over degrees of freedom
    assert found.of_seeds == pytest.approx((pooled * (1 / 2 + 1 / 3) / 4, 0.0))
    assert found.freedom == (3, 3) and found.seeds == 2


def test_the_bits_of_test_images_are_paired():
    draw = np.random.default_rng(0)
    easy = draw.random(1000)
    bits = {arm: [easy < share for _ in range(2)] for arm, share in (("a", 0.8), ("b", 0.7))}
    packed = {
        arm: {
            "position": [
                {"test": round(100 * one.mean(), 4), "right": test_images.packed(one)}
                for one in each
            ]
        }
        for arm, each in bits.items()
    }
    arms = [
        rows({"position": [value["test"] for value in packed[arm]["position"]]}, arm, packed[arm])
        for arm in "ab"
    ]
    apart = bits["a"][0].astype(float) - bits["b"][0]
    assert effects.of_images(*arms) == pytest.approx(1e4 * apart.var() / 1000)
    without = [arm.assign(record=rows({"position": arm.test}).record) for arm in arms]
    some = [pd.concat([arm.iloc[:1], less.iloc[1:]]) for arm, less in zip(arms, without)]
    assert effects.of_images(*some) == effects.of_images(*arms)  # the seeds of this test err alike
    assert effects.of_images(*without) > 2 * effects.of_images(*arms)
    assert effects.of_images(arms[0], without[1]) > 2 * effects.of_images(*arms)


def test_the_bits_of_fewer_runs_never_make_an_interval_too_narrow():
    """Over many draws, one run of three gives on average at least the variance that all give, and
    less than independent errors would."""
    draw, found = np.random.default_rng(0), []
    for _ in range(40):
        hard = draw.normal(size=1000)
        packed = [
            [
                {"test": round(100 * right.mean(), 4), "right": test_images.packed(right)}
                for right in hard + draw.normal(scale=0.5, size=(3, 1000)) < level
            ]
            for level in (0.6, 0.5)
        ]
        arms = [
            rows({"position": [run["test"] for run in arm]}, records={"position": arm})
            for arm in packed
        ]
        lone = [
            arm.assign(record=[*arm.record[:1], *rows({"position": arm.test}).record[1:]])
            for arm in arms
        ]
        none = [arm.assign(record=rows({"position": arm.test}).record) for arm in arms]
        found.append([effects.of_images(*each) for each in (arms, lone, none)])
    every, one, independent = np.mean(found, axis=0)
    assert every < one < independent


def test_how_many_images_a_folder_had_is_said_or_seen_in_the_accuracies():
    def made(test, **about):
        return SimpleNamespace(values={"test": test}, settings={"task": "own"}, about=about)

    assert effects.size([made(50.0, split={"counts": [8, 2, 700]})]) == 700
    assert effects.size([made(round(100 * right / 172, 4)) for right in (31, 86, 99)]) == 172
    with pytest.raises(BadInput, match="no number of test images"):
        effects.size([made(33.33331)])


def test_what_is_no_accuracy_has_no_error_of_images():
    faster = rows({"position": [1.0, 2.0, 3.0]}), rows({"position": [4.0, 4.0, 5.0]})
    assert effects.effect(*(arm.assign(test=arm.test / 7) for arm in faster)).of_images == 0
    masks = rows({"scenes": [33.2761, 33.5281]}), rows({"scenes": [34.2374, 37.6217]})
    for arm in masks:
        for record in arm.record:
            record.kind = "segment"  # its test value is an mIoU
    assert effects.effect(*masks).of_images == 0


def test_one_seed_has_no_interval_and_more_would_tell():
    one = effects.effect(rows({"position": [70.0]}), rows({"position": [60.0]}))
    assert one.interval[1:] == (-math.inf, math.inf) and one.seeds_to_tell(0) is None
    few = effects.Effect(2.0, (1.0, 1.0), (2, 2), 0.1, 3)
    enough = few.seeds_to_tell(0)
    assert few.half(enough) < 2.0 <= few.half(enough - 1) and few.half(3) == few.half()
    assert effects.Effect(2.0, (1.0, 1.0), (2, 2), 4.0, 3).seeds_to_tell(0) is None


def test_a_table_of_differences_keeps_its_tasks():
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [11.0, 12.0, 14.0]})
    found = effects.of_table(table)
    assert found.mean == pytest.approx(22 / 3) and found.freedom == (4,)
    assert found.of_seeds[0] == pytest.approx(table.var().mean() / 6)
    one = effects.of_table(table[["x"]])
    assert one.interval == pytest.approx(statistics.interval([1, 2, 4]))


@pytest.mark.parametrize("tasks", [1, 3])
def test_the_rule_errs_as_seldom_as_it_says(tasks):
    """No difference: at most one interval in twenty leaves 0, for tasks as unlike as they come."""
    found = effects.simulated(0.0, tasks, 3, trials=2000, of_tasks=10.0)
    assert found["above"] + found["below"] <= 0.06


def test_a_difference_is_found_more_often_by_more_seeds_and_tasks():
    power = {
        (tasks, seeds): effects.simulated(3.0, tasks, seeds, trials=600)["above"]
        for tasks in (1, 3)
        for seeds in (3, 5)
    }
    assert power[1, 3] < power[1, 5] < power[3, 5] and power[3, 3] < power[3, 5]
