"""Where in a user's own code an exception came from."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from context_bench.errors import ContextBenchError, printable

__all__ = ["RaisedElsewhere", "find_bug", "list_frames", "open_debugger", "rebuild_error"]

_OURS = str(Path(__file__).parent.parent)
_STANDARD = sysconfig.get_path("stdlib")
_MOST = 8
_LONGEST = 200


class RaisedElsewhere(Exception):
    """An exception of a user's code in another process, of which only its text and its frames are known."""

    def __init__(self, text: str, frames: list[str]) -> None:
        super().__init__(text)
        self.frames = frames


def find_bug(error: BaseException | None) -> BaseException | None:
    """Find the exception of a user's own code behind an error; None for errors that we raise on purpose."""
    while isinstance(error, ContextBenchError):
        error = error.__cause__
    return error


def list_frames(error: BaseException | None) -> list[str]:
    """List the frames of a user's code in a traceback, the innermost last: `file:line in function: code`."""
    bug = find_bug(error)
    if bug is None:
        return []
    if isinstance(bug, RaisedElsewhere):
        return bug.frames
    frames = traceback.extract_tb(bug.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_OURS, "<frozen"))]
    while own and own[0].filename.startswith(_STANDARD) and "site-packages" not in own[0].filename:
        own.pop(0)  # the thread or loop that called it
    return [
        printable(f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}")[:_LONGEST]
        for frame in own[-_MOST:]
    ]


def rebuild_error(text: str, frames: list[str]) -> RaisedElsewhere:
    """Make an exception that is described by `text`, its type and its message, as the one in another process was."""
    name, _, message = text.partition(": ")
    kind: type[RaisedElsewhere] = type(name if name.isidentifier() else "Exception", (RaisedElsewhere,), {})
    return kind(message, frames)


def open_debugger(error: BaseException) -> None:
    """Open the debugger at the innermost frame of a user's code, as `python -m pdb` does after an exception."""
    import pdb

    place: TracebackType | None = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename.startswith(_OURS) and place.tb_next is not None:
        place = place.tb_next
    pdb.post_mortem(place)
