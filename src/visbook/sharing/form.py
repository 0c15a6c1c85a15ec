"""The file that is sent: plain JSON, of which every field and type is named here.

Nothing in it runs. A field that is not named is refused, so that neither pictures nor paths travel
along.
"""

import json
import re
import stat
import typing
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from visprompt.checks import Count, Rounds, require
from visprompt.errors import BadInput, brief

FORM = 1  # raised when a field changes its meaning
LARGEST = 64_000_000  # bytes of a file
MOST = 20_000  # records of a file
LONGEST = 200  # characters of a text
TEXT = re.compile(r"[\w .,:;()@+*'=\[\]-]*")  # no path, no markup, one line
DIGEST = re.compile("[0-9a-f]{12}")
TAKEN = "tune"  # the one kind of record that is taken
TIMED = ("bench", "clustering", "cost", "turns")
ON_A_RUN = ("attention", "epochs", "guidance", "noise", "prompts", "segment")


class Short(str):
    """Annotation: a text of one line, without markup and paths."""


class Digest(str):
    """Annotation: twelve hex digits."""


@dataclass(frozen=True)
class Sender:
    """Who sends, in the words in which the book shows it."""

    name: Short
    contact: Short
    licence: Short


@dataclass(frozen=True)
class Bits:
    """Which test images were classified correctly; see `records.test_images`."""

    images: Count
    bits: str


@dataclass(frozen=True)
class Parameters:
    """Numbers of trained parameters."""

    method: Rounds
    head: Rounds
    total: Rounds


@dataclass(frozen=True)
class Values:
    """What a run of training gave."""

    test: float
    right: Bits
    val: float
    val_by_epoch: list[float]
    loss: list[float]
    parameters: Parameters
    cached_below: int | None
    fit_seconds: float


@dataclass(frozen=True)
class Normalisation:
    """Mean and deviation of each channel."""

    mean: list[float]
    std: list[float]


@dataclass(frozen=True)
class Settings:
    """What was decided before a run of training; the two dictionaries are checked by the room of
    methods and by `Recipe`."""

    method: Short
    method_settings: dict
    backbone: Short
    normalisation: Normalisation
    task: Short
    train_size: Count
    resize: Short
    image_size: Count
    recipe: dict
    seed: Rounds
    architecture: dict | None = None
    prepared_on: Short | None = None


@dataclass(frozen=True)
class Hardware:
    """The sender's machine."""

    cpu: Short
    cores: Count
    threads: Count
    gpu: Short
    tf32: dict | None = None
    deterministic: bool | None = None


@dataclass(frozen=True)
class Split:
    """Numbers of images of train, val and test, and a digest of the lists that name them."""

    counts: list[int]
    lists: Digest | None


@dataclass(frozen=True)
class About:
    """What a record says beside what decided it."""

    profile: Literal["quick", "paper", "real"]
    recipe: Short
    data: Short
    weights: Literal["random", "published", "from a file"]
    images: Literal["of this project", "from a folder"]
    split: Split | None = None
    trained_on: Short | None = None
    sources: dict | None = None


@dataclass(frozen=True)
class Sent:
    """A record of training; its fields are those of `records.Record`."""

    id: Digest
    key: Digest
    kind: Literal["tune"]
    settings: Settings
    data: Short
    weights: Short
    code: Digest
    values: Values
    status: Literal["done"]
    error: Literal[""]
    seconds: float
    peak_memory_mb: float
    hardware: Hardware
    versions: dict
    commit: Digest
    date: Short
    about: About


@dataclass(frozen=True)
class Submission:
    """What one sender sends at once."""

    form: int
    sender: Sender
    records: list[dict]
    code: dict  # name of a list -> place -> hash
    sent: list[Sent] = field(default_factory=list)  # the records, checked


def read(path: Path) -> Submission:
    """Read a file of records.

    Raises:
        BadInput: it is no file of this form; one line says where.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise BadInput(f"{path} is no file.")
        if about.st_size > LARGEST:
            raise BadInput(f"{path} has {about.st_size:,} bytes; at most {LARGEST:,} are read.")
        text = path.read_bytes().decode("utf-8")
        content = json.loads(text, object_pairs_hook=once, **NUMBERS)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path} is no plain JSON ({brief(str(error))}).") from None
    try:
        return submission(content)
    except RecursionError:
        raise BadInput(f"{path} is nested too deep.") from None


def submission(content: Any) -> Submission:
    """A submission from JSON values; see `read`."""
    given = built(Submission, content, "the file", leave_out=("sent",))
    if given.form != FORM:
        raise BadInput(f"the file has form {brief(given.form)}; this version reads form {FORM}.")
    if not 0 < len(given.records) <= MOST:
        raise BadInput(f"the file has {len(given.records):,} records, not 1 to {MOST:,}.")
    for name in ("name", "licence"):
        if not getattr(given.sender, name).strip():
            raise BadInput(f"the sender's {name} is missing.")
    for n, record in enumerate(given.records):
        kind = record.get("kind") if isinstance(record, dict) else None
        if isinstance(kind, str) and kind != TAKEN:
            raise BadInput(f"record {n} is of kind {brief(kind)}; {not_taken(kind)}.")
        given.sent.append(built(Sent, record, f"record {n}"))
    wanted = {sent.code for sent in given.sent}
    if wanted != {*given.code}:
        raise BadInput("the file's lists of code are not those that its records name.")
    for name, units in given.code.items():
        lines = units.items() if isinstance(units, dict) else [(units, "")]
        if not all(isinstance(place, str) and isinstance(said, str) for place, said in lines):
            raise BadInput(f"list of code {brief(name)} is not place and hash.")
    return given


def not_taken(kind: str) -> str:
    """Why a kind of record is not taken, and which is."""
    why = "its values need no machine but the reader's, who computes them here again"
    if kind in TIMED:
        why = "its times hold for one machine, and no other can check them"
    elif kind in ON_A_RUN:
        why = "it does not say which test images came out right, by which it could be checked"
    return f"{why}, so runs of training (kind {TAKEN}) are taken alone"


def built(kind: type, content: Any, where: str, leave_out: tuple[str, ...] = ()) -> Any:
    """A dataclass of this module from JSON values.

    Raises:
        BadInput: a field is unknown, is missing or has another type.
    """
    if not isinstance(content, dict):
        raise BadInput(f"{where} must be an object of names and values, not {brief(content)}.")
    known = [one for one in fields(kind) if one.name not in leave_out]
    for name in content:
        if name not in {one.name for one in known}:
            raise BadInput(f"{where} has {brief(name)}, which is no field of this form.")
    hints, found = typing.get_type_hints(kind), {}
    for one in known:
        if one.name in content:
            found[one.name] = value(hints[one.name], content[one.name], f"{where}: {one.name}")
        elif one.default is MISSING:
            raise BadInput(f"{where} lacks {one.name!r}.")
    return kind(**found)


def value(hint: Any, content: Any, where: str) -> Any:
    """A value of a field."""
    options = [part for part in typing.get_args(hint) if part is not type(None)]
    if type(None) in typing.get_args(hint):
        return None if content is None else value(options[0], content, where)
    if is_dataclass(hint):
        return built(hint, content, where)
    if hint in (Short, Digest):
        require(where, content, str)
        shape = DIGEST if hint is Digest else TEXT
        if len(content) > LONGEST or not shape.fullmatch(content):
            wanted = "twelve hex digits" if hint is Digest else "a short text of one line"
            raise BadInput(f"{where} must be {wanted}, not {brief(content)}.")
        return content
    if typing.get_origin(hint) is Literal and not isinstance(content, str):
        raise BadInput(f"{where} must be a word, not {brief(content)}.")
    require(where, content, hint)
    if hint is dict:
        texts(content, where)
    return content


def texts(content: Any, where: str) -> None:
    """Check every name and text of nested values; lists of code have longer places."""
    if isinstance(content, dict):
        for name, part in content.items():
            texts(name, where)
            texts(part, where)
    elif isinstance(content, list):
        for part in content:
            texts(part, where)
    elif isinstance(content, str) and (
        len(content) > LONGEST or not (TEXT if "code" not in where else PLACE).fullmatch(content)
    ):
        raise BadInput(f"{where} has {brief(content)}, no short text of one line.")


# of a list of code: a module and a name in it, or a manifest
PLACE = re.compile(r"[\w .:#~*]*|file:data_manifests/[\w/.#-]*")


def small(word: str) -> int:
    """A whole number of few digits."""
    if len(word) > 15:
        raise ValueError(f"{word[:15]}... is too large a number")
    return int(word)


def once(pairs: list[tuple[str, Any]]) -> dict:
    """An object whose names are all different."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def no_number(word: str) -> None:
    """Refuse NaN and the infinities."""
    raise ValueError(f"{word} is no number")


NUMBERS = {"parse_int": small, "parse_constant": no_number}
