"""How the book is written, as far as a program can hold it: what a reader meets on every
page, every alternative text, every claim.

Exempt are code, pages of the API and of records; and printed values, wherever they stand.
"""

import re
from html.parser import HTMLParser

import pytest
from sites import REAL, stale

from visbook.pages import friendly
from visbook.site.claims import asserted, is_value, statement
from visprompt import manifests, papers
from visprompt.methods import METHODS
from visprompt.paths import MANIFESTS

NO_TEXT = {"script", "style", "pre", "code", "textarea", "select", "button"}
NOT_READ = {"math", "vp-math", "sig", "headerlink", "vp-address", "vp-edition", "vp-source"}
VOID = {*"br circle col hr img input line link meta path polygon polyline rect use wbr".split()}
INLINE = {*"a abbr b br cite em i mark q small span strong sub sup tspan u wbr".split()}
WITHOUT_NUMBERS = {"vp-pictogram", "vp-strip"}  # drawings of an idea, samples of a task


class Page(HTMLParser):
    """What is read on a page: `passages` of (kind, text). A kind is "prose", "cell", "figure" (a
    cell or the caption of what was run), "alt" (the alternative text of data) or "drawing"."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.words, self.passages = [], "", []
        self.figure: list | None = None  # where the passages of an open figure begin, its badges
        text = re.sub(r'"data:[^"]*"', '""', text)
        text = re.sub(
            r'role="img"([^>]*)>\s*<title>(.*?)</title>', r'role="img"\1 aria-label="\2">', text
        )
        self.feed(text[text.find("<article") :].partition("</article>")[0])
        self.cut()

    def cut(self) -> None:
        """End a passage."""
        if words := " ".join(self.words.split()):
            kind = "cell" if {"td", "th", "text"} & {tag for tag, _ in self.open} else "prose"
            self.passages.append((kind, words))
        self.words = ""

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        classes = {*attrs.get("class", "").split()}
        if tag not in INLINE:
            self.cut()
        if tag == "figure":
            self.figure = [len(self.passages), set()]
        elif self.figure:
            self.figure[1] |= classes & {"vp-measured", "vp-trend", "vp-derived"}
        if tag == "img" or attrs.get("role") == "img":
            data = (self.figure or tag == "svg") and not classes & WITHOUT_NUMBERS
            kind = "alt" if data else "drawing"  # a notebook's own picture has a fixed text
            self.passages.append((kind, attrs.get("alt") or attrs.get("aria-label", "")))
        if tag not in VOID:
            self.open.append((tag, tag in NO_TEXT or bool(classes & NOT_READ)))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in INLINE:
            self.cut()
        while any(name == tag for name, _ in self.open) and self.open.pop()[0] != tag:
            pass
        if tag == "figure" and self.figure:
            self.close_figure(*self.figure)

    def close_figure(self, first: int, badges: set[str]) -> None:
        """Tell cells and pictures of what was run from those of what was counted."""
        run = badges and "vp-derived" not in badges
        for place, (kind, text) in enumerate(self.passages[first:], first):
            if kind == "alt" and not run:
                self.passages[place] = ("drawing", text)
            elif kind != "alt" and run:
                self.passages[place] = ("figure", text)
        self.figure = None

    def handle_data(self, data):
        hidden = any(hidden for _, hidden in self.open)
        self.words += " \N{OPEN BOX} " if hidden and data.strip() else "" if hidden else data


IDS = {
    *METHODS,
    *papers.artifacts().index,
    *manifests.load_yaml(MANIFESTS / "tasks.yaml")["embedded"],
}
IDS |= {path.stem for path in (MANIFESTS / "datasets").glob("*.yaml")}
IDS = "|".join(sorted(id for id in IDS if "_" in id))
GREEK = "|".join(friendly.GREEK)
NOUNS = "points|records|minutes|hours|seconds|days|threads|runs|seeds|trials|tasks|images|blocks"
A_FOR_PER = "tokens|prompts|bytes|steps|seeds|epochs|images|parameters|entries|trials|runs|units"
RULES = {  # what no reader should meet, examples of it, and what looks like it and may stay
    "a hyphen for a minus sign": (
        r"(?<![\w.)\]}%/:–−-])-(?=\.?\d)",
        ("by -0.5 points", "[-1, 0.2]", "(-1, 0)", "= -.5"),
        ("ViT-B/16", "Eq. 5-6", "2026-11-27", "−0.5", "10.1109/-5", "layer l-1"),
    ),
    "mathematics as it is typed": (
        rf"(?<![\w=.-])({GREEK})(?![a-z=-])|\w\^-?\d|<=|>=|\+-\d|\bsqrt\(|\d\*\*",
        ("against 1 / eta", "P^2", "sigma_d", "1 >= x", "+-1", "sqrt(m)", "alpha*"),
        ("α²", "an alphabet", "beta-VAE", "beta=0.5", "metadata", "x < 1"),
    ),
    "output of a program": (
        rf"(?<![\w.,−–/-])(?<!Table )(?<!Section )1 ({NOUNS})\b|\bnan\b|\bNone (of|to) None\b"
        r"|[−-]0(\.0+)?(?![\d.])|\{[\w'\"]+[}:]|\\[a-z]+\{|\de[+-]?0\d|\d\.\d*[1-9]\d{6,}",
        (
            "1 threads",
            "took 1 minutes",
            "nan to 3",
            "None of None",
            "[−3.5, −0.0]",
            "{'a': 1}",
            "for {name}",
            r"\max{x}",
            "1e-09",
            "0.0005208333333333333",
        ),
        (
            "1 thread",
            "11 points",
            "Table 1 points at",
            "nanometre",
            "0.0",
            "−0.05",
            "{i : i < 3}",
            "1e-5",
            "0.00052",
        ),
    ),
    "an id with a name for readers": (
        rf"{friendly.NETWORK.pattern}|{friendly.TASK.pattern}|(?<![\w./-])({IDS})(?![\w=/-])",
        ("on vit_micro_patch4_24", "ten images of scenes_fill", "needs pascal_context", "cifar100"),
        ("ViT-Micro", "data/cifar100/train", "PASCAL Context", "the flowers"),
    ),
    "a word of the old dialect": (
        r"\blegs?\b|\bdrawn world|\b(random|uniform|normal|other|small) starts?\b|\ba rate of \d"
        rf"|\b({A_FOR_PER}) an? (block|cell|class|seed|task|image|run|parameter|epoch)\b",
        ("both legs", "the drawn world", "random starts", "a rate of 0.1", "three seeds a cell"),
        ("legend", "drawn at random", "the run starts", "learning rate of 0.1", "seeds per cell"),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_what_it_is_for_and_nothing_else(rule):
    asked, bad, good = RULES[rule]
    assert not [text for text in bad if not re.search(asked, text)]
    assert not [text for text in good if re.search(asked, text)]


NUMBER = re.compile(r"(?<![\w.,/:])\d[\d,]*\.\d+(?![\w.]|,\d)")
COUNTED = re.compile(
    r" ?±| (thousand|million|billion|M|GB|MB|GFLOPs)\b"
)  # exact, or a printed form


def printed_numbers() -> set[float]:
    """All numbers with decimals of what the papers print, and of what else was written by hand."""
    files = [path for end in ("csv", "yaml") for path in MANIFESTS.rglob(f"*.{end}")]
    return {float(n) for path in files for n in re.findall(r"\d+\.\d+", path.read_text())}


def too_exact(kind: str, text: str, printed: set[float]) -> list[str]:
    """The numbers of a passage with four significant digits or more that nobody printed or counted;
    of 1.019 only what is above 1 counts, and hundreds may have one decimal."""
    if kind == "cell":
        return []
    found = [(m[0], m.end()) for m in NUMBER.finditer(text)]
    return [
        shown
        for shown, end in found
        if len(re.sub(r"^1(?=\.0)|[.,]", "", shown).lstrip("0")) > 3
        and not re.fullmatch(r"\d{3}\.\d", shown)
        and float(shown.replace(",", "")) not in printed
        and not COUNTED.match(text, end)
    ]


def faults(page: str, printed: set[float]) -> list[str]:
    """What is against a rule on a page, each with its words."""
    found = []
    for kind, text in Page(page).passages:
        for rule, (asked, *_) in RULES.items():
            found += [
                f"{rule}: {text[max(0, m.start() - 40) : m.end() + 30]}"
                for m in re.finditer(asked, text)
            ]
        found += [f"four digits: {n} in: {text[:60]}" for n in too_exact(kind, text, printed)]
        if (
            kind in ("alt", "drawing")
            and len(text) < 20
            or kind == "alt"
            and not re.search(r"\d", text)
        ):
            found.append(f"an alternative text without a finding: {text or 'none'}")
    return found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<p>It falls by <strong>-0.5</strong> points.</p>", "minus"),
        ("<p><code>-0.5</code> <span class='math'>\\(P^2\\)</span></p>", ""),
        ("<svg><text>vit_micro_patch4_24</text></svg>", "id"),
        ("<p>We measured 12.345 ms.</p>", "four digits"),
        ("<p>We count 12.345 million.</p><table><td>12.345</td></table>", ""),
        ("<figure><td>12.345</td><b class='vp-trend'>trend</b></figure>", "four digits"),
        ("<figure><td>12.345</td><b class='vp-derived'>derived</b></figure>", ""),
        (
            "<figure><img alt='Accuracy of methods over blocks.'><b class=vp-trend></b></figure>",
            "alt",
        ),
        (
            "<figure><img alt='AP leads by 3.1 points at block 2.'><b class=vp-trend></b></figure>",
            "",
        ),
        ("<img>", "alt"),
    ],
)
def test_a_spoiled_page_is_found(body, found):
    shown = faults(f"<nav>-1</nav><article>{body}</article>", {1.5})
    assert [found in text for text in shown] == [True] * bool(found)


def test_every_page_is_written_by_the_rules():
    if not (REAL / "index.html").exists() or stale():
        pytest.skip("no site of today's sources; make book builds it")
    printed, found = printed_numbers(), []
    for page in sorted(REAL.rglob("*.html")):
        if not {"_static", "records", "api", "api.html"} & {*page.relative_to(REAL).parts}:
            told = faults(page.read_text(), printed)
            found += [f"{page.relative_to(REAL)}: {fault}" for fault in told]
    assert not found, "\n".join(found)


VERBS = """achieves? acts adds? are attends? beats? becomes? bound can changes comes contribute
converges? costs? depends? differs? does? enhances equals? evaluates exceeds? exhibits
falls? follows? gains? generates gets gives? goes grows? has have helps? holds?
improves? is keeps? leads? learns? lies looks loses? lowers? makes? matters? may means
needs? outperforms? performs? prefers? presents raises ranks? reaches remains? removes
resemble resists reverses rises? saves? scales? select share showcases shrinks? stays?
succeed takes? trains? uses? varies vary""".split()


def is_sentence(text: str, shown: str) -> bool:
    """Whether a claim has a verb, begins like a sentence and ends in one full stop."""
    verb = re.search(rf"\b({'|'.join(VERBS)})\b", text)
    begins = re.match(r"(<span class=.math|“|k-means|iVPT|\W?[A-ZΑ-Ω0-9])", shown)
    return bool(verb and begins and re.search(r"[^.;:,][.?!]$", shown))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mean accuracy of SPT-Deep", "Mean accuracy of SPT-Deep."),
        ("The same as NORM-TUNE.", "The same as NORM-TUNE.."),
        ("AP beats VP.", "AP beats VP.."),
        ("AP beats VP", "AP beats VP"),
        ("80.45 against 76.03", "80.45 against 76.03."),
        ("it beats VP", "it beats VP."),
    ],
)
def test_what_is_no_sentence_is_found(text, shown):
    assert not is_sentence(text, shown)


def test_every_claim_is_a_sentence():
    every = papers.claims()
    assert [one.id for one in every if not is_sentence(asserted(one), statement(one))] == []
    assert [
        one.id for one in every if asserted(one) == one.metric or (not one.says and is_value(one))
    ] == []
