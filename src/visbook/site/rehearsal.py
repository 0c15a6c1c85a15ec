"""The stage of a rehearsal: the paper profile's runs and pages with stand-ins for what is large.

    python -m visbook.site.rehearsal prepare FOLDER
    python -m visbook.site.rehearsal report FOLDER

`prepare` lays out a folder that looks like the repository (links to it), with made-up data sets and
narrow networks; what runs there with VISPROMPT_ROOT=FOLDER leaves its records, pages and site
there. `make rehearsal` does all of it.
"""

import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from visbook.studies.stand_in_images import write_tasks
from visprompt import papers, paths
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.words import REHEARSED

from ..studies import plan
from ..studies.grids import scope_of
from ..studies.roles import recipe_scope
from ..studies.stand_ins import write_checkpoint
from .results import notebooks, read_notebook

LINKED = (
    "src",
    "notebooks",
    "book",
    "data_manifests",
    "Snakefile",
    "_config.yml",
    "_toc.yml",
    ".venv",
)
# kinds of record of runs with stand-ins
RUNS = ("tune", "noise", "prompts", "attention", "dissection")


def prepare(stage: Path) -> None:
    """Lay out a stage, in place of what an earlier one left; the data and weights of an earlier one
    stay.

    Raises:
        BadInput: the folder is there and no stage.
    """
    if stage.exists() and any(stage.iterdir()) and not (stage / "REHEARSAL").is_file():
        raise BadInput(f"{stage} is no stage of a rehearsal; name another folder, or remove it.")
    stage.mkdir(parents=True, exist_ok=True)
    (stage / "REHEARSAL").write_text(f"{REHEARSED}\n")
    for name in LINKED:
        if not (stage / name).is_symlink() and (paths.ROOT / name).exists():
            (stage / name).symlink_to((paths.ROOT / name).resolve())
    for name, write in (("data", write_data), ("weights", write_weights)):
        if not (stage / name).exists():
            shutil.rmtree(part := stage / f"{name}.part", ignore_errors=True)
            part.mkdir()
            write(part)
            part.rename(stage / name)


def write_data(folder: Path) -> None:
    """Write every data set that a run of the paper profile reads."""
    tasks = [task for part in scope_of("paper").tasks.values() for task in part]
    write_tasks(dict.fromkeys(tasks), folder)


def write_weights(folder: Path) -> None:
    """Write a checkpoint for every backbone of the paper profile."""
    recipes = load_yaml(paths.MANIFESTS / "recipes.yaml")
    needed = [
        name for recipe in recipes for name in recipe_scope(recipe, "paper").backbones.values()
    ]
    for name in dict.fromkeys(needed):
        write_checkpoint(name, folder)


def weights(stage: Path) -> list[str]:
    """NAME=FILE of each checkpoint on a stage."""
    return [f"{path.stem}={path}" for path in sorted((stage / "weights").iterdir())]


def of_papers(ids: Iterable[str], asked: Sequence[str]) -> list[str]:
    """The artifacts of these papers; all where none is asked for."""
    return [id for id in ids if not asked or id.partition(".")[0] in asked]


def pages(asked: Sequence[str]) -> list[str]:
    """The notebooks that show something of these papers; all where none is asked for.

    Raises:
        BadInput: no paper has such a slug.
    """
    for slug in asked:
        choose("paper", slug, papers.papers())
    entries = load_yaml(paths.MANIFESTS / "notebooks.yaml")
    return [name for name, entry in entries.items() if of_papers(entry["artifacts"], asked)]


def planned(asked: Sequence[str] = ()) -> int:
    """How many runs the plan of all artifacts has with one rate and one seed."""
    scope, ids = scope_of("rehearsal"), of_papers(plan.artifacts(), asked)
    cells = [cell for id in ids for cell in plan.cells_of(id, "rehearsal", scope)]
    return len({(cell.recipe, repr(cell.run)) for cell in cells})


def report(stage: Path, asked: Sequence[str] = ()) -> tuple[pd.DataFrame, list[str]]:
    """(a row a kind of run: planned, where the plan says so, done and failed; what is open:
    artifacts and notebooks, each with the reason), of some papers or of all.

    Only what ran on this stage counts as run; an artifact is filled where its page shows something.
    """
    here = stage / "build" / "records"
    done = {kind: len(list((here / kind).rglob("*.json"))) for kind in RUNS}
    failed = {kind: len(list((here / "failed" / kind).rglob("*.json"))) for kind in RUNS}
    table = pd.DataFrame(
        {"planned": {"tune": planned(asked)}, "done": done, "failed": failed}, index=RUNS
    ).fillna(0)
    open_, filled = [], 0
    for name in pages(asked) if asked else notebooks(paths.ROOT):
        try:
            _, found = read_notebook(
                stage / "build" / "executed" / "rehearsal" / f"{name}.ipynb", "rehearsal"
            )
        except BadInput as error:
            open_.append(f"{name}: {error}")
            continue
        for id in of_papers(found["artifacts"], asked):
            entry = found["artifacts"][id]
            filled += bool(entry["shows"])
            if not entry["shows"]:
                open_.append(f"{id}: {entry['not_run']['why']}")
    wanted = len(of_papers(papers.artifacts().index, asked))
    table.loc["artifacts", ["planned", "done", "failed"]] = (
        wanted,
        filled,
        wanted - filled,
    )
    return table.astype(int), open_


def main(words: list[str]) -> None:
    """`prepare`, `weights`, `pages` or `report`, the folder of the stage, and papers, none: all."""
    try:
        choose(
            "step of a rehearsal",
            words[0] if words else "nothing",
            ["prepare", "weights", "pages", "report"],
        )
        stage = Path(words[1] if len(words) > 1 else "build/rehearsal").absolute()
        if words[0] == "prepare":
            prepare(stage)
        elif words[0] == "pages":
            wanted = [f"build/executed/rehearsal/{name}.ipynb" for name in pages(words[2:])]
            print(*(wanted if words[2:] else ["build/site.done"]))
        elif words[0] == "weights":
            print(*weights(stage))
        else:
            table, missing = report(stage, words[2:])
            print(
                table.rename(columns={"done": "done, filled", "failed": "failed, open"}).to_string()
            )
            print(f"{REHEARSED}. Site: {stage / 'build' / 'site' / 'index.html'}")
            if missing:
                sys.exit("\n".join(["not filled:", *missing]))
    except BadInput as problem:
        sys.exit(f"visbook.site.rehearsal: {problem}")


if __name__ == "__main__":
    main(sys.argv[1:])
