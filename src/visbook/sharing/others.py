"""Records of others that were accepted: where they lie, and what they say beside ours.

They lie apart, in no store where runs are looked up, so that no mean and no claim of the book has
them.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from visprompt.errors import BadInput
from visprompt.manifests import load_yaml
from visprompt.paths import ROOT
from visprompt.records import Record, store
from visprompt.training.recipe import recorded_recipe

from ..studies.evidence import FREE


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


def run_name(record: Record) -> str:
    """Which run a record is of, on whatever machine and in whatever precision: a hash of what was
    decided, but for `FREE`."""
    settings = dict(record.settings)
    if "recipe" in settings:
        recipe = recorded_recipe(settings)
        settings["recipe"] = {name: recipe[name] for name in recipe if name not in FREE}
    return store.short_hash([record.kind, settings, record.data, record.weights])


def beside(ours: Iterable[Record], all_of_them: Iterable[Accepted]) -> list[dict]:
    """The runs that others sent, a row each: its name, method, task, network and seed, the values
    of all who did it, ours last, and how far they are apart in points (None of one value)."""
    known: dict[str, list[Record]] = {}
    for record in ours:
        known.setdefault(run_name(record), []).append(record)
    sent: dict[str, list[dict]] = {}
    rows: dict[str, Record] = {}
    for one in all_of_them:
        for record in one.records:
            name = run_name(record)
            rows.setdefault(name, record)
            value = valued(record, one.sender["name"]) | {"equal": record.id in one.equal}
            sent.setdefault(name, []).append(value)
    found = []
    for name, record in rows.items():
        values = sent[name] + [valued(mine, "") for mine in known.get(name, ())]
        tests = [value["test"] for value in values]
        row = {part: record.settings[part] for part in ("method", "task", "backbone", "seed")}
        apart = max(tests) - min(tests) if len(tests) > 1 else None
        found.append(row | {"run": name, "values": values, "spread": apart})
    return found


def valued(record: Record, sender: str) -> dict:
    """A run's accuracy with who did it ("" means this project), where and how."""
    hardware = record.hardware
    return {
        "sender": sender,
        "test": record.values["test"],
        "precision": recorded_recipe(record.settings)["precision"],
        "machine": hardware["gpu"] or f"{hardware['cpu']}, threads: {hardware['threads']}",
        "equal": False,
    }


def own_names() -> set[str]:
    """The authors of CITATION.cff: what they send from another machine is no second party's."""
    path = ROOT / "CITATION.cff"
    cited = load_yaml(path) if path.exists() else {}
    return {author["name"] for author in cited.get("authors", ())}


def parties(runs: set[str], all_of_them: Iterable[Accepted]) -> list[str]:
    """The senders other than this project who have done all of these runs, by `run_name`.

    Runs that are equal to ours to the last digit do not count, since they might be copies.
    """
    done: dict[str, set[str]] = {}
    for one in all_of_them:
        names = {run_name(record) for record in one.records if record.id not in one.equal}
        done.setdefault(one.sender["name"], set()).update(names)
    return sorted(name for name in {*done} - own_names() if runs and runs <= done[name])
