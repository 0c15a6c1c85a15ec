"""Memory-mapped images, perhaps larger than memory, as tensors for `training.loop`.

The bytes are those of decoding in memory. What is fetched and computed here enters a run, so
records name this module as any other.
"""

import mmap
import operator
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import BadInput

WHOLE = 2**30  # bytes that may lie in memory, or on a device, in one piece
# bytes of a file that a process holds mapped before it lets go of them; the system keeps its own
# copy
RESIDENT = 2**25


@dataclass(frozen=True, eq=False)
class Entry:
    """What is known of decoded images, so that they need not be read to be recognised."""

    task: str
    fingerprint: str
    labels: list[torch.Tensor]  # of train, val and test, whole

    def __post_init__(self):
        # the others are the user's, who may change them
        self.__dict__["read"] = [labels.clone() for labels in self.labels]


class Stored(torch.Tensor):
    """A memory-mapped tensor (N, 3, S, S) uint8; single images and batches of it are plain tensors.

    Operations that would load all of it run batch by batch if it is larger than `WHOLE`.
    """

    mapped: mmap.mmap
    entry: Entry | None
    touched: int  # bytes
    as_read: int  # torch's counter of changes
    # what torch makes of it is a plain tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def at(path: Path, shape: tuple[int, ...], entry: Entry | None = None) -> "Stored":
        """The images of a file that holds nothing else."""
        with open(path, "rb") as file:
            # a page that somebody writes is his own
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        images = torch.from_numpy(np.frombuffer(mapped, np.uint8).reshape(shape)).as_subclass(
            Stored
        )
        images.mapped, images.entry, images.touched, images.as_read = (
            mapped,
            entry,
            0,
            images._version,
        )
        return images

    @property
    def plain(self) -> torch.Tensor:
        """The same bytes as a plain tensor."""
        return self.as_subclass(torch.Tensor)

    def touch(self, size: int) -> None:
        """Count bytes that were read, and release the pages when they are many."""
        self.touched += size
        if self.touched > RESIDENT:
            self.mapped.madvise(mmap.MADV_DONTNEED)
            self.touched = 0

    def __getitem__(self, index) -> torch.Tensor:
        batch = self.plain[index]
        if batch.untyped_storage().data_ptr() == self.untyped_storage().data_ptr():
            batch = batch.clone()  # a view would map its pages later, uncounted
        self.touch(batch.nbytes)
        return batch

    def split(self, size: int, dim: int = 0) -> Iterator[torch.Tensor]:  # type: ignore[override]
        """Batches of at most `size` images; the next is read while one is in use."""
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self.piece, 0, size)
            for start in range(size, len(self) + size, size):
                batch = ahead.result()
                if start < len(self):
                    ahead = reader.submit(self.piece, start, size)
                yield batch

    def piece(self, start: int, size: int) -> torch.Tensor:
        """`size` images from `start` on, in page-locked memory if there is a GPU."""
        images = self[start : start + size]
        return images.pin_memory() if torch.cuda.is_available() else images

    def to(self, *where, **more):
        """The tensor on another device: in one piece, or as `Streamed`; itself on its own."""
        device = (
            torch.device(where[0]) if where and isinstance(where[0], (str, torch.device)) else None
        )
        if device is None or more or where[1:]:
            return self.plain.to(*where, **more)
        if device.type == "cpu":
            return self
        return Streamed(self, device) if self.nbytes > WHOLE else self.plain.to(device)

    def float(self):
        """The tensor as floats: in one piece, or as `Later`."""
        return Later(self) if 4 * self.nbytes > WHOLE else self.plain.float()


class Later:
    """Images with pending arithmetic, done per batch on access."""

    def __init__(self, images: Stored, steps: tuple = ()):
        self.images, self.steps = images, steps
        self.shape, self.device, self.dtype = images.shape, images.device, torch.float32

    def __len__(self) -> int:
        return len(self.images)

    def __truediv__(self, other) -> "Later":
        return Later(self.images, (*self.steps, (operator.truediv, other)))

    def __sub__(self, other) -> "Later":
        return Later(self.images, (*self.steps, (operator.sub, other)))

    def __getitem__(self, index) -> torch.Tensor:
        return self.done(self.images[index])

    def split(self, size: int) -> Iterator[torch.Tensor]:
        """Batches of at most `size` images."""
        return map(self.done, self.images.split(size))

    def done(self, images: torch.Tensor) -> torch.Tensor:
        """uint8 (B, 3, S, S) -> floats (B, 3, S, S)."""
        floats = images.float()
        for step, other in self.steps:
            floats = step(floats, other)
        return floats


class Streamed:
    """Images copied to a device batch by batch, each while the previous one is computed on.

    The batches of an epoch are pieces of one order (`order.split(batch_size)`), so a piece tells
    what comes next.
    """

    def __init__(self, images: Stored, device: torch.device):
        self.images, self.device, self.shape, self.dtype = (
            images,
            device,
            images.shape,
            images.dtype,
        )
        self.reader = ThreadPoolExecutor(1)
        # storage of an epoch's order, its version, and a copy on the CPU
        self.order: tuple | None = None
        # first and last place in the order, and its images
        self.ahead: tuple[Any, Any, Future] | None = None
        weakref.finalize(self, self.reader.shutdown, wait=False)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index) -> torch.Tensor:
        if (
            not isinstance(index, torch.Tensor)
            or index.dtype != torch.int64
            or index.dim() != 1
            or not index.is_contiguous()
        ):
            index = index.cpu() if isinstance(index, torch.Tensor) else index
            return self.images[index].to(self.device)
        order, start = self.order_of(index), index.storage_offset()
        stop = start + len(index)
        if self.ahead is None or self.ahead[:2] != (start, stop):
            self.ahead = start, stop, self.reader.submit(self.fetch, order[start:stop])
        arriving = self.ahead[2]
        after = order[stop : stop + len(index)]

        self.ahead = (
            (stop, stop + len(after), self.reader.submit(self.fetch, after)) if len(after) else None
        )
        return self.arrived(*arriving.result())

    def order_of(self, index: torch.Tensor) -> torch.Tensor:
        """The whole order that a piece (B,) belongs to, copied to the CPU once per epoch.

        Its storage is kept, so that another order cannot have the same address.
        """
        storage = index.untyped_storage()
        if self.order is None or (storage.data_ptr(), index._version) != (
            self.order[0].data_ptr(),
            self.order[1],
        ):
            whole = torch.empty(0, dtype=index.dtype, device=index.device).set_(storage)
            self.order, self.ahead = (storage, index._version, whole.cpu()), None
        return self.order[2]

    def fetch(self, rows: torch.Tensor) -> tuple:
        """Read images (B,) and start copying them to the device: images and event of arrival."""
        images = self.images[rows]
        if self.device.type != "cuda":
            return images.to(self.device), None
        stream = torch.cuda.Stream(self.device)
        with torch.cuda.stream(stream):
            images = images.pin_memory().to(self.device, non_blocking=True)
            return images, stream.record_event()

    def arrived(self, images: torch.Tensor, event) -> torch.Tensor:
        """Images (B, 3, S, S) that the device's own stream may use."""
        if event is not None:
            now = torch.cuda.current_stream(self.device)
            now.wait_event(event)
            images.record_stream(now)
        return images

    def split(self, size: int) -> Iterator[torch.Tensor]:
        """Batches of at most `size` images, on the device."""
        return (part.to(self.device, non_blocking=True) for part in self.images.split(size))

    def to(self, device) -> "Streamed | Stored":
        """The same images for another device."""
        return self if torch.device(device) == self.device else self.images.to(device)


def known_fingerprint(task: str, splits) -> str | None:
    """A task's stored fingerprint, if its images and labels are those it was computed from.

    Raises:
        BadInput: mapped images were changed in place. They are not read again; only torch's own
            version counter tells, and other writes to their memory are lost when pages are
            released.
    """
    for images, _ in splits:
        if isinstance(images, Stored) and images._version > getattr(
            images, "as_read", images._version
        ):
            elsewhere = (
                f"change images.plain.clone() and make a Task of it, or load "
                f"{task} with VISPROMPT_CACHE=none"
            )
            raise BadInput(
                f"the images of {task} were changed in place, and they are a file's; {elsewhere}."
            )
    entries = {getattr(images, "entry", None) for images, _ in splits}
    entry = entries.pop() if len(entries) == 1 else None
    if entry is None or entry.task != task:
        return None
    same = (
        a is b and torch.equal(a, read) for (_, a), b, read in zip(splits, entry.labels, entry.read)
    )
    return entry.fingerprint if all(same) else None
