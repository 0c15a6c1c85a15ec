"""Check YAML files against their schemas; a fault is one line with file, line and what to write.

The room that reads a file says what it may hold, in its module `…_files`: a schema, and what the
file must agree on with other files and with the code.
"""

import functools
import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..errors import BadInput
from ..paths import BOOK
from .wording import Fault, worded

TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
OWNERS = {  # of each YAML file the module that says what it may hold
    "papers": "visprompt.papers.paper_files",
    "lost": "visprompt.papers.paper_files",
    "claims": "visprompt.papers.paper_files",
    "names": "visbook.auditing.audit_files",
    "audit": "visbook.auditing.audit_files",
    "counts": "visbook.auditing.count_files",
    "tasks": "visprompt.data.task_files",
    "datasets": "visprompt.data.task_files",
    "preprocessing": "visprompt.data.task_files",
    "backbones": "visprompt.models.backbone_files",
    "recipes": "visprompt.training.recipe_files",
    "differences": "visprompt.training.recipe_files",
    "segmentation_recipes": "visprompt.training.recipe_files",
    "studies": "visbook.studies.study_files",
    "own_studies": "visbook.studies.study_files",
    "factors": "visbook.studies.study_files",
    "plan": "visbook.studies.study_files",
    "segmentation": "visbook.studies.study_files",
    "devices": "visbook.studies.study_files",
    "notebooks": "visbook.pages.notebook_files",
    "replies": "visbook.pages.notebook_files",
}
MOST, DEEPEST = 100_000, 50  # values of a file, and how deep they may be nested


class Source(NamedTuple):
    """A parsed file: its content, and the YAML nodes, which know their lines."""

    path: Path
    content: Any
    node: yaml.Node

    def line(self, path: Sequence) -> int:
        """Line, from 1, of a key or list item; of the nearest enclosing place if it is absent."""
        node, mark = self.node, self.node.start_mark
        for step in path:
            # merged keys stand first, the mapping's own are the last
            if isinstance(node, yaml.MappingNode):
                pairs = [pair for pair in node.value if pair[0].value == step]
                if not pairs:
                    break
                mark, node = pairs[-1][0].start_mark, pairs[-1][1]
            elif isinstance(node, yaml.SequenceNode):
                node = node.value[step]
                mark = node.start_mark
        return mark.line + 1

    def place(self, path: Sequence, key: str | None = None) -> str:
        """ "FILE, line 7: studies > tasks > entry 2 (an id)"."""
        steps, here = [], self.content
        for step in path:
            here = here[step]
            id = here.get("id") if isinstance(here, dict) else None
            steps.append(
                step if isinstance(step, str) else f"entry {step + 1}" + (f" ({id})" if id else "")
            )
        line = self.line(path if key is None else (*path, key))
        return f"{self.path}, line {line}: {' > '.join(steps)}{': ' if steps else ''}"


def read(path: Path) -> Source:
    """Parse a YAML file.

    Raises:
        BadInput: it is missing, unreadable, not UTF-8, not YAML or empty, has a duplicate key or
            one that is not text, or refers to itself.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; restore it from the repository.") from None
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read ({error.strerror}); restore it from the repository."
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(
            f"{path}, line {line}: not readable as UTF-8; save the file in that encoding."
        ) from None
    try:
        return parsed(text, path)
    except BadInput:
        raise
    except yaml.YAMLError as error:
        raise BadInput(broken(error, path, text)) from None
    except ValueError as error:  # a date such as 2024-13-45; YAML does not say where
        raise BadInput(f"{path} is not readable YAML: {error}; write texts in quotes.") from None


def parsed(text: str, path: Path) -> Source:
    """Parse a text.

    Raises:
        BadInput: a duplicate or non-text key, or a reference to itself.
        YAMLError: it is not YAML.
    """
    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    check_depth(yaml.parse(text, kind), path)
    loader = kind(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.CollectionNode):
            raise BadInput(
                f"{path}, line 1: the file holds no list or mapping; write '[]' or '{{}}' "
                f"for an empty one."
            )
        check_nodes(node, path)
        return Source(path, loader.construct_document(node), node)
    finally:
        loader.dispose()


def check_depth(events: Iterable[yaml.Event], path: Path) -> None:
    """Refuse nesting so deep that the YAML parser would overflow its stack."""
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > DEEPEST:
            line = event.start_mark.line + 1
            raise BadInput(
                f"{path}, line {line}: nested more than {DEEPEST} deep; write it flatter."
            )


def broken(error: yaml.YAMLError, path: Path, text: str) -> str:
    """The YAML parser's error in one line."""
    mark, position = getattr(error, "problem_mark", None), getattr(error, "position", 0)
    line = text[:position].count("\n") if mark is None else mark.line
    what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split(
        "\n"
    )[0]
    lines = text.split("\n")
    if line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]:
        what += "; indent with spaces, not with tabs"
    return (
        f"{path}, line {line + 1}: not readable YAML: {what}. Correct this line, or the "
        f"one above it."
    )


def check_nodes(
    node: yaml.Node, path: Path, above: frozenset = frozenset(), sizes: dict | None = None
) -> int:
    """Refuse duplicate keys, keys that are not text, self-references and exponential expansion.

    Returns:
        The number of values; those behind a `*` count wherever they are referred to. Each node is
        visited once.
    """
    sizes, place = {} if sizes is None else sizes, f"{path}, line {node.start_mark.line + 1}"
    if id(node) in above:
        raise BadInput(f"{place}: what is named with & refers to itself; write it out.")
    if not isinstance(node, yaml.CollectionNode):
        return 1
    if id(node) not in sizes:
        keyed = isinstance(node, yaml.MappingNode)
        if keyed:
            check_keys([key for key, _ in node.value], path)
        parts = [value for _, value in node.value] if keyed else node.value
        sizes[id(node)] = 1 + sum(
            check_nodes(part, path, above | {id(node)}, sizes) for part in parts
        )
    if sizes[id(node)] > MOST:
        raise BadInput(f"{place}: more than {MOST} values, written out; use & and * for less.")
    return sizes[id(node)]


def check_keys(keys: Sequence[yaml.Node], path: Path) -> None:
    """Refuse keys of a mapping that are duplicates or not text."""
    seen = set()
    for key in keys:
        place = f"{path}, line {key.start_mark.line + 1}"
        if key.tag not in (TEXT, MERGE):
            shown = repr(key.value) if isinstance(key, yaml.ScalarNode) else "in brackets"
            raise BadInput(f"{place}: the key {shown} is no text to YAML; write it in quotes.")
        if key.value in seen:
            raise BadInput(f"{place}: {key.value!r} given twice; rename or delete one.")
        seen.add(key.value)


def rules_of(path: Path) -> tuple[Callable | None, Callable | None]:
    """The rules for a file of this name or folder: a schema, and a function for further faults.

    Both are functions of the room that reads the file. It is imported when its file is first read,
    so that this module imports no room.
    """
    stem = "datasets" if path.parent.name == "datasets" else path.name.removesuffix(".yaml")
    owner = OWNERS.get(stem)
    if owner is None or (BOOK is None and owner.startswith("visbook")):
        return None, None
    manifest = importlib.import_module(owner)
    return getattr(manifest, f"{stem}_schema"), getattr(manifest, f"{stem}_faults", None)


def validated(path: Path) -> Source:
    """Parse a YAML file and check it by the rules of its room; see `rules_of`.

    Raises:
        BadInput: the file cannot be parsed, or something in it is wrong; the first fault is named.
    """
    source, (schema, check) = read(path), rules_of(path)
    faults = list(against(schema(), source.content)) if schema else []
    if not faults and check:
        faults = list(check(source.content, path))
    if faults:
        # explains what is missing in that mapping
        misspelt = {fault.path for fault in faults if fault.key is not None}
        faults = [fault for fault in faults if fault.key is not None or fault.path not in misspelt]
        first = min(
            faults, key=lambda f: source.line(f.path if f.key is None else (*f.path, f.key))
        )
        raise BadInput(source.place(first.path, first.key) + first.text)
    return source


def against(schema: dict, content: object, base: tuple = ()) -> Iterable[Fault]:
    """Faults of content under a JSON Schema; its `errorMessage` replaces the wording made here."""
    for error in validator()(schema).iter_errors(content):
        yield worded(error, (*base, *error.absolute_path))


@functools.cache
def validator() -> type:
    """The jsonschema validator class; NaN and infinity are no numbers, 1.0 is no integer."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def number(checker, value):
        return (
            isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        )

    def integer(checker, value):
        return isinstance(value, int) and not isinstance(value, bool)

    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": number, "integer": integer}
    )
    return extend(Draft202012Validator, type_checker=checker)
