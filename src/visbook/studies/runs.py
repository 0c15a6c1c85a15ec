"""The records that there are, as a frame: `visprompt.runs`, and the command `visprompt runs`."""

import pandas as pd

from visprompt.records import listing


def runs(
    kind: str | None = None,
    *,
    paper: str | None = None,
    study: str | None = None,
    outdated: bool = False,
    version: str | None = None,
    **wanted: str | int | None,
) -> pd.DataFrame:
    """List the records of this machine and the kept ones.

    Args:
        kind: such as "tune" or "cost".
        paper: slug; only the runs that its tables and figures show by data_manifests/plan.yaml, and
            its theory's.
        study: only the runs of a study of data_manifests/studies.yaml, with any seed, and those of
            its search.
        outdated: only those that other code made.
        version: "other", of another major or minor version of torch, torchvision or timm than is
            installed, or "torch=2.15".
        wanted: method, task, backbone, seed, profile, recipe, store ("here" or "kept"), or another
            column.

    Returns:
        A row a record: what the command shows, `carried`, `profile`, `recipe`, `weights`, `data`,
            `commit`, `seconds`, the versions, and a column for every setting, such as
            `settings.recipe.epochs`; see `records.listing.table`.

    Raises:
        BadInput: no record has a value; the message names those that there are.
    """
    asked = []
    if paper is not None or study is not None:
        from . import matching  # loads torch, which takes longer than the list

        asked = [
            of(name)
            for of, name in ((matching.of_paper, paper), (matching.of_study, study))
            if name is not None
        ]

    def fits(entry: dict) -> bool:
        return all(is_one(entry) for is_one in asked)

    return listing.table(kind, outdated=outdated, version=version, fits=fits, **wanted)
