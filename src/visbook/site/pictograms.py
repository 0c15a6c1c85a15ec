"""The small picture beside each paper on the front page: four frozen blocks, and what the paper
adds to them."""

from visprompt.errors import choose

BLOCKS = (52, 98, 144, 190)  # left edges
GROUPS = ("#0072b2", "#009e73", "#cc79a7")


def block(x: int) -> str:
    """A frozen block."""
    return f'<rect x="{x}" y="8" width="30" height="56" rx="4" class="vp-frozen"/>'


def dot(x: float, y: float, color: str = "") -> str:
    """A token, grey unless a colour is given."""
    look = f'fill="{color}"' if color else 'class="vp-token"'
    return f'<circle cx="{x}" cy="{y}" r="4" {look}/>'


def learned(x: float, y: float) -> str:
    """A prompt."""
    return f'<rect x="{x - 5}" y="{y - 5}" width="10" height="10" rx="2" class="vp-learned"/>'


def line(
    x1: float, y1: float, x2: float, y2: float, width: float = 1.5, kind: str = "vp-line"
) -> str:
    """A line, or an arrow of the kind `vp-grow`."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="{width}" class="{kind}"/>'


def image() -> list[str]:
    """The tokens of an image, at the left."""
    return [dot(x, y) for x in (16, 32) for y in (20, 36, 52)]


def activation() -> list[str]:
    """AP: something added between two blocks."""
    return [*map(block, BLOCKS), *image(), *(learned(90, y) for y in (20, 36, 52))]


def classes() -> list[str]:
    """DA-VPT: prompts near the tokens of their classes."""
    tokens = [
        (70, 16, 0),
        (84, 28, 0),
        (66, 34, 0),
        (128, 44, 1),
        (142, 54, 1),
        (150, 38, 1),
        (190, 16, 2),
        (206, 26, 2),
    ]
    pulls = [(98, 18, 78, 22, 0), (112, 56, 136, 48, 1), (176, 34, 196, 22, 2)]
    drawn = [dot(x, y, GROUPS[group]) for x, y, group in tokens]
    for x1, y1, x2, y2, group in pulls:
        drawn += [line(x1, y1, x2, y2), learned(x1, y1)]
        place = f'x="{x1 - 5}" y="{y1 - 5}" width="10" height="10" rx="2"'
        drawn.append(f'<rect {place} fill="none" stroke="{GROUPS[group]}" stroke-width="2.5"/>')
    return drawn


def attention() -> list[str]:
    """The shallow ViT: attention on few tokens."""
    places = [(40 + 22 * number, 56) for number in range(8)]
    lines = [
        line(118, 16, x, y, 3 if number in (2, 5) else 0.7) for number, (x, y) in enumerate(places)
    ]
    return [
        *lines,
        *(dot(x, y, "#0072b2" if number in (2, 5) else "") for number, (x, y) in enumerate(places)),
        learned(118, 14),
    ]


def linked() -> list[str]:
    """iVPT: prompts of neighbouring blocks connected."""
    joints = [line(x + 15, 20, y + 15, 20, 2.5) for x, y in zip(BLOCKS, BLOCKS[1:])]
    return [*map(block, BLOCKS), *image(), *joints, *(learned(x + 15, 20) for x in BLOCKS)]


def started() -> list[str]:
    """SPT: prompts start as tokens."""
    return [
        *map(block, BLOCKS),
        *image(),
        '<path d="M 32 20 C 40 2, 60 2, 64 16" class="vp-line" fill="none" stroke-width="1.5"/>',
        '<path d="M 32 52 C 40 74, 60 74, 64 56" class="vp-line" fill="none" stroke-width="1.5"/>',
        dot(32, 20, "#d55e00"),
        dot(32, 52, "#d55e00"),
        *(learned(x + 15, y) for x in BLOCKS for y in (20, 52)),
    ]


# Name, as a paper of papers.yaml has it under `drawing`, -> the drawing, and what there is to see.
DRAWINGS = {
    "activation": (
        activation,
        "Tokens pass four frozen blocks; before the second, something learned is added to all of "
        "them.",
    ),
    "classes": (
        classes,
        "Prompts of three colours beside tokens of the same colours: each prompt is drawn to its "
        "own class.",
    ),
    "attention": (
        attention,
        "One attention layer: of eight tokens that the class token looks at, two get nearly all "
        "attention.",
    ),
    "linked": (
        linked,
        "Four blocks, each with prompts that are linked to those of the block before.",
    ),
    "started": (started, "Two patch tokens of an image are copied to where the prompts start."),
}


def draw(name: str) -> str:
    """A drawing as SVG; frozen parts take the colour of the text around them, learned ones are
    orange.

    Raises:
        BadInput: there is no drawing of that name; the message names the nearest.
    """
    drawn, alt = DRAWINGS[choose("drawing", name, DRAWINGS)]
    return (
        f'<svg class="vp-pictogram" viewBox="0 0 240 72" role="img" '
        f'aria-label="{alt}">{"".join(drawn())}</svg>'
    )
