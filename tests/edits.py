"""Random edits of all rooms, and whether records tell them apart: a program of its own, since an
edit wants a fresh package.

Small runs of every part that decides values are done once. For each harmful edit of a copy of the
package a child process does them again: where a value changed, the list of code of that run must
not hold any more. Harmless edits must leave every list holding, those of the kept records too.

    python tests/edits.py FOLDER --seed 0 --harmful 100 --harmless 100

A harmful edit changes a line that one of these runs executed, or a constant or a field that such a
line names; one that changes no value all the same is drawn anew. Exceptions are printed, and last a
line of JSON with the counts; edits of the rooms that only report, check, read manifests or keep
records (`source.SILENT`) are listed apart.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
}
SWAPS |= {ast.Eq: ast.NotEq, ast.In: ast.NotIn, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot}
SECONDS = 90  # that a child may take, several times its usual; an edit can make a loop endless


def jobs() -> dict:
    """Name -> a small run of a part that decides values."""
    sys.path.insert(0, str(ROOT / "tests"))
    import torch
    from conftest import small_vit, tiny_task

    import visprompt as vp
    from visbook.auditing.counts import printed_counts
    from visbook.theory import ap_limits, ap_toy, normalisation, shallow_vit
    from visprompt.data.mask_tasks import load_segmentation
    from visprompt.measure.cost import count_flops
    from visprompt.measure.similarity import linear_cka, normalised_mutual_information
    from visprompt.training import mask_loop
    from visprompt.training.decoders import Decoder
    from visprompt.training.loop import fit, fit_with_extras
    from visprompt.training.segmentation_recipe import SegmentationRecipe
    from visprompt.training.segmenter import Segmenter

    torch.set_num_threads(1)
    plain = {"epochs": 1, "learning_rate": 0.1}

    def fitted(slug, how=fit, **settings):
        def job():
            recipe = vp.Recipe(
                **plain,
                **(
                    {"drop_path": 0.2, "schedule": "warm-up, then cosine"}
                    if how is fit_with_extras
                    else {}
                ),
            )
            return how(vp.build_method(slug, small_vit(), 3, **settings), tiny_task(), recipe, 0)

        return job

    def counted(slug):
        def job():
            model = vp.build_method(slug, vp.load_backbone("vit_nano_patch4_24"), 10)
            return vp.count_parameters(model) | {"flops": count_flops(model)}

        return job

    def segmented():
        task, decoder = load_segmentation("scenes_fill"), Decoder("linear")
        recipe = SegmentationRecipe(
            2, 8, 24, learning_rate=0.01, optimizer="adam", decoder=decoder, seen_first=8
        )
        model = Segmenter(vp.load_backbone("vit_nano_patch4_24"), "vpt-deep", task.classes, decoder)
        model.reset(0)
        return mask_loop.train_segmenter(
            model, task.train, recipe, torch.Generator().manual_seed(0)
        )

    def shallow():
        s = shallow_vit.Settings(tokens=12, relevant=0.5, confusion=0.25, noise=0.0, neurons=8)
        g = torch.Generator().manual_seed(0)
        x, y, _ = shallow_vit.draw(s, g, 4)
        w = shallow_vit.initial(s, g)
        return [
            shallow_vit.patterns(s).tolist(),
            x.tolist(),
            *map(
                str, shallow_vit.gradients(s, {k: v[None] for k, v in w.items()}, x[None], y[None])
            ),
        ]

    def alike():
        x, y = torch.randn(2, 3, 6, 4, generator=torch.Generator().manual_seed(0))
        return [linear_cka(x[0], y[0]), normalised_mutual_information(x, y)]

    found = {
        f"fit {slug}": fitted(slug)
        for slug in ("lora", "da-vpt", "spt-deep", "ivpt", "ap", "full-finetune", "ssf", "bias")
    }
    found["fit e2vpt"] = fitted("e2vpt", segments=4)
    found["fit with extras"] = fitted("vpt-deep", fit_with_extras)
    found |= {f"count {slug}": counted(slug) for slug in ("adapter", "vpt-deep", "linear-probe")}
    found |= {
        f"draw {name}": lambda name=name: vp.load_task(name, train_size=8).fingerprint
        for name in ("count", "letters")
    }
    found["masks"], found["similarity"], found["patterns"] = segmented, alike, shallow
    found["toy"] = lambda: ap_toy.run_trials(ap_toy.Settings(tokens=4, max_steps=20), [0])
    found["flow"] = lambda: ap_limits.layer_2_ceiling(8, 1.0)
    found["proposition"] = lambda: normalisation.proposition_1(4, 6, 9)
    found["printed"] = lambda: printed_counts("ivpt").to_json()
    return found


def measured(names=None) -> dict[str, list]:
    """Name -> [values without times, list of what ran, lines (file, number) that ran by a trace of
    its own] of the jobs.

    ["crash", why] of one that does not end as it should.
    """
    import torch

    import visprompt as vp
    from visprompt.records import watching
    from visprompt.records.merging import MEASURED

    def clean(value):
        if isinstance(value, dict):
            return {
                str(k): clean(v)
                for k, v in value.items()
                if not any(word in str(k) for word in MEASURED)
            }
        if isinstance(value, torch.Tensor):
            return value.tolist()
        return [clean(part) for part in value] if isinstance(value, (list, tuple)) else value

    found = {}
    for name, job in jobs().items():
        if names is not None and name not in names:
            continue
        ran, package = set(), str(Path(vp.__file__).parents[1])

        def trace(frame, *_):
            if not frame.f_code.co_filename.startswith(package):
                return None
            ran.add((frame.f_code.co_filename, frame.f_lineno))
            return trace

        sys.settrace(None if names else trace)
        try:
            with watching() as seen:
                values = clean(job())
            found[name] = [json.loads(json.dumps(values, default=str)), seen.units(), sorted(ran)]
        except Exception as error:
            found[name] = ["crash", f"{type(error).__name__}: {error}"[:200]]
        sys.settrace(None)
    return found


def child(task) -> object:
    """What a function returns in a process of its own, as JSON; None where it does not come
    back."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            import signal

            # of the processor, since a busy machine takes longer; and of the clock
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(10 * SECONDS)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(writer, "w") as file:
                json.dump(task(), file)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def units(src: Path):
    """(room, file, first line, kind of node) of every function, method and constant of the
    packages."""
    for path in sorted(src.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            for part in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(part, (ast.FunctionDef, ast.Assign, ast.AnnAssign)):
                    yield (
                        path.relative_to(src).parts[1].removesuffix(".py"),
                        path,
                        part.lineno,
                        part,
                    )


def users(path: Path, node: ast.AST, before: dict, mentions: dict[str, set[str]]) -> list[str]:
    """The jobs that an edit of a unit can change: those that ran a line of it, or one that names
    what it binds.

    Args:
        mentions: word -> jobs that ran a line with it.
    """
    if not isinstance(node, ast.FunctionDef):
        names = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        return sorted(set().union(*(mentions.get(name, set()) for name in names)))
    return [
        n
        for n, found in before.items()
        if any(f == str(path) and line in lines(node) for f, line in found[2])
    ]


def lines(node: ast.AST) -> range:
    return range(node.lineno, node.end_lineno + 1)


def module_name(path: Path, src: Path) -> str:
    """A module's name below its package, by its file."""
    return (
        ".".join(path.relative_to(src).with_suffix("").parts[1:])
        .removesuffix("__init__")
        .rstrip(".")
    )


def words_run(before: dict, src: Path) -> dict[str, set[str]]:
    """Word -> the jobs that ran a line with it, or a constant's line that names a constant with
    it."""
    found: dict[str, set[str]] = {}
    for path in src.rglob("*.py"):
        text = path.read_text().splitlines()
        for name, (_, _, ran) in before.items():
            for line in {line for file, line in ran if file == str(path)}:
                for word in re.findall(r"[A-Za-z_]\w*", text[line - 1]):
                    found.setdefault(word, set()).add(name)
    constants = [node for *_, node in units(src) if not isinstance(node, ast.FunctionDef)]
    for _ in range(3):  # a constant that is made of another that is made of another
        for node in constants:
            names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            by = set().union(
                *(found.get(n.id, set()) for n in names if isinstance(n.ctx, ast.Store))
            )
            for n in names:
                if isinstance(n.ctx, ast.Load) and by:
                    found.setdefault(n.id, set()).update(by)
    return found


def node_at(tree: ast.Module, line: int, kind: type) -> ast.AST:
    return next(n for n in ast.walk(tree) if isinstance(n, kind) and n.lineno == line)


def harmful(node: ast.AST, ran: set[int]) -> list:
    """Small changes of what a unit does, each as a function that makes it; of a function only on
    lines that ran."""
    found = []
    for part in ast.walk(node):
        if isinstance(node, ast.FunctionDef) and not (
            hasattr(part, "lineno") and ran & {*lines(part)}
        ):
            continue
        if isinstance(part, ast.Constant) and isinstance(part.value, (int, float)):
            found.append(
                lambda p=part: setattr(
                    p, "value", not p.value if isinstance(p.value, bool) else p.value + 1
                )
            )
        elif isinstance(part, (ast.BinOp, ast.BoolOp)) and type(part.op) in SWAPS:
            found.append(lambda p=part: setattr(p, "op", SWAPS[type(p.op)]()))
        elif isinstance(part, ast.Compare) and type(part.ops[0]) in SWAPS:
            found.append(lambda p=part: p.ops.__setitem__(0, SWAPS[type(p.ops[0])]()))
        elif isinstance(part, (ast.FunctionDef, ast.For, ast.If)) and len(part.body) > 1:
            found.append(lambda p=part: p.body.pop())
    return found


def harmless(node: ast.AST, tree: ast.Module, chance: random.Random) -> list:
    """Changes of how a unit is written, each as a function that makes it."""
    found = []
    if isinstance(node, ast.FunctionDef):
        given = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
        elsewhere = {
            name
            for n in ast.walk(node)
            if isinstance(n, (ast.Global, ast.Nonlocal))
            for name in n.names
        }
        by_name = any(
            isinstance(n, ast.Name) and n.id in ("locals", "vars") for n in ast.walk(node)
        )
        stored = (
            {
                n.id
                for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            - given
            - elsewhere
        )
        imported = {
            a.asname or a.name
            for n in ast.walk(node)
            if isinstance(n, (ast.Import, ast.ImportFrom))
            for a in n.names
        }
        own = sorted(stored - imported)

        def rename():
            old = chance.choice(own)
            for n in ast.walk(node):
                if isinstance(n, ast.Name) and n.id == old:
                    n.id = f"{old}_renamed"

        def annotate_variable():
            place = next(n for n in ast.walk(node) if hasattr(n, "body") and plain(n))
            at, first = next((i, s) for i, s in enumerate(place.body) if is_plain(s))
            place.body[at] = ast.AnnAssign(
                first.targets[0], ast.Name("object", ast.Load()), first.value, 1
            )

        def is_plain(s):
            return (
                isinstance(s, ast.Assign)
                and len(s.targets) == 1
                and isinstance(s.targets[0], ast.Name)
                and s.targets[0].id not in elsewhere
            )

        def plain(n):
            return isinstance(n.body, list) and any(map(is_plain, n.body))

        found += [lambda: setattr(node, "returns", ast.Name("object", ast.Load()))]
        found += [lambda: node.body.insert(1 if ast.get_docstring(node) else 0, ast.Pass())]
        found += [lambda: node.body.insert(0, ast.Expr(ast.Constant("Said anew.")))]
        found += [rename] if own and not by_name else []
        found += (
            [annotate_variable]
            if any(hasattr(n, "body") and plain(n) for n in ast.walk(node))
            else []
        )
        errors = [
            n
            for n in ast.walk(node)
            if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call) and n.exc.args
        ]
        found += (
            [
                lambda: chance.choice(errors).exc.__setattr__(
                    "args", [ast.Constant("said otherwise")]
                )
            ]
            if errors
            else []
        )
    return [*found, lambda: None]  # the layout alone: the whole file is written anew


def edit(
    path: Path, line: int, kind: type, chance: random.Random, how, ran: set[int] = frozenset()
) -> str | None:
    """Write an edit into a file; what it held before, or None where the unit has nothing to
    edit."""
    text = path.read_text()
    tree = ast.parse(text)
    node = node_at(tree, line, kind)
    changes = how(node, ran) if how is harmful else how(node, tree, chance)
    if not changes:
        return None
    chance.choice(changes)()
    new = ast.unparse(ast.fix_missing_locations(tree))
    if how is harmful and new == ast.unparse(ast.parse(text)):
        return None
    path.write_text(new)
    return text


def source_silent() -> list[str]:
    """The files whose code no record names."""
    from visprompt.records import source

    found = (path for name, path in source.paths().items() if source.is_silent_module(name))
    return [str(path).partition("/src/")[2] for path in found]


def kept_lists() -> dict[str, dict]:
    """The lists of the kept records by name."""
    return {
        path.stem: json.loads(path.read_text())
        for path in sorted((ROOT / "book" / "records" / "code").glob("*.json"))
    }


def standing(every: dict[str, dict]) -> dict[str, bool]:
    """Which lists hold in the package as it is now."""
    from visprompt.records import lists

    return {name: lists.stands(units) for name, units in every.items()}


def main() -> None:
    """Draw the edits and print what was told apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--harmful", type=int, default=5)
    parser.add_argument("--harmless", type=int, default=5)
    args = parser.parse_args()
    for name in ("src", "notebooks", "data_manifests"):
        shutil.copytree(
            ROOT / name,
            args.folder / name,
            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
        )
    src = args.folder / "src"
    os.environ |= {
        "VISPROMPT_ROOT": str(args.folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    sys.path.insert(0, str(src))
    sys.dont_write_bytecode = True
    import timm.models, torch, torchvision, pandas, sklearn.datasets, pytest, h5py  # noqa: E401, F401, I001 (once for all)

    before = child(measured)
    broken = {name: found[1] for name, found in before.items() if found[0] == "crash"}
    assert not broken, broken
    chance = random.Random(args.seed)
    rooms: dict[str, list] = {}
    mentions = words_run(before, src)
    for room, path, line, node in units(src):
        rooms.setdefault(room, []).append((path, line, node, users(path, node, before, mentions)))
    told, drawn, exceptions = {"harmful": 0, "harmless": 0}, {"harmful": 0, "harmless": 0}, []
    while told["harmful"] < args.harmful:
        path, line, node, by = chance.choice(rooms[chance.choice(sorted(rooms))])
        if not by:
            continue  # what no job ran changes no value
        by = chance.sample(by, min(len(by), 2))  # the others would say the same, later
        ran = {line for name in by for file, line in before[name][2] if file == str(path)}
        old = edit(path, line, type(node), chance, harmful, ran)
        if old is None:
            continue
        drawn["harmful"] += 1
        after = child(lambda: [measured(by), standing({name: before[name][1] for name in by})])
        if after is not None:
            changed = {name for name in by if after[0][name][0] not in (before[name][0], "crash")}
            unseen = sorted(name for name in changed if after[1][name])
            told["harmful"] += bool(changed)
            print(
                f"{told['harmful']} of {drawn['harmful']}",
                path.relative_to(src),
                line,
                file=sys.stderr,
                flush=True,
            )
            if unseen:
                exceptions.append([str(path.relative_to(src)), line, unseen])
                print("unseen:", *exceptions[-1], flush=True)
        path.write_text(old)

    def harmless_edits():
        from visprompt.records import source

        every = {name: found[1] for name, found in before.items()} | kept_lists()
        first, count, wrong = standing(every), 0, []
        while count < args.harmless:
            path, line, node, _ = chance.choice(rooms[chance.choice(sorted(rooms))])
            old = edit(path, line, type(node), chance, harmless)
            if old is None:
                continue
            count += 1
            source.forget(module_name(path, src))
            if standing(every) != first:
                wrong.append([str(path.relative_to(src)), line, "outdated"])
                (args.folder / f"outdated-{len(wrong)}.py").write_text(path.read_text())
            path.write_text(old)
            source.forget(module_name(path, src))
        return wrong

    exceptions += (wrong := child(harmless_edits))
    drawn["harmless"], told["harmless"] = args.harmless, args.harmless - len(wrong)
    silent = child(lambda: list(source_silent()))
    listed = [e for e in exceptions if e[0] in silent]
    exceptions = [e for e in exceptions if e not in listed]
    print(
        json.dumps(
            {
                "listed": listed,
                "seed": args.seed,
                "told": told,
                "drawn": drawn,
                "exceptions": exceptions,
            }
        )
    )


if __name__ == "__main__":
    main()
