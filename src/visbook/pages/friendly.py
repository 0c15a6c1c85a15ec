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
KEPT = re.compile(r"<(code|pre|script|style)\b.*?</\1>|<[^>]*>", re.S)  # no text for readers


def friendly(shown: str) -> str:
    """HTML with names for readers in the place of ids, outside of code."""
    parts, last = [], 0
    for match in KEPT.finditer(shown):
        parts += [named(shown[last : match.start()]), match[0]]
        last = match.end()
    return "".join([*parts, named(shown[last:])])


def named(text: str) -> str:
    """A text with names for readers, and a minus sign in front of what is below zero."""
    text = NETWORK.sub(lambda match: NETWORKS[match[1]] + TRAINED.get(match[2], ""), text)
    text = TASK.sub(lambda match: TASKS[match[1]], text)
    text = SYMBOL.sub(lambda match: GREEK[match[1]], text)
    return MINUS.sub("−", text)
