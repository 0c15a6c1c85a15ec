"""What the pages say, on the command line: claims, the audit, printed tables, the list of
artifacts."""

import sys

from visprompt.errors import choose


def claims(args) -> None:
    """One claim a line: id, artifact, evidence, answer, weight; a trend's answers are words of
    their own."""
    from visprompt import papers
    from visprompt.words import ALIKE, SIGHTINGS, VERDICTS

    if args.paper:
        choose("paper", args.paper, papers.papers())  # before seconds of imports
    from .results import claims

    found = claims(args.paper, args.verdict, args.profile)
    for row in found.itertuples():
        evidence = row.evidence if isinstance(row.evidence, str) else "-"
        print(f"{row.id}\t{row.artifact}\t{evidence}\t{row.verdict}\t{row.weight}")
    others = [word for word in found.verdict.unique() if word not in (*VERDICTS, *SIGHTINGS, ALIKE)]
    for what, words in (
        ("judged", VERDICTS),
        ("at reduced scale", (*SIGHTINGS, ALIKE)),
        ("open", others),
    ):
        told = [f"{n} {word}" for word in words if (n := (found.verdict == word).sum())]
        if told:
            print(f"{what}: {', '.join(told)}", file=sys.stderr)


def audit(args) -> None:
    """The papers held against themselves, one finding a line: id, where printed, printed,
    recomputed, verdict."""
    from visprompt import papers
    from visprompt.words import VERDICTS

    if args.paper:
        choose("paper", args.paper, papers.papers())  # before seconds of imports
    from ..auditing import ARITHMETIC, WORDING, audit

    if args.verdict:
        choose("verdict", args.verdict, VERDICTS)
    found = audit(args.paper)
    for row in (
        found[found.verdict == args.verdict].itertuples() if args.verdict else found.itertuples()
    ):
        print("\t".join((row.id, row.where, row.printed, row.computed or "-", row.verdict)))
    for name, kinds in {"arithmetic": ARITHMETIC, "wording": WORDING}.items():
        mine = found[found.kind.isin(kinds)]
        verdicts = ", ".join(
            f"{count} {word}" for word, count in mine.verdict.value_counts().items()
        )
        each = ", ".join(f"{count} {kind}" for kind, count in mine.kind.value_counts().items())
        print(
            f"{name}: {len(mine)} findings ({each}): {verdicts}" if len(mine) else f"{name}: none",
            file=sys.stderr,
        )


def published(args) -> None:
    """A table as the paper prints it."""
    from visprompt import papers

    print(papers.published(args.artifact).to_string(index=False))


def artifacts(args) -> None:
    """The tables, figures and theorems of the papers."""
    from visprompt import papers

    for id, row in papers.artifacts(args.paper).iterrows():
        print(f"{id}\t{row['kind']} {row['number']}\t{row['title']}")


PAPER = ("--paper", {"help": "slug of one paper"})
COMMANDS = {  # function -> its options
    claims: [PAPER, ("--verdict", {}), ("--profile", {"default": "quick"})],
    audit: [("paper", {"nargs": "?", "help": "slug of one paper"}), ("--verdict", {})],
    published: [("artifact", {"help": "such as ap.table-1"})],
    artifacts: [PAPER],
}
