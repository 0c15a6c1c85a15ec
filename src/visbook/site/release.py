"""A release of the book: source, wheels, records and site as files, with checksums, from a clean
tree.

    python -m visbook.site.release build/release --before book/releases/0.1.0.csv
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

import yaml

from visprompt import paths
from visprompt.errors import BadInput

from . import edition
from . import what_changed as changes

FORMATS = {
    ".gz": "application/gzip",
    ".csv": "text/csv",
    ".whl": "application/zip",
    ".md": "text/markdown",
}
SITE = "site.tar.gz"
SUMS = "SHA256SUMS"


def made(folder: Path, root: Path, before: Path | None = None) -> list[Path]:
    """Write the files of a release into an empty folder; return them.

    Raises:
        BadInput: the tree is not clean, the site is missing, or a wheel cannot be built.
    """
    if told := git(root, "status", "--porcelain").decode().strip():
        raise BadInput(f"the tree is not clean: {told.splitlines()[0].strip()}. Commit first.")
    site = root / "build" / "site"
    if not site.is_dir():
        raise BadInput("there is no website in build/site; make book builds it.")
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty; name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    when = int(git(root, "log", "-1", "--format=%ct"))
    files = [name for name in git(root, "ls-files", "-z").decode().split("\0") if name]
    records = [name for name in files if name.startswith("book/records")]
    pages = [str(path.relative_to(root)) for path in site.rglob("*") if path.is_file()]
    packed(folder / "source.tar.gz", root, sorted({*files} - {*records}), when)
    packed(folder / "records.tar.gz", root, records, when)
    packed(folder / SITE, root, pages, when)
    wheels(folder, root, when)
    claims = site / "downloads" / "claims.csv"
    shutil.copy(claims, folder / "claims.csv")
    if before is not None:
        (folder / "what-changed.md").write_text(what_changed(before, claims), encoding="utf-8")
    crate(folder, root)
    sums = [f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(sums))
    return sorted(folder.iterdir())


def git(root: Path, *words: str) -> bytes:
    """Output of a git command."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, check=True).stdout


def packed(target: Path, root: Path, names: Iterable[str], when: int) -> None:
    """Files as an archive that has the same bytes whoever makes it, and when."""
    with (
        target.open("wb") as out,
        gzip.GzipFile("", "wb", 6, out, mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(names):
            about = archive.gettarinfo(root / name, name)
            about.uid = about.gid = 0
            about.uname = about.gname = ""
            about.mtime = when
            about.mode = 0o755 if about.mode & 0o100 else 0o644
            if about.issym():
                archive.addfile(about)
                continue
            with (root / name).open("rb") as file:
                archive.addfile(about, file)


def wheels(folder: Path, root: Path, when: int) -> None:
    """Build the wheels of both packages, from a copy, so that nothing is left in the tree."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        subprocess.run(["tar", "-x", "-C", name], input=git(root, "archive", "HEAD"), check=True)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "-w", str(folder), str(copy), str(copy / "src/visbook")]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(when)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise BadInput(f"no wheel was built: {' '.join(done.stderr.split())[-300:]}")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compared(one: Path, other: Path) -> list[str]:
    """The files of two releases of one tree that differ, or are in one alone."""
    names = {path.name for folder in (one, other) for path in folder.iterdir()}

    def same(name: str) -> bool:
        there = [folder / name for folder in (one, other)]
        return all(path.is_file() for path in there) and digest(there[0]) == digest(there[1])

    return sorted(name for name in names if not same(name))


def what_changed(before: Path, now: Path) -> str:
    """Which claims have other verdicts or estimates than in an older release, and why, as a page.

    Raises:
        BadInput: a file is none of a release's claims.csv.
    """
    lines = changes.text(changes.rows_of(before), changes.rows_of(now))
    return "\n".join(["# What changed", "", *lines]) + "\n"


def crate(folder: Path, root: Path) -> None:
    """Describe the files as an RO-Crate 1.1 does."""
    cite = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    files = sorted(folder.iterdir())
    licence = {"@id": f"https://spdx.org/licenses/{cite['license']}"}
    address = {"url": there} if (there := edition.repository(root)) else {}
    people = [
        {"@id": f"#author-{n}", "@type": "Organization", "name": one["name"]} | address
        for n, one in enumerate(cite["authors"])
    ]
    authors = [{"@id": one["@id"]} for one in people]
    whole = {
        "@id": "./",
        "@type": "Dataset",
        "name": cite["title"],
        "description": cite["abstract"],
        "version": str(cite["version"]),
        "license": licence,
        "datePublished": git(root, "log", "-1", "--format=%cs").decode().strip(),
        "author": authors if len(authors) > 1 else authors[0],
        "publisher": authors[0],
        "hasPart": [{"@id": path.name} for path in files],
    } | ({"identifier": f"https://doi.org/{cite['doi']}"} if "doi" in cite else {})
    parts = [
        {
            "@id": path.name,
            "@type": "File",
            "contentSize": str(path.stat().st_size),
            "encodingFormat": FORMATS[path.suffix],
        }
        for path in files
    ]
    about = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    graph = {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [
            *(about, whole, licence | {"@type": "CreativeWork", "name": cite["license"]}),
            *(*people, *parts),
        ],
    }
    text = json.dumps(graph, indent=1) + "\n"
    (folder / "ro-crate-metadata.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Make a release twice, compare the two, and keep one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path, help="claims.csv of an older release")
    args = parser.parse_args()
    try:
        args.before = args.before or [None, *changes.older().values()][-1]
        files = made(args.folder, paths.ROOT, args.before)
        with tempfile.TemporaryDirectory() as name:
            made(Path(name), paths.ROOT, args.before)
            others = compared(args.folder, Path(name))
    except BadInput as problem:
        sys.exit(f"visbook.site.release: {problem}")
    for path in files:
        print(f"{digest(path)[:12]}  {path.stat().st_size:>12,}  {path.name}")
    equal = "all files are equal bit for bit" if not others else f"other bits: {', '.join(others)}"
    print(f"built twice: {equal}; the website is the one that make book left")


if __name__ == "__main__":
    main()
