"""Where events go: a logger, or a file of JSON lines."""

from __future__ import annotations

import json
import logging
import os
import threading
from pathlib import Path

from gradspec.text._events import Event, Sink


def to_logger(logger: logging.Logger | str = "gradspec.text.events", level: int = logging.INFO) -> Sink:
    """Return a sink that logs each event, its attributes under `event` in the record.

    Args:
        logger: A logger or its name.
        level: The level of the records.
    """
    told = logging.getLogger(logger) if isinstance(logger, str) else logger
    if not hasattr(told, "isEnabledFor"):
        raise TypeError(f"a logger is a logging.Logger or its name, not {logger!r}")

    def sink(event: Event) -> None:
        if told.isEnabledFor(level):
            said = " ".join(f"{name}={value}" for name, value in event.attributes.items())
            told.log(level, "%s %s", event.name, said, extra={"event": event.attributes})

    return sink


class JsonLines:
    """A sink that appends each event to a file, a line of JSON each; whole lines, from threads and processes too.

    Args:
        path: The file, made if it is not there.

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> from gradspec.text import Variable, watch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "events.jsonl")
        ...     with watch(JsonLines(path)):
        ...         Variable("a", requires_grad=True).backward(Variable("b"))
        ...     json.loads(path.read_text())["event"]
        'commit'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir() or not self.path.absolute().parent.is_dir():
            raise ValueError(f"events are written to a file in a folder that exists, not to {os.fspath(path)!r}")
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Append an event."""
        line = json.dumps({"event": event.name, "time": event.time, "attributes": event.attributes}) + "\n"
        with self._lock:
            # Opened for each line: nothing is open between two, and one write of one line is not mixed with another.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
