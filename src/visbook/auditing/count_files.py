"""What `measure`'s files of `data_manifests/` may hold."""

from collections.abc import Iterable
from pathlib import Path

from visprompt import papers
from visprompt.errors import BadInput
from visprompt.manifests.schema import (
    COUNT,
    FLAG,
    TEXT,
    known,
    listed,
    mapping,
    named,
    one_of,
    said,
)
from visprompt.manifests.wording import Fault
from visprompt.methods.method_fields import method, method_settings

from .counts import TASKS, UNITS, of_source, printed_cells


def counts_schema() -> dict:
    """`papers/counts.yaml`; the settings of an entry are in `counts_faults`."""
    entry = {
        "slug": method(),
        "settings": {"type": "object"},
        "backbone": TEXT,
        "tasks": one_of(TASKS),
        "head": {"enum": [True, False, "either"], "title": "head"},
        "measure": one_of(UNITS),
        "fitted": FLAG,
        "decoder": COUNT,
        "decimals": {"type": "integer", "minimum": 0},
        "note": TEXT,
        "plus": mapping({"source": TEXT, "row": TEXT, "column": TEXT}),
    }
    other = mapping(
        {"slug": entry["slug"]},
        {name: entry[name] for name in ("settings", "backbone", "tasks", "head")},
    )
    entry |= {"over": other, "minus": other}
    by_source = {
        "type": ["string", "object"],
        "additionalProperties": TEXT,
        "properties": {},
        "minProperties": 1,
        "pattern": r"\S",
        "description": "a text, or a mapping from sources to texts",
    }
    start = {
        "type": "string",
        "pattern": "^[a-z0-9-]+-$",
        "description": "how an id starts, such as text-",
    }
    end = {
        "type": "string",
        "pattern": "^-[a-z0-9-]+$",
        "description": "how an id ends, such as -fgvc",
    }
    ends = by_source | end | {"type": by_source["type"], "additionalProperties": end}
    group = mapping(
        {
            "sources": listed(TEXT, uniqueItems=True),
            "column": by_source,
            "rows": named(mapping({}, entry)),
        },
        {
            "table": TEXT,
            "key": TEXT,
            "where": named(TEXT),
            "prefix": start,
            "suffix": ends,
            **entry,
        },
    )
    return listed(group)


def counts_faults(content: list, file: Path) -> Iterable[Fault]:
    """Tables, their columns and rows exist, and settings are the methods'."""
    for place, group in enumerate(content):
        rows: set[str] = set()
        for at, source in enumerate(group["sources"]):
            for field in ("column", "suffix"):
                if isinstance(group.get(field), dict):
                    for key in group[field]:
                        yield from known((place, field), "source", key, group["sources"], key)
            if not source.endswith(".prose"):
                yield from said((place, "sources", at), papers.artifact, source)
            try:
                table, prose = (
                    group.get("table", source),
                    group.get("table", source).endswith(".prose"),
                )
                columns = ["id", "where", "value"] if prose else papers.published(table).columns
                key = "id" if prose else group.get("key", "method")
                yield from known(
                    (place, "key") if "key" in group else (place,), "column", key, columns
                )
                yield from known(
                    (place, "column"), "column", of_source(group["column"], source), columns
                )
                for name in group.get("where", {}):
                    yield from known((place, "where"), "column", name, columns, name)
                if key in columns:
                    rows |= set(printed_cells(table, key).index)
            except BadInput as error:
                yield Fault(
                    (place, "table") if "table" in group else (place, "sources", at), str(error)
                )
        shared = {key: group[key] for key in ("slug", "settings") if key in group}
        for name, entry in group["rows"].items():
            yield from known((place, "rows"), "row", name, rows, name)
            path = (place, "rows", name)
            yield from entry_faults(path, shared | entry)
            for key in ("over", "minus"):
                yield from entry_faults((*path, key), entry.get(key, {}))


def entry_faults(path: tuple, given: dict) -> Iterable[Fault]:
    """The settings of something that is counted."""
    if "settings" not in given:
        return
    if "slug" not in given:
        yield Fault(path, "settings without a slug; name the method that they are of.")
    else:
        yield from method_settings(
            (*path, "settings"), given["slug"], given["settings"], ("N", "k")
        )
