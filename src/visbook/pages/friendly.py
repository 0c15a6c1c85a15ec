"""Names for readers: of networks, data sets and tasks, written once. Ids stay as they are in code,
commands and addresses."""

import re
from decimal import Decimal

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
    rf"(?<![\w#])({'|'.join(map(re.escape, NETWORKS))})"
    rf"(?:\.({'|'.join(sorted(TRAINED, reverse=True))}))?(?![\w=]|\.\w)"
)
TASK = re.compile(rf"(?<![\w./#-])({'|'.join(TASKS)})(?![\w=/-])")
LETTERS = "alpha beta gamma delta epsilon eps zeta eta theta Theta lambda mu nu sigma tau phi rho"
GREEK = dict(zip(LETTERS.split(), "αβγδεεζηθΘλμνστφρ", strict=True))
# no part of a word or an id, and no keyword; \beta of a formula stays
SYMBOL = re.compile(rf"(?<![\w\\=.])(?<![a-z]-)({'|'.join(GREEK)})(?![a-z=-])(?! channel)")
INDEX = re.compile(r"(?<!\w)([A-Za-zα-ω])_(\d)(?!\w)")
POWER = re.compile(r"\^(?:(-?\d+)(?!\.?\d|[A-Za-z])|\((-?\d+)\)|(T)\b)")
FLOAT = re.compile(r"(?<![\w.])(-?)(\d(?:\.\d+)?)e([+-]\d+)\b")
RAISED = str.maketrans("0123456789-T", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ")
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
TYPED = {"&gt;=": "≥", "&lt;=": "≤", "+-": "±", "sqrt(": "√("}
# a hyphen in front of a number, or of a letter's name behind one
MINUS = re.compile(r"(?<![\w./{^_\\–−-])-(?=\.?\d)|(?<=\d)-(?=[α-ω])")
ZERO = re.compile(r"(?<![\w)])[+−](0(?:\.0+)?)(?![\d.])")  # a zero has no sign
KEPT = re.compile(  # no text for readers
    r"<(code|pre|script|style)\b.*?</\1>|\\\(.*?\\\)|\$[^$\n]+\$|`[^`\n]+`|</?[a-zA-Z!][^>]*>", re.S
)


def friendly(shown: str) -> str:
    """HTML with names for readers in the place of ids, and mathematics as it is printed, outside of
    code."""
    parts, last = [], 0
    for match in KEPT.finditer(shown):
        parts += [named(shown[last : match.start()]), match[0]]
        last = match.end()
    return "".join([*parts, named(shown[last:])])


def named(text: str) -> str:
    """A text with names for readers, and mathematics as it is printed: α² for alpha^2, −0.5
    for -0.5, 2 × 10⁸ for 2e+08."""
    text = NETWORK.sub(lambda match: NETWORKS[match[1]] + TRAINED.get(match[2], ""), text)
    text = TASK.sub(lambda match: TASKS[match[1]], text)
    text = SYMBOL.sub(lambda match: GREEK[match[1]], text)
    text = INDEX.sub(lambda match: match[1] + match[2].translate(LOWERED), text)
    text = POWER.sub(lambda match: "".join(filter(None, match.groups())).translate(RAISED), text)
    text = FLOAT.sub(in_tens, text)
    for typed, printed in TYPED.items():
        text = text.replace(typed, printed)
    return ZERO.sub(r"\1", MINUS.sub("−", text))


def counted(number: int, thing: str) -> str:
    """A number of things: 1 record, 2,000 records."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def signed(points: float) -> str:
    """Points with their sign and one decimal; with two where one would say zero."""
    points = points if round(points, 2) else 0.0  # no minus before zero
    return f"{points:+.{2 if 0 < abs(points) < 0.05 else 1}f}".replace("-", "−")


def spread(points: float, low: float, high: float) -> str:
    """Points with their interval: +1.2 [−0.3, +2.7]."""
    return f"{signed(points)} {ends(low, high)}"


def ends(low: float, high: float) -> str:
    """An interval of points: [−0.3, +2.7]."""
    return f"[{signed(low)}, {signed(high)}]"


def in_tens(match: re.Match) -> str:
    """A number with an exponent: 0.0079 for 7.9e-03, 10⁻⁹ for 1e-09."""
    sign, digits, exponent = match[1], match[2], int(match[3])
    if abs(exponent) < 4 or not float(digits):
        return f"{sign}{Decimal(digits).scaleb(exponent):f}" if float(digits) else "0"
    power = f"10{str(exponent).translate(RAISED)}"
    return sign + (power if float(digits) == 1 else f"{digits} × {power}")
