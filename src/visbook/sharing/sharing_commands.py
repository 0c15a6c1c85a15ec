"""Records sent to others and accepted from them, on the command line."""

import secrets
import sys
from pathlib import Path

from visprompt.errors import BadInput

from ..studies.record_commands import FILES, FOLDER


def submit(args) -> None:
    """Pack this machine's records of training into one file for another's book, after showing what
    it says."""
    from visprompt.records import store

    from . import sending
    from .form import Sender

    wanted = {"method": args.method, "task": args.task}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    found, refused = sending.chosen(
        lambda record: all(record.settings.get(name) == value for name, value in wanted.items())
    )
    for why, number in refused.items():
        print(f"{number} stay here: {why}", file=sys.stderr)
    if not found:
        raise BadInput("no record of this machine can be sent.")
    sender = Sender(args.name, args.contact, args.licence)
    text = sending.packed(found, sender)
    print(sending.told(found, sender, text))
    if args.dry_run:
        print("nothing is written")
        return
    store.write_whole(Path(args.out), text)
    print(f"{args.out} can be sent")


def accept(args) -> None:
    """Check records that another sends, run a drawn few of them again, and keep them beside ours if
    all holds."""
    from ..studies.weights import files_of
    from .accepting import accept

    seed = secrets.randbits(63)  # the sender cannot know which runs are drawn
    for name in ("rerun", "epochs"):
        if (number := getattr(args, name)) is not None and number < (name == "epochs"):
            raise BadInput(f"--{name} takes a whole number from {int(name == 'epochs')} on.")
    found, done, place = accept(
        Path(args.file),
        files_of(args.weights),
        args.data_dir,
        count=args.rerun,
        seed=seed,
        epochs=args.epochs,
        dry_run=args.dry_run,
    )
    for line in found.checked:
        print(line)
    for one in done:
        print(f"{one.run}, {one.epochs} epochs again: sent {one.sent}, here {one.here}")
    print(f"accepted as {place}" if place else "all holds; nothing is written")


DRY_RUN = ("--dry-run", {"action": "store_true", "help": "write nothing"})
COMMANDS = {  # function -> its options
    submit: [
        ("--name", {"required": True, "help": "the sender's, as the book may show it"}),
        ("--contact", {"required": True, "help": "likewise, such as an address"}),
        ("--licence", {"default": "CC BY 4.0", "help": "of the values (CC BY 4.0)"}),
        ("--method", {"help": "only runs of this method"}),
        ("--task", {"help": "only runs on this task"}),
        ("--out", {"default": "submission.json", "help": "the file (submission.json)"}),
        DRY_RUN,
    ],
    accept: [
        ("file", {"help": "what visprompt submit wrote"}),
        (
            "--rerun",
            {"type": int, "default": 3, "metavar": "N", "help": "runs to do again, drawn (3)"},
        ),
        ("--epochs", {"type": int, "help": "only the first epochs of each"}),
        DRY_RUN,
        FILES,
        FOLDER,
    ],
}
