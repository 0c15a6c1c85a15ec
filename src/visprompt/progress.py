"""A progress bar for terminals and logs."""

import os
import sys

from tqdm import tqdm


def log():
    """The process's own stderr, even inside papermill, whose kernel replaces it."""
    descriptor = getattr(sys.stderr, "_original_stdstream_copy", None)
    return os.fdopen(os.dup(descriptor), "w") if descriptor is not None else sys.stderr


def progress(items, label: str, **more):
    """A progress bar over items.

    With `items` None and tqdm's `total`, `unit` and `unit_scale` it is advanced by `update`, and
    shows rate and remaining time.
    """
    stream = log()
    # Off a terminal a line every ten seconds is enough: a log is read, not watched.
    every = 0.2 if stream.isatty() else 10
    return tqdm(items, desc=label, file=stream, mininterval=every, dynamic_ncols=True, **more)
