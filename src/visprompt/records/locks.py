"""File locks in a folder that several machines may share."""

import contextlib
import errno
import fcntl
from collections.abc import Iterator
from pathlib import Path

# what NFS and Lustre may answer
WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


@contextlib.contextmanager
def turn(path: Path) -> Iterator[bool]:
    """Hold a file's lock; it is released even if the process is killed.

    Yields:
        Whether there is a lock: False on a file system without locks, where nobody waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            locked = True
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            locked = False
        yield locked
