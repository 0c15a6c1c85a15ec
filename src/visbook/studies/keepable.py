"""Which runs belong to the project: its kinds of record, and its tasks in the numbers of images
that its manifests say."""

from collections import Counter
from functools import cached_property
from itertools import chain
from pathlib import Path

from visprompt import paths
from visprompt.data import catalogue
from visprompt.data.catalogue import datasets
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.records import Record, index, keeping, store
from visprompt.words import REAL

from . import matching, plan

KINDS = {  # of records that some part of the book asks for
    *(
        "ap-end-point",
        "ap-flow",
        "ap-gradient",
        "ap-lemma-1",
        "ap-proposition-1",
        "ap-split",
        "ap-toy",
        "attention",
        "audit",
    ),
    *(
        "bench",
        "check",
        "clustering",
        "cost",
        "count",
        "data",
        "dissection",
        "drawings",
        "epochs",
        "guidance",
        "noise",
        "prompts",
    ),
    *(
        "segment",
        "shallow-hoeffding",
        "shallow-images",
        "shallow-kept",
        "shallow-lucky",
        "shallow-notation",
        "shallow-vit",
    ),
    *("tune", "turns"),
}


def keep(
    kind: str | None = None,
    *,
    method: str | None = None,
    task: str | None = None,
    study: str | None = None,
    any_data: bool = False,
    dry_run: bool = False,
) -> tuple[list[Path], Counter]:
    """Keep this machine's records that belong to the project; see `records.keeping.keep`.

    Args:
        kind: only this kind, which then need be none of `KINDS`.
        method, task: only runs with these.
        study: only runs of a study of studies.yaml.
        any_data: tasks that no manifest describes, and data sets of other counts, too.

    Raises:
        BadInput: no record has what was asked for; the message names what there is.
    """
    wanted = {
        name: value for name, value in (("method", method), ("task", task)) if value is not None
    }
    manifests, of_study = Manifests(), None if study is None else matching.of_study(study)
    for name, value in wanted.items():
        check_there(name, value, kind)

    def asked(record: Record) -> bool:
        if any(record.settings.get(name) != value for name, value in wanted.items()):
            return False
        return of_study is None or of_study(entry_like(record))

    def foreign(record: Record) -> str:
        unknown = "" if kind == record.kind else of_other_kind(record)
        return unknown or ("" if any_data else manifests.other_data(record))

    return keeping.keep(kind, asked=asked, foreign=foreign, dry_run=dry_run)


def check_there(name: str, value: str, kind: str | None) -> None:
    """That a record of this machine has a setting."""
    if kind is not None:
        choose("kind", kind, store.kinds())
    here = [
        entry["settings"].get(name) for entry in index.entries(kind) if entry["store"] == "here"
    ]
    there = {str(found) for found in here if found is not None}
    if not there:
        raise BadInput(f"no record in {store.stores()[0]} has a {name}; leave out --{name}.")
    choose(name, value, there)


def entry_like(record: Record) -> dict:
    """What `matching` reads of a record."""
    return {
        "kind": record.kind,
        "weights": record.weights,
        "about": record.about,
        "settings": index.flat(record.settings),
    }


def of_other_kind(record: Record) -> str:
    """Why a record's kind is none that the book asks for; "" where it is."""
    return (
        ""
        if record.kind in KINDS
        else f"no part of the book asks for kind {record.kind!r} (--kind {record.kind} keeps it)"
    )


class Manifests:
    """What is said of the project's tasks, read once: their numbers of images, and which sets
    profile real has."""

    @cached_property
    def embedded(self) -> dict[str, dict]:
        """The tasks that come with the project, those of segmentation among them."""
        content = load_yaml(paths.MANIFESTS / "tasks.yaml")
        return content["embedded"] | content["segmentation"]

    @cached_property
    def printed(self) -> dict[str, list]:
        """Task of a data set -> `catalogue.counts_of` its manifest's entry."""
        tasks = {
            task: about for found in datasets().values() for task, about in found.tasks.items()
        }
        return {task: catalogue.counts_of(about) for task, about in tasks.items()}

    @cached_property
    def real(self) -> set[str]:
        """The tasks that profile real names: smaller sets than their manifests'."""
        return {
            *chain(*load_yaml(paths.MANIFESTS / "studies.yaml")["profiles"][REAL]["tasks"].values())
        }

    @cached_property
    def kept(self) -> dict[str, list]:
        """Task -> the numbers of images that kept runs of profile real have."""
        found = {}
        for entry in index.entries("tune"):
            about = entry["about"]
            if entry["store"] == "kept" and about.get("profile") == REAL and about.get("split"):
                counts, task = about["split"]["counts"], entry["settings"]["task"]
                found[task] = [
                    *found.get(task, []),
                    *([] if counts in found.get(task, []) else [counts]),
                ]
        return found

    def other_data(self, record: Record) -> str:
        """Why a record's tasks are none of the project's, or not in their numbers of images; ""
        where they are."""
        tasks = [record.settings.get(name) for name in ("task", "prepared_on")]
        tasks = [task for task in tasks if isinstance(task, str)]
        real = self.real if record.about.get("profile") == REAL else ()
        for task in tasks:
            if task not in self.embedded and task not in self.printed and task not in real:
                return f"{task!r} is no task of the project's manifests (--any-data keeps it)"
        if not tasks or tasks[0] != record.settings.get("task"):
            return ""
        allowed = self.kept.get(tasks[0], []) if tasks[0] in real else None
        where = "its manifest says" if allowed is None else "the kept runs have"
        return self.other_counts(record, tasks[0], allowed, where)

    def other_counts(self, record: Record, task: str, allowed: list | None, where: str) -> str:
        """Why the numbers of images of a record's task are others than `allowed`, or than the
        manifest's; "" where not."""
        size, split = record.settings.get("train_size"), record.about.get("split")
        given = list(split["counts"]) if split else [] if size is None else [size]
        if task in self.embedded:
            most = self.embedded[task]["splits"][0] + self.embedded[task].get("pool", 0)
            right, told = (
                not split and (size is None or size <= most),
                [f"up to {most} to train on"],
            )
        else:
            allowed = self.printed[task] if allowed is None else allowed
            # val was held out of train here
            whole = [sum(given[:2]), None, *given[2:]] if plan.used_whole(task) else given
            right = not allowed or any(
                catalogue.agree(counts, known) for counts in (given, whole) for known in allowed
            )
            told = [
                "/".join("-" if count is None else str(count) for count in counts)
                for counts in allowed
            ]
        mine = "/".join(map(str, given)) or "unknown numbers of"
        return (
            ""
            if right
            else f"{task} has {mine} images, {where} {' or '.join(told)} (--any-data keeps it)"
        )
