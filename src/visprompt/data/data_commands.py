"""`visprompt data list | info NAME | fetch NAME… | verify | where`."""

import argparse
import sys
from collections.abc import Callable, Mapping

from ..errors import BadInput
from ..words import summary


def add_commands(
    data: argparse.ArgumentParser, of_artifacts: Callable[[list[str], bool], list[str]]
) -> None:
    """Add the commands of `visprompt data`; `of_artifacts` turns artifacts into data set names."""
    actions = data.add_subparsers(dest="action", required=True)
    folder = {"help": "data folder; else $VISPROMPT_DATA, else one in your cache"}

    def add(name, function):
        action = actions.add_parser(name, help=summary(function))
        action.set_defaults(run=function)
        return action

    add("list", list_all)
    info = add("info", info_of)
    info.add_argument("name")
    info.add_argument("--croissant", action="store_true", help="as JSON-LD after Croissant 1.0")
    get = add("fetch", fetch_named)
    told = "a data set, or an artifact for all that it needs"
    get.add_argument("names", nargs="+", metavar="name", help=told)
    get.set_defaults(of_artifacts=of_artifacts)
    get.add_argument("--dry-run", action="store_true", help="only how much it is")
    get.add_argument("--weights", action="store_true", help="an artifact's checkpoints too")
    get.add_argument("--data-dir", **folder)
    check = add("verify", verify_named)
    check.add_argument("names", nargs="*", metavar="name")
    check.add_argument("--data-dir", **folder)
    add("where", where).add_argument("--data-dir", **folder)


def list_all(args) -> None:
    """The papers' data sets: name, access, tasks, licence, bytes to fetch as far as published."""
    from .catalogue import datasets

    for name, dataset in datasets().items():
        listed = sum(file.get("bytes", 0) for file in dataset.listed)
        size = sum(dataset.sizes.values()) + listed  # torchvision, slow to import, states none
        cells = name, dataset.access, ",".join(dataset.tasks), dataset.licence
        print(*cells, f"{size:,}" if size else "-", sep="\t")


def info_of(args) -> None:
    """Show a data set: licence, files, checksums, tasks, and what has to be done by hand."""
    import json

    from .catalogue import croissant, find

    dataset = find(args.name)
    if args.croissant:
        print(json.dumps(croissant(dataset), indent=1))
        return
    print(f"{dataset.name}: {dataset.title}, {dataset.about}")
    for label in ("citation", "home", "licence", "access"):
        print(f"{label}: {getattr(dataset, label)}")
    print(f"other names: {', '.join(dataset.aliases) or '-'}")
    for file in dataset.files:
        size = f"{file.size:,} bytes" if file.size else "size not published"
        checksum = file.checksum or "no checksum published"
        print(f"file: {file.name}, {size}, {checksum} ({file.source})")
        for address in file.addresses:
            print(f"      {address}")
    for task, about in dataset.tasks.items():
        kind, classes = about["benchmark"], about["classes"]
        print(f"task: {task} ({kind}): {classes:,} classes; {said_of(about)}")
    for number, step in enumerate(dataset.steps, 1):
        print(f"step {number}: {step}")
    print(f"unverified: {', '.join(dataset.unverified) or '-'}")


def fetch_named(args) -> None:
    """Download data sets to the data folder; existing files stay, broken downloads continue."""
    from .catalogue import chosen
    from .fetching import data_folder, fetch, total

    folder = data_folder(args.data_dir)
    names = args.of_artifacts(args.names, args.weights and not args.dry_run)
    if not names:
        return
    findings = fetch(*names, data_dir=args.data_dir, dry_run=args.dry_run)
    tell(findings)
    rest, unknown = total(findings)
    if args.dry_run:
        more = f" and {unknown} files of unknown size" if unknown else ""
        print(f"to fetch: {rest:,} bytes{more}")
    undone = []
    for dataset in chosen(names):
        mine = [row for row in findings if row.dataset == dataset.name]
        missing = [row.file for row in mine if row.state == "missing"]
        if dataset.access != "open" and (missing or not dataset.files):
            print(f"{dataset.name} needs a person; its folder is {folder / dataset.name}")
            for number, step in enumerate(dataset.steps, 1):
                print(f"  {number}. {step}")
        if missing:
            undone.append(f"{dataset.name} ({', '.join(missing)})")
    if undone and not args.dry_run:
        then = "Follow the steps, then give the same command again."
        raise BadInput(f"still missing: {'; '.join(undone)}. {then}")


def verify_named(args) -> None:
    """Compare existing files with the published checksums and those of the first download."""
    from . import catalogue
    from .fetching import LOCK, data_folder, verify

    findings = verify(*args.names, data_dir=args.data_dir)
    tell(findings)
    # readable without what was fetched
    there = {name for name in args.names if counted(name, args.data_dir)}
    there = {catalogue.find(name).name for name in there}
    wrong = [
        f"{row.dataset}/{row.file}"
        for row in findings
        if row.state == "other bytes" or row.state == "missing" and row.dataset not in there
    ]
    if wrong:
        raise BadInput(f"not as they should be: {', '.join(wrong)}. Delete them and fetch again.")
    if not findings and not there:
        folder = data_folder(args.data_dir)
        print(f"nothing was fetched to {folder} yet (no {LOCK})", file=sys.stderr)


def counted(name: str, data_dir: str | None) -> int:
    """Compare classes and pictures of a data set's tasks with its manifest.

    Returns:
        How many of the tasks are there.

    Raises:
        BadInput: another number of classes, or the folder cannot be read.
    """
    from . import catalogue
    from .fetching import data_folder
    from .layouts import read_items, task_folder
    from .tasks import SPLITS, embedded_tasks

    there = 0
    for task, about in catalogue.find(name).tasks.items():
        if about["benchmark"] not in ("vtab-1k", "fgvc", "full", "amount"):
            continue
        try:
            folder = task_folder(data_folder(data_dir), task, embedded_tasks())
        except BadInput:  # nobody has put it there yet
            continue
        classes, parts = read_items(folder)
        if len(classes) != about["classes"]:
            raise BadInput(
                f"{task} has {len(classes)} classes in {folder.root}, and "
                f"{about['classes']} where it is whole."
            )
        splits = ", ".join(f"{split} {len(part):,}" for split, part in zip(SPLITS, parts))
        print(f"{task}: {len(classes)} classes, {splits}; in the papers {said_of(about)}")
        there += 1
    return there


def said_of(about: Mapping) -> str:
    """The numbers of images of a task: the paper's, and those of released lists that differ."""
    counts = {
        key: ", ".join(f"{part} {count:,}" for part, count in about[key].items())
        for key in ("splits", "released")
        if key in about
    }
    return " or, in released lists, ".join(counts.values()) or "no counts printed"


def where(args) -> None:
    """Print the data folder."""
    from .fetching import data_folder

    print(data_folder(args.data_dir))


def tell(findings) -> None:
    """Print one finding per line."""
    for row in findings:
        size = "-" if row.size is None else f"{row.size:,} bytes"
        print(row.dataset, row.file, row.state, size, sep="\t")
