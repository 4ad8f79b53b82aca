"""A program on a terminal of its own: a real pseudo-terminal of so many columns and lines."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from command import environment

__all__ = ["Terminal", "bench_on_terminal", "on_terminal"]


class Terminal:
    """A program that runs on a terminal; `shown` holds what it has written so far."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        columns: int = 80,
        lines: int = 24,
        env: Mapping[str, str] | None = None,
        term: str = "xterm",
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        # A session that opens a terminal by its name is controlled by it: so Ctrl-C is a signal to the program.
        opening = ["sh", "-c", 'tty=$1; shift; exec "$@" <>"$tty" >&0 2>&0', "sh", os.ttyname(slave)]
        kept = {key: value for key, value in (env or environment()).items() if key not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [*opening, *command],
            cwd=cwd,
            env={**kept, "TERM": term},
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def read(self, seconds: float = 0.05) -> bool:
        """Take what there is; False once the program has ended."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            new = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            new = b""
        self.shown += new.decode("utf-8", "replace")
        return bool(new)

    def wait_for(self, text: str, timeout: float = 30.0) -> None:
        """Read until a text is there."""
        end = time.monotonic() + timeout
        while text not in self.shown:
            assert time.monotonic() < end, f"no {text!r} in {self.shown!r}"
            assert self.read() or text in self.shown, f"ended without {text!r}: {self.shown!r}"

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def finish(self, timeout: float = 240.0) -> int:
        """Read to the end and return the exit code."""
        end = time.monotonic() + timeout
        while self.read():
            assert time.monotonic() < end, self.shown
        code = self.process.wait(timeout)
        os.close(self._master)
        return code


def bench_on_terminal(
    *arguments: str, cwd: Path, columns: int = 80, env: Mapping[str, str] | None = None, term: str = "xterm"
) -> Terminal:
    """`context-bench` on a terminal, under way."""
    return Terminal([sys.executable, "-m", "context_bench", *arguments], cwd=cwd, columns=columns, env=env, term=term)


def on_terminal(*arguments: str, cwd: Path, columns: int = 80, code: int = 0) -> str:
    """What `context-bench` writes to a terminal, without colours and the lines that it took away again."""
    terminal = bench_on_terminal(*arguments, cwd=cwd, columns=columns, env=environment(NO_COLOR="1"))
    assert terminal.finish() == code, terminal.shown
    lines = terminal.shown.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rpartition("\r\x1b[2K")[2] for line in lines)
