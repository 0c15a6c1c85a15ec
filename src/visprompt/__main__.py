"""The command line: `visprompt --help` lists the commands.

Most commands are the book's, whose package may not be installed.
"""

import argparse
import contextlib
import errno
import importlib
import io
import os
import sys
from typing import TextIO

from .data.data_commands import add_commands as add_data
from .errors import INSTALL_BOOK, BadInput
from .paths import BOOK
from .training.fit_commands import add_commands as add_training
from .words import summary

OF_THE_BOOK = """
accept artifacts audit batches bench carry claims factors keep merge plan
published rates renew runs segment study submit verify
""".split()


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a mistake in the input is one line on stderr and exit status 2.

    Exit statuses: 130 after Ctrl-C; 2 without a home folder, or if a file cannot be read or
    written; 141, silently, if the reader of stdout stops, as `head` does; 1 if stdout is closed.
    """
    closed = sys.stdout is None
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))
        elif isinstance(getattr(sys, name), io.TextIOWrapper):
            # a terminal without ± shows \xb1
            getattr(sys, name).reconfigure(errors="backslashreplace")
    args = parse(arguments)
    try:
        status = run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        status = 141
        discard(sys.stdout, sys.stderr)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        status = say(
            f"{error.filename or 'the answer'}: {error.strerror}. Mend that, or name another "
            "place.",
            2,
        )
        discard(sys.stdout)
    return status or (say("standard output is closed, so nothing was printed.", 1) if closed else 0)


def run(args: argparse.Namespace) -> int:
    """Run a parsed command and return its exit status, 0 if it returns None."""
    try:
        return args.run(args) or 0
    except BadInput as error:
        return say(str(error), 2)
    except RuntimeError as error:
        if "home directory" not in str(error):
            raise
        return say("you have no home folder here; name one, as in HOME=$PWD/home visprompt …", 2)
    except KeyboardInterrupt:
        return say("stopped; finished runs are kept, and the same command goes on from there.", 130)


def discard(*streams: TextIO) -> None:
    """Redirect streams to nowhere, so that Python does not complain as it flushes them at exit."""
    for stream in streams:
        # a stream without a file has none to complain of
        with contextlib.suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(line: str, status: int) -> int:
    """Print a line on stderr and return the exit status."""
    print(f"visprompt: {line}", file=sys.stderr)
    return status


class Parser(argparse.ArgumentParser):
    """Reports in one line what cannot be parsed."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help tells what it takes.\n")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command and its options; exits with status 2 if they cannot be parsed."""
    parser = Parser(prog="visprompt", description="Visual Prompting, Reproduced")
    commands = parser.add_subparsers(dest="command", required=True)
    book = importlib.import_module("visbook.commands") if BOOK is not None else None
    for function, options in (book.COMMANDS if book else {}).items():
        command = commands.add_parser(function.__name__, help=summary(function))
        for name, settings in options:
            command.add_argument(name, **settings)
        command.set_defaults(run=function)
    names = "the papers' data sets: list, info, fetch, verify, where"
    of_artifacts = book.of_artifacts if book else lambda names, fetched: names
    add_data(commands.add_parser("data", help=names), of_artifacts)
    add_training(commands)
    first = next(iter(sys.argv[1:] if arguments is None else arguments), "")
    if book is None and first in OF_THE_BOOK:
        parser.exit(2, f"visprompt: {first} is a command of the book's package. {INSTALL_BOOK}\n")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
