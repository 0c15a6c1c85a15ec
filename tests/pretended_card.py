"""A pretended card: tensors that say `cuda:0`, are computed on the processor, and refuse to meet
the processor's own, as a card refuses it.

    with PretendedCard() as card:
        backbone = load_backbone("vit_micro_patch4_24", device="cuda")
        ...
        card.waits  # what made the host wait for the card -> how often

Numbers are the processor's, so a whole fit must give the processor's bits. It cannot show what lies
in kernels (memory, races, missing types), CUDA's own lists of what bf16 computes, streams (nothing
stands for them, and threads run at once) or speed.
"""

import contextlib
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor

import torch
import torch._dynamo  # before anything is replaced
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

CARD, HOST = torch.device("cuda:0"), torch.device("cpu")
OPEN: list["PretendedCard"] = []
# results that the host waits for, since it needs their values or their number
WAITS = "_local_scalar_dense nonzero masked_select _unique2 unique_dim unique_consecutive equal"
WAITS = {*WAITS.split(), "bincount", "is_nonzero", "repeat_interleave"}
LISTS = (list, tuple, type({}.values()))
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}


class DeviceError(RuntimeError):
    """What a card would refuse."""


class Card(torch.Tensor):
    """A tensor on the pretended card; `host` has its numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    device, is_cuda, is_cpu = (property(lambda self, v=v: v) for v in (CARD, True, False))

    @staticmethod
    def __new__(cls, host, requires_grad=False):
        form = {"strides": host.stride(), "storage_offset": host.storage_offset()}
        form |= {"dtype": host.dtype, "layout": host.layout, "requires_grad": requires_grad}
        new = torch.Tensor._make_wrapper_subclass(cls, host.size(), device=HOST, **form)
        new.host = host
        return new

    def __repr__(self):
        return f"Card({tuple(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})


def note(what: str) -> None:
    """Count a wait."""
    if OPEN:
        OPEN[-1].waits[what] += 1


def is_card(device) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def flat(values) -> list:
    """What arguments hold, lists among them taken apart; quicker than torch's own of any tree."""
    found = []
    for value in values:
        if isinstance(value, LISTS):
            found += flat(value)
        else:
            found.append(value)
    return found


def refuse_mixture(name: str, args: tuple, tensors: list, cards: list) -> None:
    """Refuse a card's tensors beside the processor's, but for numbers and indices."""
    if name in INDEXING:
        if not isinstance(args[0], Card):
            raise DeviceError(f"{name}: indices of a tensor on cpu must be on cpu")
        tensors = [args[0], *(value for value in args[2:3] if isinstance(value, torch.Tensor))]
    if cards and any(t.dim() and not isinstance(t, Card) for t in tensors):
        shapes = [(t.device.type, tuple(t.shape)) for t in tensors]
        raise DeviceError(f"{name}: tensors on cuda:0 and on cpu: {shapes}")


def computed(func, args: tuple, kwargs: dict):
    """The result of an operation, on the card if its arguments are, or if it is made there."""
    name = func._schema.name.rsplit("::", 1)[-1]
    leaves = flat((args, kwargs.values()))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    cards = [tensor for tensor in tensors if isinstance(tensor, Card)]
    asked, on_card = kwargs.get("device"), bool(cards)
    if name in ("pin_memory", "_pin_memory"):
        return args[0]
    if name == "_to_copy":
        on_card = bool(cards) if asked is None or cards else is_card(asked)
    elif name in ("copy_", "_copy_from"):
        if isinstance(args[1], Card) and not isinstance(args[0], Card):
            note("copy to the host")
    elif not tensors:  # a factory; autograd's own, in C++, makes its tensors beside their cause
        on_card = is_card(asked) or bool(INSIDE and INSIDE[-1])
    elif cards:
        refuse_mixture(name, args, tensors, cards)
    if on_card and any(isinstance(g, torch.Generator) and g.device.type != "cuda" for g in leaves):
        raise DeviceError(f"{name}: expected a generator of cuda, found one of cpu")
    if not (on_card or cards):
        return func(*args, **kwargs)
    masks = name in INDEXING and [i for i in args[1] if isinstance(i, Card)]
    if cards and (name in WAITS or masks and any(i.dtype == torch.bool for i in masks)):
        note(name)
    bare = lambda value: value.host if isinstance(value, Card) else value
    plain = tree_map(bare, kwargs)
    if is_card(plain.get("device")):
        plain["device"] = HOST
    plain.pop("pin_memory", None)
    found, known = func(*tree_map(bare, args), **plain), {id(c.host): c for c in cards}

    def dressed(value):
        if not isinstance(value, torch.Tensor) or isinstance(value, Card):
            return value
        return known[id(value)] if id(value) in known else Card(value) if on_card else value

    return tree_map(dressed, found)


INSIDE: list[bool] = []  # of each of torch's functions that runs: whether it was given a card


class Functions(TorchFunctionMode):
    """What Tensor's own methods do before the dispatcher sees them: moves, and views for numpy."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        INSIDE.append(any(isinstance(leaf, Card) for leaf in flat((args, kwargs.values()))))
        try:
            if args and isinstance(args[0], torch.Tensor):
                move = MOVES.get(name)
                found = NotImplemented if move is None else move(*args, **kwargs)
                if found is not NotImplemented:
                    return found
            if is_card(kwargs.get("device")) and not (args and isinstance(args[0], Card)):
                return made_on_card(func, args, kwargs)
            return func(*args, **kwargs)
        finally:
            INSIDE.pop()


def made_on_card(func, args: tuple, kwargs: dict):
    """What a factory makes, on the card."""
    drawn = kwargs.get("generator")
    if isinstance(drawn, torch.Generator) and drawn.device.type != "cuda":
        raise DeviceError(f"{func.__name__}: expected a generator of cuda, found one of cpu")
    found = func(*args, **{**kwargs, "device": HOST})
    return Card(found.detach()).requires_grad_(found.requires_grad)


def moved(x, *where, **more):
    """`Tensor.to`, where a card is at one of its ends."""
    other = next((value for value in where if isinstance(value, torch.Tensor)), None)
    if other is not None:
        device, dtype = other.device, other.dtype
    else:
        device = more.get(
            "device", next((w for w in where if isinstance(w, str | torch.device)), None)
        )
        dtype = more.get("dtype", next((w for w in where if isinstance(w, torch.dtype)), None))
    if not isinstance(x, Card):
        return ToCard.apply(x, dtype) if is_card(device) else NotImplemented
    if device is not None and torch.device(device).type == "meta":
        return torch.empty_like(x.host, device="meta")
    if not (device is None or is_card(device)):
        return ToHost.apply(x, dtype)
    form = {"memory_format": more["memory_format"]} if more.get("memory_format") else {}
    if dtype in (None, x.dtype) and not more.get("copy") and not form:
        return x
    return torch.ops.aten._to_copy(x, dtype=dtype or x.dtype, **form)


def of_card(action):
    """An action on a card's tensors; the processor's own are left to torch."""
    return lambda x, *args, **kw: action(x, *args) if isinstance(x, Card) else NotImplemented


def refuse(x, *args):
    raise DeviceError("a tensor on cuda:0 has neither numpy's form nor page-locked memory")


def listed(x):
    note("tolist")
    return x.host.tolist()


MOVES = {
    "to": moved,
    "cpu": of_card(lambda x: ToHost.apply(x, None)),
    "cuda": lambda x, *args, **kw: x if isinstance(x, Card) else ToCard.apply(x, None),
    "numpy": of_card(refuse),
    "__array__": of_card(refuse),
    "pin_memory": lambda x: refuse(x) if isinstance(x, Card) else x,
    "tolist": of_card(listed),
    "untyped_storage": of_card(lambda x: x.host.untyped_storage()),
    "data_ptr": of_card(lambda x: x.host.data_ptr()),
    "set_": of_card(lambda x, *storage: Card(x.host.set_(*storage))),
}


class ToHost(torch.autograd.Function):
    """From the card to the processor."""

    @staticmethod
    def forward(ctx, x, dtype):
        note("copy to the host")
        return x.host.detach().clone().to(dtype or x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return Card(gradient), None


class ToCard(torch.autograd.Function):
    """From the processor to the card."""

    @staticmethod
    def forward(ctx, x, dtype):
        return Card(x.detach().as_subclass(torch.Tensor).clone().to(dtype or x.dtype))

    @staticmethod
    def backward(ctx, gradient):
        return gradient.host, None


class Dispatch(TorchDispatchMode):
    """Factories, and what has no card among its arguments."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return computed(func, args, kwargs or {})


class Nothing:
    """Stands for a stream or an event."""

    def __init__(self, *args, **kwargs): ...

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __bool__(self):
        return False

    def __getattr__(self, name):
        return Nothing


def at_once(pool, function, *args, **kwargs) -> Future:
    """Stands for a pool's `submit`, since modes are of one thread."""
    done = Future()
    try:
        done.set_result(function(*args, **kwargs))
    except BaseException as error:
        done.set_exception(error)
    return done


class Autocast(torch.autocast):
    """Of the processor, where the computing is done."""

    def __init__(self, device_type, *args, **kwargs):
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **kwargs)


def replaced() -> dict:
    """(owner, name) -> what stands for it while a card is pretended."""
    nothing, alike = (lambda *args, **kw: None), torch._has_compatible_shallow_copy_type
    cuda = dict.fromkeys(("_lazy_init", "empty_cache", "reset_peak_memory_stats"), nothing)
    cuda |= dict.fromkeys(("set_rng_state", "manual_seed", "manual_seed_all"), nothing)
    cuda |= dict.fromkeys(("Stream", "stream", "current_stream", "Event"), Nothing)
    cuda |= {"is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0}
    cuda |= {
        "get_device_name": lambda *args: "pretended",
        "mem_get_info": lambda *a: (2**30, 2**31),
    }
    cuda |= dict.fromkeys(
        ("max_memory_allocated", "memory_allocated", "memory_reserved"), lambda *args: 2**20
    )
    cuda |= {"get_rng_state": lambda *args: torch.empty(0), "synchronize": lambda *args: None}
    cuda |= {"is_current_stream_capturing": lambda: False}
    ahead = {"current_stream": Nothing, "current_device_index": lambda: 0, "synchronize": nothing}
    # otherwise `parameter.data = card` would lose its numbers
    same = lambda a, b: isinstance(a, Card) == isinstance(b, Card) and alike(a, b)
    others = {(torch, "autocast"): Autocast, (torch.Tensor, "record_stream"): nothing}
    others |= {(torch, "_has_compatible_shallow_copy_type"): same}
    others |= {(ThreadPoolExecutor, "submit"): at_once}
    others |= {(torch.cuda, name): value for name, value in cuda.items()}
    return others | {(torch.accelerator, name): value for name, value in ahead.items()}


class PretendedCard:
    """While it is open, device "cuda" is there; `waits` counts what made the host wait."""

    def __init__(self):
        self.waits = Counter()

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        for (owner, name), value in replaced().items():
            self.stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        lifted = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)
        self.stack.callback(torch._C._set_only_lift_cpu_tensors, lifted)
        self.stack.enter_context(Dispatch())
        self.stack.enter_context(Functions())
        OPEN.append(self)
        return self

    def __exit__(self, *error):
        OPEN.remove(self)
        return self.stack.__exit__(*error)
