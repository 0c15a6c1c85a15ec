"""`visprompt fit FOLDER` and `visprompt predict FILE PICTURE…`."""

import argparse
import contextlib

from ..words import summary

BACKBONE = "vit_micro_patch4_24"  # comes with this project


def add_commands(commands) -> None:
    """Add `fit` and `predict` to the command line."""
    told = "the backbone's: pretrained (the default) or a file"
    weights = {"default": "pretrained", "help": told}
    device = {"default": "cpu", "help": "cpu or cuda"}
    action = commands.add_parser("fit", help=summary(fit_folder))
    action.set_defaults(run=fit_folder)
    told = "one folder per class, or another layout that the page on data names"
    action.add_argument("folder", help=told)
    told = "file of the trained method (method.safetensors)"
    action.add_argument("--out", default="method.safetensors", help=told)
    action.add_argument("--method", default="vpt-deep", help="its slug (vpt-deep)")
    told = f"a timm ViT or ResNet, or an embedded one ({BACKBONE})"
    action.add_argument("--backbone", default=BACKBONE, help=told)
    action.add_argument("--epochs", type=int, default=15, help="(15)")
    action.add_argument("--seed", type=int, default=0, help="(0)")
    told = "direct or crop, or either with -bicubic behind it (direct)"
    action.add_argument("--resize", default="direct", help=told)
    rate = "the method's own unless given; with --search, where it begins"
    action.add_argument("--learning-rate", type=float, help=rate)
    action.add_argument("--image-size", type=int, help="pixels of a side (the backbone's own)")
    told = "settings of the method, such as prompt_tokens=20"
    action.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help=told)
    told = "try three learning rates; validation chooses"
    action.add_argument("--search", action="store_true", help=told)
    action.add_argument("--weights", **weights)
    action.add_argument("--device", **device)
    action = commands.add_parser("predict", help=summary(predict_pictures))
    action.set_defaults(run=predict_pictures)
    action.add_argument("file", help="a method that fit or vp.save_method wrote")
    told = "a picture, or a folder of them"
    action.add_argument("pictures", nargs="+", metavar="picture", help=told)
    action.add_argument("--top", type=int, default=1, help="so many classes a picture (1)")
    action.add_argument("--weights", **weights)
    action.add_argument("--device", **device)


def fit_folder(args: argparse.Namespace) -> None:
    """Train a method on a folder of pictures and save it."""
    from pathlib import Path

    from ..data.tasks import SPLITS, load_task
    from ..errors import BadInput
    from ..methods.saving import save_method
    from ..models.loading import load_backbone
    from .own_code import evaluate, search
    from .recipe import Recipe

    folder = Path(args.folder).expanduser().resolve()
    recipe = Recipe(epochs=args.epochs, learning_rate=args.learning_rate)
    settings = dict(map(setting, args.set))
    if Path(args.out).suffix != ".safetensors":
        raise BadInput(f"give --out a file name that ends in .safetensors, not {args.out!r}.")
    if not folder.is_dir():
        told = "give the one that holds one folder per class"
        raise BadInput(f"{args.folder} is not a folder; {told}.")
    where = {"device": args.device, "image_size": args.image_size}
    backbone = load_backbone(args.backbone, args.weights, **where)
    task = load_task(folder.name, folder.parent, image_size=backbone.image_size, resize=args.resize)
    counts = ", ".join(f"{len(getattr(task, part)[1]):,} for {part}" for part in SPLITS)
    print(f"{task.classes} classes; pictures: {counts}")
    grid = None if args.search else {}  # of an empty one there is one combination
    tries, model = search(args.method, backbone, task, grid, recipe, args.seed, **settings)
    for row in tries.itertuples() if args.search else ():
        print(f"learning rate {row[1]:g}: {row.val:.1f} % of val")
    save_method(model, args.out)
    val, test = (evaluate(model, task, split) for split in ("val", "test"))
    print(f"named right: {val:.1f} % of val, {test:.1f} % of test\nsaved: {args.out}")


def setting(text: str) -> tuple[str, object]:
    """Name and value of NAME=VALUE, the value read as YAML."""
    import yaml

    from ..errors import BadInput

    name, _, value = text.partition("=")
    with contextlib.suppress(yaml.YAMLError):
        if name and value:
            return name, yaml.safe_load(value)
    raise BadInput(f"--set takes NAME=VALUE, such as prompt_tokens=20, not {text!r}.")


def predict_pictures(args: argparse.Namespace) -> None:
    """Classify pictures with a saved method; prints picture, class and probability."""
    from pathlib import Path

    from ..methods.saving import load_method, read_method
    from ..models.loading import load_backbone, resize_positions
    from .prediction import predict

    about, _ = read_method(Path(args.file))
    backbone = load_backbone(about["backbone"], args.weights, device=args.device)
    size = (about["task"] or {}).get("image_size", backbone.image_size)
    if backbone.is_vit and size != backbone.image_size:
        resize_positions(backbone, size)
    named = predict(load_method(args.file, backbone).to(args.device), args.pictures, top=args.top)
    for row in named.itertuples():
        print(f"{row.picture}\t{row[2]}\t{row.probability:.3f}")
