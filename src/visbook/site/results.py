"""What the executed notebooks and the audit found, for every artifact and every claim."""

import sys
from dataclasses import asdict, fields
from pathlib import Path

import pandas as pd

from visprompt import manifests, papers, paths
from visprompt.errors import BadInput, choose
from visprompt.words import (
    ALIKE,
    NOT_JUDGED,
    NOT_RUN,
    PROFILES,
    SIGHTINGS,
    VERDICTS,
    WEAKEST_FIRST,
    WEIGHTS,
    answers,
)

from ..auditing import Finding, audit_records, opposed
from ..pages import judging
from ..pages.judging import RESULTS_MIME
from . import parties


def notebooks(root: Path) -> dict:
    """Name -> {title, artifacts, after} from data_manifests/notebooks.yaml."""
    return manifests.load_yaml(root / "data_manifests" / "notebooks.yaml")


def read_notebook(path: Path, profile: str) -> tuple[dict, dict]:
    """Return an executed notebook and the results that its last cell left.

    Raises:
        BadInput: it is missing or damaged, a cell did not run or failed, it left no results, or it
            ran with another profile; the message names the notebook and the cell.
    """
    again = f"Run it again: make book PROFILE={profile}"
    if not path.exists():
        raise BadInput(f"{path} does not exist, so notebook {path.stem} has not run. {again}")
    import nbformat  # what only publishes is in the extra visprompt[book]

    try:
        notebook = nbformat.read(path, as_version=4)
    except (ValueError, nbformat.reader.NotJSONError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadInput(f"{path} is no notebook ({why[:200]}). Delete it. {again}") from error
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror}. Mend or delete it. {again}"
        ) from error
    results = None
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(code, start=1):
        which = cell.metadata.get("name") or first_line(cell.source)
        name = f"notebook {path.stem}, code cell {number} ({which})"
        if cell.execution_count is None:
            raise BadInput(f"{name} did not run. {again}")
        for output in cell.outputs:
            if output.output_type == "error":
                raise BadInput(
                    f"{name} failed with {output.ename}: {output.evalue}. Mend it. {again}"
                )
            results = output.get("data", {}).get(RESULTS_MIME, results)
    if results is None:
        raise BadInput(
            f"notebook {path.stem} left no results; its last cell must be page.close(). {again}"
        )
    if not isinstance(results, dict) or not {
        "profile",
        "commit",
        "artifacts",
        "claims",
        "studies",
    } <= set(results):
        raise BadInput(f"{path} holds results that page.close() did not write. Delete it. {again}")
    if results["profile"] != profile:
        raise BadInput(
            f"notebook {path.stem} ran with profile {results['profile']}, not {profile}. {again}"
        )
    return notebook, results


def first_line(source: str) -> str:
    """The first line of a cell, to tell the reader which one is meant."""
    return repr(source.strip().splitlines()[0][:60])


def read_results(profile: str = "quick", root: Path | None = None) -> dict:
    """Return what the executed notebooks of a profile found, for every artifact and every claim.

    The result holds "profile", "notebooks" (name -> commit), "studies" (name -> those whose runs it
    shows), "artifacts" (id -> "evidence", "shows", "not_run", "notebook"), "claims" (id ->
    "verdict", "evidence", "estimate", "low", "high", "images", "records", "note", "notebook",
    "parties", "spread"; see `parties.noted`) and "findings" (of the audit). What no notebook speaks
    of is there too, as `not run`. A measurement that two claims ask the same of is judged once, by
    the one that weighs more.

    Raises:
        BadInput: a notebook has not run, ran only in part, or ran with another profile.
    """
    choose("profile", profile, PROFILES)
    root = root or paths.ROOT
    nothing = {"evidence": NOT_RUN, "shows": [], "not_run": None, "notebook": None}
    unasked = {"verdict": NOT_RUN, "note": "", "images": "", "records": [], "notebook": None}
    unasked |= dict.fromkeys(("evidence", "estimate", "low", "high"))
    found = {
        "profile": profile,
        "notebooks": {},
        "studies": {},
        "titles": {name: entry["title"] for name, entry in notebooks(root).items()},
        "artifacts": {id: dict(nothing) for id in papers.artifacts().index},
        "claims": {claim.id: dict(unasked) for claim in papers.claims()},
        "findings": audited(),
    }
    for name in notebooks(root):
        _, results = read_notebook(root / "build" / "executed" / profile / f"{name}.ipynb", profile)
        found["notebooks"][name] = results["commit"]
        found["studies"][name] = results["studies"]
        for id, entry in results["artifacts"].items():
            choose(f"artifact in notebook {name}:", id, found["artifacts"])
            shown = {show["evidence"] for show in entry["shows"]}
            evidence = next((kind for kind in WEAKEST_FIRST if kind in shown), NOT_RUN)
            found["artifacts"][id] = {**entry, "evidence": evidence, "notebook": name}
        for id, entry in results["claims"].items():
            choose(f"claim in notebook {name}:", id, found["claims"])
            if entry["verdict"] not in (NOT_JUDGED, *answers(entry["evidence"])):
                raise BadInput(
                    f"notebook {name} says {entry['verdict']!r} of {id}, which is no word "
                    f"of a {entry['evidence']}."
                )
            found["claims"][id] = {**entry, "notebook": name}
    judge_once(found["claims"])
    for finding in found["findings"]:
        answer = found["claims"].get(finding["claim"])
        if answer is not None and answer["evidence"] is None:
            found["claims"][finding["claim"]] = {**answer, **by_audit(finding)}
    refuse_opposed(found)
    parties.noted(found["claims"])
    return found


def refuse_opposed(found: dict) -> None:
    """Raise BadInput where a claim that printed cells or the architecture decide and a finding of
    the audit contradict."""
    exact = {
        id: entry["verdict"]
        for id, entry in found["claims"].items()
        if entry["evidence"] == "derived"
    }
    findings = [
        Finding(**{name: entry[name] for name in Finding.__dataclass_fields__})
        for entry in found["findings"]
    ]
    for claim, finding in opposed(findings, exact):
        raise BadInput(
            f"{claim} {exact[claim]} and finding {finding} says the opposite of the same "
            f"cells; judge both alike."
        )


def judge_once(found: dict[str, dict]) -> None:
    """Leave a measurement that several claims ask the same of to the one that weighs most, else to
    the first."""
    order = sorted(papers.claims(), key=lambda claim: WEIGHTS.index(claim.weight))
    order = [claim for claim in order if found[claim.id]["estimate"] is not None]
    for place, claim in enumerate(order):
        for earlier in order[:place]:
            if judging.same_measurement(claim, found[claim.id], earlier, found[earlier.id]):
                notebook = found[claim.id]["notebook"]
                found[claim.id] = {
                    **judging.repeated(earlier.id, found[claim.id]),
                    "notebook": notebook,
                }


def audited() -> list[dict]:
    """The findings of the audit for all papers, from their records, each with the id of its
    record."""
    return [
        {**finding, "record": r.id} for r in audit_records() for finding in r.values["findings"]
    ]


def by_audit(finding: dict) -> dict:
    """What a finding says of its claim."""
    estimate = finding["estimate"]
    claim = papers.claim(finding["claim"])
    choose(f"evidence for {claim.id}", "derived", claim.settles)
    yes_no_neither, open_ = (
        answers("derived"),
        estimate is None or finding["verdict"] == "inconclusive",
    )
    return {
        "verdict": yes_no_neither[2]
        if open_
        else judging.verdict(claim, estimate, estimate, "derived"),
        "evidence": "derived",
        "estimate": estimate,
        "low": estimate,
        "high": estimate,
        "images": "",
        "records": [finding["record"]],
        "note": f"From printed cells: {finding['what']}. {finding['reading']}".strip(),
    }


def claims(
    paper: str | None = None, wanted: str | None = None, profile: str = "quick"
) -> pd.DataFrame:
    """The claims of one paper, or of all, with what the executed notebooks and the audit say of
    them.

    Args:
        wanted: only claims with this verdict.

    Returns:
        The fields of `papers.Claim`, then "verdict", "evidence", "estimate", "low", "high",
        "images", "note" and "notebook". Before any notebook has run, no verdict but the audit's is
        known.

    Raises:
        BadInput: unknown paper, verdict or profile.
    """
    if wanted is not None:
        choose("verdict", wanted, [*VERDICTS, *SIGHTINGS, ALIKE, NOT_JUDGED, NOT_RUN])
    given = papers.claims(paper)
    try:
        answers = read_results(profile)["claims"]
    except BadInput as error:
        choose("profile", profile, PROFILES)
        print(f"No notebook's answer is known yet: {error}", file=sys.stderr)
        answers = {f["claim"]: {"notebook": None, **by_audit(f)} for f in audited() if f["claim"]}
    nothing = {
        "verdict": NOT_RUN,
        "evidence": None,
        "estimate": None,
        "low": None,
        "high": None,
        "images": "",
        "note": "",
        "notebook": None,
    }
    rows = [
        {**asdict(claim), **{key: answers.get(claim.id, nothing)[key] for key in nothing}}
        for claim in given
    ]
    frame = pd.DataFrame(rows, columns=[f.name for f in fields(papers.Claim)] + list(nothing))
    return frame if wanted is None else frame[frame.verdict == wanted]
