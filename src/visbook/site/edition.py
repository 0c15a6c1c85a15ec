"""Which version of the book this is, how it is cited, and where its repository is, which
`repository: url:` of _config.yml says once for all links."""

import html
from datetime import date
from pathlib import Path

import yaml

from visprompt import manifests
from visprompt.records import commit


def given(root: Path) -> dict:
    """CITATION.cff; {} where there is none."""
    path = root / "CITATION.cff"
    return manifests.load_yaml(path) if path.exists() else {}


def released(root: Path) -> date | None:
    """The date of this version; None where CITATION.cff has none."""
    day = given(root).get("date-released")
    return date.fromisoformat(str(day)) if day else None


def shown(day: date) -> str:
    """A date for readers: 27 November 2026."""
    return f"{day.day} {day:%B %Y}"


def repository(root: Path) -> str:
    """The address of the repository, without a slash at its end; "" where none is set."""
    path = root / "_config.yml"
    settings = manifests.load_yaml(path) if path.exists() else {}
    return ((settings.get("repository") or {}).get("url") or "").rstrip("/")


def links(name: str, root: Path) -> str:
    """Links to a notebook's source in the repository, to report a mistake, and to run it in a
    browser; "" where no repository is set."""
    address = repository(root)
    if not address:
        return ""
    source = f"{address}/blob/HEAD/notebooks/{name}.py"
    found = {"Source": source, "Report a mistake": f"{address}/issues/new?title={name}"}
    if (kept := address.removeprefix("https://github.com/")) != address:
        found["Launch"] = (
            f"https://mybinder.org/v2/gh/{kept}/HEAD?urlpath=lab/tree/notebooks/{name}.py"
        )
    return " " + " · ".join(f'<a href="{html.escape(to)}">{word}</a>' for word, to in found.items())


def footer(root: Path) -> str:
    """The line at the end of every page: version, date and commit, and the repository."""
    entry, day, address = given(root), released(root), repository(root)
    parts = [f"Version {entry['version']}" if "version" in entry else ""]
    parts += [f"{shown(day)}" if day else "", f"commit {commit()}"]
    if address:
        parts.append(f'<a href="{html.escape(address)}">source</a>')
        parts.append(f'<a href="{html.escape(address)}/issues">report a mistake</a>')
    cited = f"{entry.get('title', '')} (version {entry.get('version', '')}, "
    cited += f"{day.year if day else 'no date'})"
    told = " · ".join(filter(None, parts))
    return f'<p class="vp-edition" data-cited="{html.escape(cited)}">{told}</p>'


def settings(root: Path, folder: Path) -> Path:
    """_config.yml with the line at the end of every page and with the order of what a search finds,
    as a file in a folder."""
    whole = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    config = whole["sphinx"]["config"]
    config["html_theme_options"]["extra_footer"] = footer(root)
    # Sphinx asks for a path of the system
    config["html_search_scorer"] = str(root / "book" / "_static" / "scorer.js")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_config.yml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    return folder / "_config.yml"


def citation(results: dict, root: Path) -> str:
    """CITATION.cff as BibTeX."""
    if not (entry := given(root)):
        return "See CITATION.cff."
    names = " and ".join(f"{{{author['name']}}}" for author in entry["authors"])
    fields = {"title": entry["title"], "author": names, "version": entry["version"]}
    if day := released(root):
        fields |= {"year": day.year, "month": f"{day:%b}".lower()}
    if address := repository(root):
        fields["url"] = address
    if "doi" in entry:
        fields["doi"] = entry["doi"]
    fields["note"] = f"{entry['license']} licence"
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"```bibtex\n@software{{visprompt,\n{lines}\n}}\n```"


def version(results: dict, root: Path) -> str:
    """The version, its date and its commit, as a sentence."""
    entry, day = given(root), released(root)
    on = f" of {shown(day)}" if day else ""
    return f"This is version {entry.get('version', '(none)')}{on}, built from commit `{commit()}`."


MAKERS = {"citation": citation, "edition": version}
