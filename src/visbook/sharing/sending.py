"""Pack this machine's records into one file for another's book."""

import getpass
import json
import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from visprompt.errors import BadInput
from visprompt.records import Record, keeping, store

from . import form, possible
from .form import Sender


def chosen(asked: Callable[[Record], bool]) -> tuple[list[dict], Counter]:
    """This machine's records that may be sent, as JSON values, and how many may not, by reason.

    What may not leave is refused here: images of one's own, since no manifest names their task, and
    whatever has no field in the form.
    """
    found, refused = [], Counter()
    for path in store.files(store.stores()[0]):
        record = store.read_record(path)
        if not asked(record):
            continue
        if record.kind != form.TAKEN:
            refused[f"of kind {record.kind}: {form.not_taken(record.kind)}"] += 1
            continue
        content = {name: value for name, value in asdict(record).items() if name != "carried"}
        if why := keeping.why_not(record) or of_form(content):
            refused[why] += 1
        else:
            found.append(content)
    return found, refused


def of_form(content: dict) -> str:
    """Why a record cannot be sent; "" if it can."""
    try:
        sent = form.built(form.Sent, content, "it")
        possible.checked(content, sent)
    except BadInput as error:
        return str(error).removeprefix(f"record {content['id']}: ").rstrip(".")
    return ""


def packed(found: list[dict], sender: Sender) -> str:
    """The file, as text.

    Raises:
        BadInput: the sender's words are none, or something of this machine would leave.
    """
    names = sorted({content["code"] for content in found})
    codes = {name: units_named(name) for name in names}
    content = {"form": form.FORM, "sender": asdict(sender), "records": found, "code": codes}
    form.submission(json.loads(json.dumps(content)))
    text = json.dumps(content, indent=0, allow_nan=False)
    for word in private():
        if word in text:
            raise BadInput(f"the file would say {word!r}, a name of this machine; leave it out.")
    return text + "\n"


def units_named(name: str) -> dict[str, str]:
    """A list of code by its name."""
    for folder in store.stores():
        units = store.read_code(folder / "code" / f"{name}.json")
        if units is not None:
            return units
    raise BadInput(f"the list of code {name} is missing; run again.")


def private() -> list[str]:
    """Names of this machine and of its user that no file may say."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    words = {platform.node(), platform.node().partition(".")[0], str(Path.home()), user}
    return sorted(word for word in words if len(word) > 5)


def told(found: list[dict], sender: Sender, text: str) -> str:
    """What is sent, for a person to read before it is."""

    def counted(of: Callable[[dict], object]) -> str:
        return ", ".join(f"{name} ({n})" for name, n in Counter(map(of, found)).most_common())

    lines = {
        "sender": f"{sender.name}, {sender.contact}; licence {sender.licence}",
        "records": len(found),
        "methods": counted(lambda one: one["settings"]["method"]),
        "tasks": counted(lambda one: one["settings"]["task"]),
        "networks": counted(lambda one: one["settings"]["backbone"]),
        "machine": counted(lambda one: ", ".join(machine(one["hardware"]))),
        "versions": counted(lambda one: " ".join(map(" ".join, one["versions"].items()))),
        "commits": counted(lambda one: one["commit"]),
        "folder of data": counted(lambda one: one["about"]["data"]),
        "of each": "settings, fingerprints of data and weights, code by hashes, accuracies and "
        "losses by epoch, one bit a test image, times, memory, date",
        "bytes": f"{len(text):,}",
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def machine(hardware: dict) -> list[str]:
    """A machine in words."""
    threads = hardware["threads"]
    told = f"{threads} thread" + "s" * (threads != 1)
    return [*filter(None, [hardware["gpu"], hardware["cpu"]]), told]
