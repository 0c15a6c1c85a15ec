"""Names for readers: of networks, data sets and tasks, written once. Ids stay as they are in code,
commands and addresses."""

import re

NETWORKS = {
    "vit_nano_patch4_24": "ViT-Nano",
    "vit_micro_patch4_24": "ViT-Micro",
    "vit_mini_patch4_24": "ViT-Mini",
    "swin_micro_patch3_24": "Swin-Micro",
    "resnet_micro_24": "ResNet-Micro",
    "vit_tiny_patch16_224": "ViT-Tiny",
    "vit_small_patch16_224": "ViT-S/16",
    "vit_base_patch16_224": "ViT-B/16",
    "vit_base_patch32_clip_quickgelu_224": "CLIP ViT-B/32",
    "vit_large_patch16_224": "ViT-L/16",
    "vit_huge_patch14_224": "ViT-H/14",
    "swin_base_patch4_window7_224": "Swin-B",
}
TRAINED = {  # what stands behind the dot
    "augreg_in21k_ft_in1k": "",
    "mae": " (MAE)",
    "mae_leaves": " (MAE, leaves)",
    "mocov3": " (MoCo-v3)",
    "mocov3_leaves": " (MoCo-v3, leaves)",
    "clip": " (CLIP)",
}
TASKS = {
    "caltech101": "Caltech-101",
    "cifar100": "CIFAR-100",
    "dtd10": "DTD (ten classes)",
    "gtsrb": "GTSRB",
    "ucmerced": "UC Merced",
    "scenes_fill": "scenes by fill",
    "scenes_shape": "scenes by shape",
    "dsprites_location": "dSprites location",
    "dsprites_orientation": "dSprites orientation",
}
NETWORK = re.compile(
    rf"\b({'|'.join(map(re.escape, NETWORKS))})(?:\.({'|'.join(sorted(TRAINED, reverse=True))}))?"
    r"(?![\w=]|\.\w)"
)
TASK = re.compile(rf"(?<![\w./-])({'|'.join(TASKS)})(?![\w=/-])")
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "lambda": "λ", "sigma": "σ"}
SYMBOL = re.compile(rf"(?<!\\)\b({'|'.join(GREEK)})(?= = )")  # \beta of a formula stays
MINUS = re.compile(r"(?<![\w./{^_\\–−-])-(?=\.?\d)")  # a hyphen in front of a number
ZERO = re.compile(r"(?<![\w)])[+−-](0\.0+)(?![\d.])")  # a zero has no sign
POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?)0*(\d+)(?!\w|\.\d)")  # 1.8e-15
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# no text for readers: code, tags and mathematics, in HTML and in Markdown
KEPT = re.compile(
    r"<(code|pre|script|style)\b.*?</\1>|<[^>]*>|\\\(.*?\\\)|\$[^$\n]+\$|`[^`\n]*`", re.S
)


def friendly(shown: str) -> str:
    """HTML or Markdown with names for readers in the place of ids, outside of code."""
    parts, last = [], 0
    for match in KEPT.finditer(shown):
        parts += [named(shown[last : match.start()]), match[0]]
        last = match.end()
    return "".join([*parts, named(shown[last:])])


def power(found: re.Match) -> str:
    """A number like 1.8e-15 as a reader writes it: 1.8 × 10⁻¹⁵."""
    number, sign, exponent = found.groups()
    raised = f"10{(sign + exponent).replace('+', '').translate(RAISED)}"
    return raised if number == "1" else number if exponent == "0" else f"{number} × {raised}"


def named(text: str) -> str:
    """A text with names for readers, and numbers as they are written by hand: with a minus sign
    below zero, with powers of ten, and no sign in front of 0.0."""
    text = NETWORK.sub(lambda match: NETWORKS[match[1]] + TRAINED.get(match[2], ""), text)
    text = TASK.sub(lambda match: TASKS[match[1]], text)
    text = SYMBOL.sub(lambda match: GREEK[match[1]], text)
    return ZERO.sub(r"\1", MINUS.sub("−", POWER.sub(power, text)))
