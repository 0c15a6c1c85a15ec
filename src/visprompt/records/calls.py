"""How Python tells a watch of each call: a profile function, or from 3.12 on `sys.monitoring`.

A profile function is called for every call of the process. Monitoring can be told to stop, for each
piece of code by itself, so that a step pays for what a watch still has to see.
"""

import sys
import threading
import types
from collections.abc import Callable
from typing import Any

Called = Callable[[types.FrameType], bool]  # whether later calls of its code need not be told
Returned = Callable[[types.CodeType], None]
MONITORING: Any = getattr(sys, "monitoring", None)


class Profile:
    """Tells of calls by `sys.setprofile`."""

    def __init__(self, called: Called, returned: Returned):
        self.called, self.returned = called, returned

    def hook(self, frame, event, arg) -> None:
        """The profile function."""
        if event == "call":
            self.called(frame)
        elif event == "return":
            self.returned(frame.f_code)

    def switch(self, on: bool) -> object:
        """Turn telling on or off; returns what `restore` takes to undo it."""
        before = sys.getprofile()
        sys.setprofile(self.hook if on else None)
        if on:
            threading.setprofile(self.hook)
        return before

    def restore(self, before, others: bool) -> None:
        """Back to before `switch`; a profiler in C, such as cProfile, ends here.

        Args:
            others: whether new threads go on to be watched.
        """
        sys.setprofile(before if callable(before) else None)
        if not others:
            threading.setprofile(None)


class Monitoring:
    """Tells of calls by `sys.monitoring`, in all threads."""

    tool: int | None = None  # the id that Python knows this by

    def __init__(self, called: Called, returned: Returned):
        self.called, self.returned = called, returned

    def start(self) -> None:
        """Register with Python, under an id that no debugger or profiler has.

        Raises:
            ValueError: other programs have taken both.
        """
        own, events = MONITORING, MONITORING.events
        self.tool = 3 if own.get_tool(4) else 4
        own.use_tool_id(self.tool, "visprompt")
        own.register_callback(self.tool, events.PY_START, self.started)
        own.register_callback(self.tool, events.PY_RESUME, self.started)
        own.register_callback(self.tool, events.PY_RETURN, self.left)
        own.register_callback(self.tool, events.PY_UNWIND, self.failed)

    def started(self, code, offset):
        return MONITORING.DISABLE if self.called(sys._getframe(1)) else None

    def left(self, code, offset, value):
        self.returned(code)
        return None if code.co_name == "<module>" else MONITORING.DISABLE

    def failed(self, code, offset, error):  # which cannot be told to stop
        self.returned(code)

    def switch(self, on: bool) -> object:
        """Turn telling on or off; returns what `restore` takes to undo it."""
        own = MONITORING
        if self.tool is None:
            self.start()
        before, events = own.get_events(self.tool), own.events
        every = events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_UNWIND
        own.set_events(self.tool, every if on else events.NO_EVENTS)
        if on:
            own.restart_events()  # what an outer watch has seen, this one has not
        return before

    def restore(self, before, others: bool) -> None:
        """Back to before `switch`."""
        MONITORING.set_events(self.tool, before)


calls = Monitoring if MONITORING else Profile
