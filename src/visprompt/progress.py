"""A progress bar that is seen on a terminal and in a log."""

import os
import sys

from tqdm import tqdm


def log():
    """The terminal's own stream, also from inside papermill, whose kernel takes over stderr."""
    descriptor = getattr(sys.stderr, "_original_stdstream_copy", None)
    return os.fdopen(os.dup(descriptor), "w") if descriptor is not None else sys.stderr


def progress(items, label: str, **more):
    """A progress bar in the log.

    With `items` None and tqdm's `total`, `unit` and `unit_scale` it is moved by `update`: a rate,
    and the time left.
    """
    stream = log()
    # Off a terminal a line every ten seconds is enough: a log is read, not watched.
    every = 0.2 if stream.isatty() else 10
    return tqdm(items, desc=label, file=stream, mininterval=every, dynamic_ncols=True, **more)
