"""Records of others that were accepted: where they lie, and what they say beside ours.

They lie apart, in no store where runs are looked up, so that no mean and no claim of the book has
them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from visprompt.errors import BadInput
from visprompt.records import Record, store


@dataclass(frozen=True)
class Accepted:
    """A submission that was accepted.

    Attributes:
        equal: ids of records that have the values of one of ours to the last digit, by which nobody
            can see who ran them.
    """

    folder: Path
    sender: dict
    date: str
    checked: list[str]
    equal: list[str]
    records: list[Record]


def home() -> Path:
    """The folder of all that was accepted, one below it for each file."""
    return store.stores()[1].with_name("records_of_others")


def accepted() -> list[Accepted]:
    """What was accepted, oldest first.

    Raises:
        BadInput: a file is damaged.
    """
    found = []
    for path in sorted(home().glob("*/accepted.json")):
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            named = (about[name] for name in ("sender", "date", "checked", "equal"))
            records = [store.read_record(file) for file in store.files(path.parent)]
            found.append(Accepted(path.parent, *named, records))
        except (OSError, ValueError, KeyError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"{path} is damaged ({error}); accept the file again.") from None
    return sorted(found, key=lambda one: one.date)


def beside(ours: Sequence[Record], all_of_them: Sequence[Accepted]) -> list[dict]:
    """The runs that others have of ours, a row each: values of both, sender and machine."""
    known = {record.key: record for record in ours}
    rows = []
    for one in all_of_them:
        for record in one.records:
            mine = known.get(record.key)
            rows.append(
                {
                    "sender": one.sender["name"],
                    "machine": record.hardware["gpu"] or record.hardware["cpu"],
                    "method": record.settings["method"],
                    "task": record.settings["task"],
                    "backbone": record.settings["backbone"],
                    "seed": record.settings["seed"],
                    "precision": record.settings["recipe"]["precision"],
                    "theirs": record.values["test"],
                    "ours": None if mine is None else mine.values["test"],
                    "equal": record.id in one.equal,
                }
            )
    return rows


def parties(keys: set[str], all_of_them: Sequence[Accepted]) -> int:
    """How many parties have run all of these runs, this project among them.

    Runs that are equal to ours to the last digit do not count, since they might be copies.
    """
    who = {
        one.sender["name"]
        for one in all_of_them
        if keys and keys <= {r.key for r in one.records if r.id not in one.equal}
    }
    return 1 + len(who)
