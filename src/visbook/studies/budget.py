"""`visprompt plan`: what each artifact still takes, and all of them together, shared runs counted
once."""

import contextlib
import csv
import io
import itertools
import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd

from visprompt.errors import BadInput
from visprompt.methods import settings_of as method_settings
from visprompt.paths import MANIFESTS
from visprompt.records import is_current, stores
from visprompt.records import store as records
from visprompt.training.recipe import recorded_recipe

from .case import rate_name
from .forecast import Fetch, checkpoint_files, data_files, speed_of, usual_precision
from .grids import Scope, scope_of
from .mask_forecast import mask_operations
from .mask_runs import content
from .plan import Planned, artifact, artifacts, cells_of, command, lab_of, mask_cells, runs_of, told

ALL = "all"  # the row of all artifacts together


@dataclass(frozen=True)
class Row:
    """A line of the plan."""

    artifact: str
    made: str  # what makes it
    runs: int  # trainings
    recorded: int  # of these, done by today's code
    bytes: int  # to fetch, of files whose size is known
    unknown_sizes: tuple[str, ...]  # files whose size no manifest says
    hours: float  # of one device, for the runs that are not recorded
    without_hours: int  # runs that are not in it, since no manifest says how many images there are
    command: str
    note: str


@dataclass(frozen=True)
class Budget:
    """The plan of some artifacts: a row each, and one of all."""

    rows: tuple[Row, ...]
    all: Row
    profile: str
    how: str  # how the hours were obtained

    def frame(self) -> pd.DataFrame:
        """As a table, the row of all last where there are several."""
        rows = [*self.rows, self.all] if len(self.rows) > 1 else self.rows
        return pd.DataFrame(
            [{**asdict(row), "unknown_sizes": len(row.unknown_sizes)} for row in rows]
        )

    def as_json(self) -> str:
        """As JSON, with the names of the files of unknown size."""
        content = {
            "profile": self.profile,
            "hours": self.how,
            "artifacts": [*map(asdict, self.rows)],
            "all": asdict(self.all),
        }
        return json.dumps(content, indent=1)


def plan(
    *ids: str,
    profile: str = "paper",
    data_dir=None,
    device: str | None = None,
    precision: str | None = None,
) -> Budget:
    """What artifacts take: runs, those recorded, bytes to fetch, hours of a device, and the
    command.

    Args:
        ids: such as "spt.table-3"; none: all.
        data_dir: a folder of data sets; only what is there is planned.
        device: of devices.yaml, or "measured"; None: see `forecast.speed_of`.
        precision: "float32" or "bf16"; None: what the profile runs in on a GPU.

    Raises:
        BadInput: an unknown artifact, profile or device, or a folder that is not there.
    """
    precision = precision or usual_precision(profile)
    speed, scope = speed_of(device, precision), there(scope_of(profile), data_dir)
    folder = None if data_dir is None else Path(data_dir)
    runs = {id: runs_of(cells_of(id, scope=scope)) for id in ids or artifacts()}
    together = {run.key: run for found in runs.values() for run in found}
    done = recorded(together.values())
    masks = {id: runs_of(mask_cells(id, profile)) for id in runs}
    hours = {
        key: speed.hours(run, folder and str(folder))
        for key, run in together.items()
        if key not in done
    }
    for run in itertools.chain(*masks.values()):
        hours[run.key] = speed.hours_of(mask_operations(run))
    hours = Hours(done, hours)
    files = {id: to_fetch(id, runs[id], scope, folder) for id in runs}
    keys = {id: [run.key for run in runs[id] + masks[id]] for id in runs}
    rows = [row(id, line(id, keys[id], hours, files[id]), profile) for id in runs]
    every = {file.name: file for found in files.values() for file in found}
    return Budget(
        tuple(rows),
        line(ALL, set().union(*keys.values()), hours, every.values()),
        profile,
        speed.how,
    )


def kept_row(row: Row) -> tuple[str, str, str, str]:
    """Artifact, runs, gigabytes and hours, as `data_manifests/hours.csv` has them for pages: a plan
    of everything takes a minute. `python -m visbook.studies.budget` writes that file anew."""
    return row.artifact, str(row.runs), f"{row.bytes / 1e9:.1f}", f"{row.hours:.2f}"


def there(scope: Scope, data_dir: str | Path | None) -> Scope:
    """The scope with those tasks alone whose folder is in data_dir, by their own name or their data
    set's."""
    if data_dir is None:
        return scope
    folder = Path(data_dir)
    if not folder.is_dir():
        raise BadInput(
            f"{folder} is no folder; give the one that holds the data sets, or leave --data out."
        )
    present = {
        part: [task for task in tasks if not data_files([task], folder)]
        for part, tasks in scope.tasks.items()
    }
    return replace(scope, tasks=present)


@dataclass(frozen=True)
class Hours:
    """What is known of runs, by their keys."""

    done: set  # those that are recorded
    each: dict[tuple, float | None]  # hours of the others


def row(id: str, found: Row, profile: str) -> Row:
    """The line of an artifact, with what makes it."""
    entry = artifact(id)
    return replace(
        found, made=" + ".join(entry.made), command=command(id, profile), note=entry.note
    )


def line(name: str, keys: Collection[tuple], known: Hours, files: Iterable[Fetch]) -> Row:
    """A line of runs, by their keys, and files, without what makes them."""
    files = list(files)
    hours = [known.each[key] for key in keys if key not in known.done]
    unknown = tuple(file.name for file in files if file.bytes is None)
    here = sum(key in known.done for key in keys)
    total = sum(filter(None, hours))
    return Row(
        name,
        "",
        len(keys),
        here,
        sum(f.bytes or 0 for f in files),
        unknown,
        total,
        hours.count(None),
        "",
        "",
    )


def to_fetch(id: str, runs: list[Planned], scope: Scope, folder: Path | None) -> list[Fetch]:
    """The files that an artifact needs beside this project's own."""
    entry, quick = artifact(id), scope.profile == "quick"
    tasks = [run.run.task for run in runs] + [
        run.run.prepared_on for run in runs if run.run.prepared_on
    ]
    networks = [run.run.backbone for run in runs if not run.run.scratch]
    if not quick:
        tasks += entry.data
        networks += [scope.backbones[part] for part in entry.networks if part in scope.backbones]
        networks += [content()["profiles"]["paper"]["backbone"]] if entry.masks else []
    return data_files(tasks, folder) + checkpoint_files(networks)


def data_sets_of(id: str) -> tuple[list[str], list[str]]:
    """The data sets and the checkpoints that the paper's runs of an artifact need."""
    scope = scope_of("paper")
    files = to_fetch(id, runs_of(cells_of(id, scope=scope)), scope, None)
    return list(dict.fromkeys(f.dataset for f in files if f.dataset)), [
        f.name for f in files if not f.dataset
    ]


def recorded(runs: Iterable[Planned]) -> set[tuple]:
    """The keys of the runs that have a record made by today's code.

    A record is told by what it says of backbone, task, method, recipe and seed; of a final run
    whose search gives its rate any rate will do. Nothing is loaded for it, so other data or weights
    under the same names would pass.
    """
    found, wanted = set(), {}
    for run in runs:
        wanted.setdefault(
            (run.run.method, run.run.task, run.run.backbone, run.run.seed), []
        ).append(run)
    folders = {(records.plain(method), records.plain(task)) for method, task, _, _ in wanted}
    paths = [path for store in stores() for path in records.files(store, "tune")]
    for path in paths:
        if path.parts[-3:-1] not in folders:
            continue
        record = records.read_record(path)
        s = record.settings
        for run in wanted.get(
            (s.get("method"), s.get("task"), s.get("backbone"), s.get("seed")), ()
        ):
            if run.key not in found and fits(run, s, record.weights) and is_current(record):
                found.add(run.key)
    return found


def fits(run: Planned, settings: dict, weights: str) -> bool:
    """Whether a record's settings are those of a planned run."""
    one = run.run
    lab = lab_of(run.recipe)
    case = lab.resolve(one)
    recipe, said = asdict(case.recipe), recorded_recipe(settings)
    if run.like is not None:
        searched = {
            rate_name(one.method),
            *(name for tried in lab.trials(run.like) for name in tried.changes),
        }
        said |= {name: recipe[name] for name in searched}
    chosen = json.loads(json.dumps(asdict(method_settings(one.method, **case.settings))))
    same = settings["method_settings"] == chosen and settings.get("prepared_on") == one.prepared_on
    sized = one.train_size is None or settings["train_size"] == one.train_size
    return same and sized and said == recipe and one.scratch == weights.startswith("random")


def text(budget: Budget) -> str:
    """The plan as a person reads it."""
    frame, out = budget.frame(), io.StringIO()
    shown = pd.DataFrame(
        {
            "artifact": frame.artifact,
            "made by": frame.made,
            "runs": frame.runs,
            "recorded": frame.recorded,
            "to fetch": [size(row.bytes, row.unknown_sizes) for row in frame.itertuples()],
            "hours": [
                duration(row.hours, row.runs - row.recorded, row.without_hours)
                for row in frame.itertuples()
            ],
        }
    )
    with contextlib.redirect_stdout(out):
        print(shown.to_string(index=False, justify="left"))
        print(f"hours: {budget.how}; bytes of a checkpoint: four a parameter")
        for row in budget.rows if len(budget.rows) <= 5 else ():
            print(f"{row.artifact} is made by {told(artifact(row.artifact))}: {row.command}")
            print(f"{row.artifact}: {row.note}" if row.note else "", end="\n" if row.note else "")
            if row.unknown_sizes:
                print(f"{row.artifact}: size unknown of {', '.join(row.unknown_sizes)}")
    return out.getvalue().rstrip()


def size(known: int, unknown: int) -> str:
    """Bytes in words, and how many files have no known size."""
    words = (
        "-" if not known else f"{known / 1e9:.1f} GB" if known >= 1e8 else f"{known / 1e6:.1f} MB"
    )
    return f"{words} + {unknown} unknown" if unknown else words


def duration(hours: float, runs: int, without: int) -> str:
    """Hours in words; of runs that are all without any, a question mark."""
    if not runs or runs == without:
        return "?" if without else "-"
    return f"{hours:,.2f}" + (f" + {without} runs unknown" if without else "")


if __name__ == "__main__":
    found = plan()
    with (MANIFESTS / "hours.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["artifact", "runs", "gigabytes", "hours"])
        rows.writerows(map(kept_row, (*found.rows, found.all)))
