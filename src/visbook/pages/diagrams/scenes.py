"""What several pictures share: the network from left to right, one block opened, arrows of prompts,
and a brace."""

from .sketch import CLASS, STEP, TRAINED, WIDTH, Sketch

# The network scene, left to right: stem, then a column of tokens before each of three blocks and
# behind the last.
STEM, COLUMNS, BLOCKS, HEAD = 0.94, (1.4, 2.68, 4.1, 5.38), (1.97, 3.25, 4.67), 6.1


def network(
    s: Sketch,
    y,
    prompts=(None,) * 4,
    *,
    count=3,
    patches=4,
    trained=False,
    names=("0", "1", "L−1"),
    columns=COLUMNS,
) -> dict:
    """Image, stem, three blocks, head, and the columns of tokens between them.

    Args:
        y: height of the middle.
        prompts: for each of the four columns None, a kind of token, or two: what came out, and what
            goes in.

    Returns:
        {"prompts": for each column the places of what goes in, "class", "patches", "top",
        "bottom"}.
    """
    count = count if any(prompts) else 0
    tall = (count + 1 + patches) * STEP + (0.08 if count else 0) + 0.08
    top = y + tall / 2 - STEP / 2
    rows = {"class": top - count * STEP - (0.08 if count else 0)}
    rows["patches"] = rows["class"] - STEP - 0.08
    found = {
        "prompts": [],
        "class": [],
        "patches": [],
        "top": top + STEP / 2,
        "bottom": top + STEP / 2 - tall,
    }
    middle = rows["patches"] - STEP
    s.image(0.35, middle)
    s.arrow((0.66, middle), (0.71, middle), head="-")
    s.box(STEM, middle, 0.46, 0.7, "stem", trained=trained)
    for index, (x, kind) in enumerate(zip(columns, prompts, strict=True)):
        sides = kind if isinstance(kind, tuple) else (None, kind)
        shift = 0.11 if all(sides) else 0
        for side, each in zip((-1, 1), sides):
            places = s.stack(x + side * shift, top, [each] * count) if each else []
        found["prompts"].append(places)
        found["class"] += s.stack(
            x, rows["class"], ["trained" if trained and not index else "class"]
        )
        found["patches"].append(s.stack(x, rows["patches"], ["patch"] * patches))
        before = BLOCKS[index - 1] + 0.25 if index else STEM + 0.23
        if index == 2 and names[2] == "L−1":
            s.text(before + 0.14, middle, "…", size=11)
            before += 0.26
        s.arrow((before, middle), (x - 0.1, middle))
        if index < 3:
            s.arrow((x + 0.1, middle), (BLOCKS[index] - 0.25, middle))
            s.box(BLOCKS[index], y, 0.5, max(tall, 1.3), f"block\n{names[index]}", trained=trained)
    end = HEAD - 0.26
    if names[2] != "L−1":
        s.text(end - 0.13, rows["class"], "…", size=11)
        end -= 0.22
    s.arrow((columns[3] + 0.1, rows["class"]), (end, rows["class"]), color=CLASS)
    s.box(HEAD, rows["class"], 0.52, 0.4, "head", trained=True)
    s.arrow((HEAD + 0.26, rows["class"]), (HEAD + 0.56, rows["class"]))
    return found


LAYERS = {
    "norm1": (0.42, "LN"),
    "qkv": (0.42, ""),
    "attention": (0.76, "attention"),
    "proj": (0.46, "proj"),
    "sum1": (0.2, ""),
    "norm2": (0.42, "LN"),
    "fc1": (0.42, "fc1"),
    "fc2": (0.42, "fc2"),
    "sum2": (0.2, ""),
}


def opened(
    s: Sketch, y: float, trained=(), room=None, left=0.12, right=WIDTH - 0.12, skip=1.0
) -> dict[str, float]:
    """One block with its layers along a line at height y; returns the middles of layers, and of
    wires behind them.

    Args:
        trained: names of layers in the accent colour.
        room: more length for the wire behind a layer ("in" for the first wire).
    """
    room = room or {}
    wires = ["in", *LAYERS]
    gap = (right - left - sum(width for width, _ in LAYERS.values()) - sum(room.values())) / len(
        wires
    )
    x, at = left, {}
    for name in wires:
        width, words = LAYERS.get(name, (0, ""))
        at[name] = x + width / 2
        end = x + width
        wire = gap + room.get(name, 0)
        at[f"{name}>"] = end + wire / 2
        if name == "qkv":
            at["split"] = x - 0.1
            for part, shift in zip("QKV", (0.48, 0, -0.48)):
                s.box(at[name], y + shift, width, 0.36, part, trained=part in trained)
                s.arrow((x - 0.1, y + shift), (x, y + shift))
                s.arrow((end, y + shift), (end + wire, y + shift))
            s.path((x - 0.1, y + 0.48), (x - 0.1, y - 0.48), arrow=False)
        elif name.startswith("sum"):
            s.sign(at[name], y)
        elif name != "in":
            s.box(
                at[name],
                y,
                width,
                1.32 if name == "attention" else 0.5,
                words,
                trained=name in trained,
            )
        if name == "norm1":
            s.path((end, y), (end + wire - 0.1, y), arrow=False)
        elif name != "qkv":
            s.arrow((end, y), (end + wire, y))
        x = end + wire
    for start, name in ((left + 0.08, "sum1"), (at["sum1>"], "sum2")):
        s.path((start, y), (start, y + skip), (at[name], y + skip), (at[name], y + 0.1))
    s.frame((at["fc1"] + at["fc2"]) / 2, y, at["fc2"] - at["fc1"] + 0.54, 0.66)
    s.text((at["fc1"] + at["fc2"]) / 2, y + 0.45, "MLP")
    return at


def brace(s: Sketch, left, right, y, words):
    """A bracket below a stretch of the network, and what it says."""
    s.path((left, y + 0.08), (left, y), (right, y), (right, y + 0.08), arrow=False)
    s.text((left + right) / 2, y - 0.13, words)


def above(s: Sketch, at, words, columns=(0, 1, 2), rise=0.2):
    """Names of prompts over their columns."""
    for column, word in zip(columns, words):
        s.text(at["prompts"][column][0][0], at["top"] + rise, word)


DEEP = ("trained", ("dropped", "trained"), ("dropped", "trained"), "dropped")


def entering(s: Sketch, at, columns=(0, 1, 2), color=TRAINED):
    """Arrows from the prompts of a column into the block behind it."""
    for column in columns:
        x, row = at["prompts"][column][1]
        s.arrow((x + 0.1, row), (BLOCKS[column] - 0.25, row), color=color)


def leaving(s: Sketch, at, columns=(1, 2, 3), short=0.1):
    """Arrows from a block to the prompts that come out of it, with dots where blocks are left
    out."""
    row = at["prompts"][0][1][1]
    for column in columns:
        start = BLOCKS[column - 1] + 0.25
        if column == 2:
            s.text(start + 0.14, row, "…", size=11, color=TRAINED)
            start += 0.26
        s.arrow(
            (start, row), (COLUMNS[column] - (0.1 if column == 3 else short), row), color=TRAINED
        )
