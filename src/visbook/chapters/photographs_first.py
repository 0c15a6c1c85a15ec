"""Claims that photographs can answer are judged by them; embedded tasks are named beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from visprompt.data.tasks import group_of

from ..pages.friendly import spread
from ..studies import comparable, statistics

if TYPE_CHECKING:
    from .chapter import Chapter

LABELLED = ("supervised", "ap-vit")  # ViTs pre-trained on labels, as the one of photographs


def answer(
    chapter: Chapter,
    frame: pd.DataFrame,
    pair: tuple[str, str],
    on: str | Sequence[str],
    parts: Sequence[str] = (),
) -> statistics.Gain | None:
    """The gain of a pair's first over its second on photographs, for a question asked of some rows.

    None where photographs cannot answer: the question is of another pre-training than labelled
    images, or of a group of tasks, such as the fine-grained, of which no photographs are kept.
    """
    plain = {part: chapter.scope.backbones.get(part) for part in LABELLED}
    asked = {*frame.backbone} if len(frame) and not parts else set()
    if not {*parts} <= {*plain} or not asked <= {*plain.values()}:
        return None
    groups = {*map(group_of, tasks_of(chapter, on))}
    rows = chapter.photographs
    if len(groups) == 1:
        rows = rows[rows.task.map(group_of).isin(groups)]
    return statistics.gain(rows, *pair)


def judge(
    chapter: Chapter,
    claim: str,
    seen: statistics.Gain,
    frame: pd.DataFrame,
    pair: tuple[str, str],
    on: str | Sequence[str],
    parts: Sequence[str],
) -> None:
    """Hold a gain on photographs against a claim, and say what embedded tasks show."""
    own = [chapter.scope.backbones[part] for part in parts if part in chapter.scope.backbones]
    drawn, _ = comparable.whole(frame, pair, tasks_of(chapter, on), own)
    there = {record.settings["task"] for record in seen.records}
    rows = chapter.photographs
    fell = statistics.told_of_fallen(rows[rows.variant.isin(pair) & rows.task.isin(there)])
    told = f"{' − '.join(pair)}: {seen.counted}. {chapter.reach(claim, seen)} {fell}"
    if other := statistics.gain(drawn, *pair):
        told += f" On embedded tasks {spread(*other.here)}"
        told += f": {other.counted}."
    chapter.page.judge(
        *(claim, *seen.here),
        evidence="trend",
        records=seen.records,
        note=" ".join(told.split()),
        alike=1.0,
    )


def tasks_of(chapter: Chapter, on: str | Sequence[str]) -> list[str]:
    """The tasks that a claim is about, by their part of studies.yaml or one by one."""
    return list(chapter.scope.tasks[on] if isinstance(on, str) else on)
