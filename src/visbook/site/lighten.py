"""A built website without what no browser asks for, and with the icons that its pages have."""

import re
import shutil
from pathlib import Path

SCRIPT = "_static/scripts/fontawesome.js"  # draws every icon, and holds two thousand of them
# one of them: its name, its width and height, its other names, its number, its outline
ICON = re.compile(
    r'"?(?P<name>[\w-]+)"?:\[\d+,\d+,\[(?P<others>[^\]]*)\],"[0-9a-f]*",'
    r'(?:"[^"]*"|\[[^\]]*\])\],?'
)


def lighten(site: Path) -> None:
    """Remove source maps, words in other languages, font files that have a smaller twin, and the
    icons and the font of icons that no page names."""
    shutil.rmtree(site / "_static" / "locales", ignore_errors=True)
    for path in [*site.rglob("_static/**/*.map"), *site.rglob("_static/**/*.ttf")]:
        if path.suffix == ".map" or path.with_suffix(".woff2").exists():
            path.unlink()
    named = icons_of(site)
    if "brands" not in named:
        for path in site.rglob("_static/**/fa-brands-*"):
            path.unlink()
    if (script := site / SCRIPT).exists():
        text = few_icons(script.read_text(encoding="utf-8"), named)
        script.write_text(text, encoding="utf-8")


def icons_of(site: Path) -> set[str]:
    """The names after `fa-` on the pages of a site and in its other scripts."""
    scripts = [path for path in site.rglob("*.js") if path != site / SCRIPT]
    return {
        name
        for path in [*site.rglob("*.html"), *scripts]
        for name in re.findall(r"\bfa-([\w-]+)", path.read_text(encoding="utf-8"))
    }


def few_icons(script: str, named: set[str]) -> str:
    """The script with the outlines of those icons alone that are asked for by one of their
    names."""

    def kept(match: re.Match) -> str:
        names = {match["name"], *re.findall(r'"([\w-]+)"', match["others"])}
        return match[0] if names & named else ""

    return ICON.sub(kept, script)
