"""What `auditing`'s files of `data_manifests/` may hold."""

from collections.abc import Iterable
from pathlib import Path

from visprompt import papers
from visprompt.errors import BadInput
from visprompt.manifests.schema import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    column_faults,
    known,
    listed,
    mapping,
    named,
    one_of,
)
from visprompt.manifests.wording import Fault

from .findings import SENSES, WORDING
from .operations import OPERATIONS, TEXTS
from .quoted import DIMENSIONS
from .steps import ALONG, AT


def names_schema() -> dict:
    """`papers/names.yaml`."""

    def by_dimension(value: dict, **more) -> dict:
        return mapping({}, {name: value for name in DIMENSIONS}, **more)

    columns = {
        "type": ["array", "object"],
        "minItems": 1,
        "items": TEXT,
        "minProperties": 1,
        "additionalProperties": TEXT,
        "properties": {},
        "description": "a list of columns, or a mapping from columns to names",
    }
    one = by_dimension(
        columns, minProperties=1, maxProperties=1, description="a mapping with one dimension"
    )
    part = mapping(
        {"columns": one},
        {
            "fixed": by_dimension(TEXT),
            "rows": by_dimension(TEXT),
            "where": named({"type": "string"}),
            "rename": named(TEXT),
        },
    )
    parts = {
        "type": ["object", "array"],
        "if": {"type": "array"},
        "then": listed(part),
        "else": part,
        "description": "a mapping, or a list of them",
    }
    return mapping({"names": by_dimension(named(listed(TEXT, 0))), "tables": named(parts)})


def audit_schema() -> dict:
    """`papers/<paper>/audit.yaml`."""
    kinds = "a number, a reference 'artifact | row | column' or an operation"
    operand, flags = (
        {"$ref": "#/$defs/operand", "description": kinds},
        dict.fromkeys(("lower", "ties", "lowest"), FLAG),
    )
    reference = {
        "type": ["number", "string", "object"],
        "pattern": r" \| .*\S",
        "description": kinds,
    }
    among = mapping({"row": operand, "among": listed(operand)}, flags)
    pair, some = (
        listed(operand, 2, 2),
        {
            "type": ["number", "string", "array", "object"],
            "if": {"type": "array"},
            "then": listed(operand),
            "else": operand,
        },
    )
    pairs = (
        "difference",
        "relative",
        "share",
        "ratio",
        "wins",
        "largest",
        "smallest",
        "range",
        "weighted",
    )
    special = {"value": operand, "best": among, "rank": among, **dict.fromkeys(pairs, pair)}
    special |= dict.fromkeys(TEXTS, TEXT)
    operations = {name: special.get(name, some) for name in OPERATIONS}
    one = {"oneOf": [{"required": [name]} for name in operations]}
    nested = mapping({}, operations | flags)
    message = f"write one of {', '.join(operations)}, once."
    cell = {
        "type": "string",
        "pattern": reference["pattern"],
        "description": "a reference 'artifact | row | column'",
    }
    texts = {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1}
    statement = mapping(
        {"id": TEXT, "what": TEXT},
        {
            "prose": TEXT,
            "cell": TEXT,
            "says": TEXT,
            "kind": one_of(WORDING, "kind"),
            "artifact": TEXT,
            "sense": one_of(SENSES),
            "scale": NUMBER,
            "claim": TEXT,
            **flags,
            **operations,
        },
        allOf=[
            {**one, "errorMessage": f"write prose or cell, and {message.removeprefix('write ')}"},
            {
                "oneOf": [{"required": ["prose"]}, {"required": ["cell"]}],
                "errorMessage": "write the printed number as prose or as cell, one of the two.",
            },
        ],
    )
    columns = texts | {"description": "a column, or a list of them"}
    parts = {
        "means": listed(
            mapping({"table": TEXT, "column": TEXT, "of": columns}, {"where": named(texts)}), 0
        ),
        "gains": listed(
            mapping({"table": TEXT, "columns": columns, "over": TEXT}, {"within": TEXT}), 0
        ),
        "statements": listed(statement, 0),
        "settings": listed(
            mapping(
                {"id": TEXT, "what": TEXT, "places": listed(cell, 2), "artifact": TEXT},
                {"kind": one_of(WORDING, "kind"), "witnesses": listed(cell), "damaged": FLAG},
            ),
            0,
        ),
        "directions": listed(
            mapping(
                {"id": TEXT, "what": TEXT, "says": TEXT, "steps": listed(TEXT), "artifact": TEXT}
            ),
            0,
        ),
        "steps": listed(step_schema(), 0),
        "readings": named(TEXT, 0),
        "undecided": listed(TEXT, 0),
    }
    whole = {
        "if": {"type": "object"},
        "then": {"allOf": [nested, {**one, "errorMessage": message}]},
    }
    return mapping({}, parts, **{"$defs": {"operand": reference | whole}})


def step_schema() -> dict:
    """A line of a proof in `steps` of `audit.yaml`."""
    side = {"type": ["number", "string"], "description": "an expression, such as exp(-x)/(1 + x)"}
    sense = one_of((*AT, *ALONG), "sense")
    texts = ("id", "what", "artifact", "line", "where")
    mended = {"minProperties": 1, "description": "a mapping with what agrees instead"}
    return mapping(
        dict.fromkeys(texts, TEXT)
        | {"sentence": COUNT, "given": named(side), "printed": side, "computed": side},
        {
            "sense": sense,
            "provided": listed(TEXT),
            "along": named(listed(NUMBER, 2, 2)),
            "mended": mapping({}, {"printed": side, "computed": side, "sense": sense}, **mended),
        },
    )


def names_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Tables and their columns exist."""
    for table, parts in content["tables"].items():
        try:
            columns = [*papers.published(table).columns]
        except BadInput as error:
            yield Fault(("tables",), str(error), table)
            continue
        for place, part in enumerate(parts if isinstance(parts, list) else [parts]):
            path = ("tables", table, place) if isinstance(parts, list) else ("tables", table)
            for key, column in part.get("rows", {}).items():
                yield from known((*path, "rows", key), "column", column, columns)
            for column in part.get("where", {}):
                yield from known((*path, "where"), "column", column, columns, column)
            ((dimension, wanted),) = part["columns"].items()
            path = (*path, "columns", dimension)
            if isinstance(wanted, dict):
                for column in wanted:
                    yield from known(path, "column", column, columns, column)
            else:
                for at, text in enumerate(wanted):
                    yield from column_faults((*path, at), text, columns)


def audit_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Tables of means and gains exist, with their columns; ids are given once. References are
    followed when used."""
    for part in ("means", "gains"):
        for place, rule in enumerate(content.get(part, ())):
            path = (part, place)
            try:
                columns = [*papers.published(rule["table"]).columns]
            except BadInput as error:
                yield Fault((*path, "table"), str(error))
                continue
            for key in ("column", "of", "columns", "within"):
                texts = rule.get(key, ())
                for text in [texts] if isinstance(texts, str) else texts:
                    yield from column_faults((*path, key), text, columns)
            for column in rule.get("where", {}):
                yield from known((*path, "where"), "column", column, columns, column)
    for part in ("statements", "settings", "directions", "steps"):
        seen = set()
        for place, rule in enumerate(content.get(part, ())):
            if rule["id"] in seen:
                yield Fault((part, place, "id"), f"{rule['id']!r} is given twice; rename one.")
            seen.add(rule["id"])
