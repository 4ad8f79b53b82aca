"""The proxy under test, started for a run and stopped after it with all its children.

A guardian (see `guardian.py`) ends the whole family when the run ends, fails, is interrupted or is killed. The proxy's
output goes to a file; the last lines are shown when the proxy does not start.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import BinaryIO, TextIO

from context_bench.errors import StartFailed, UsageError, printable
from context_bench.processes import guardian
from context_bench.processes.child import kill_group, kill_process, start_child, wait_for_end
from context_bench.text.masking import find_command_secrets, mask_command, may_name_secret


def find_program(name: str, *, home: str | None = None) -> str | None:
    """Find a program: first where `make vendors` installs vendors, then on the path.

    `home` is the vendor's directory, if its name differs from that of the program; with `home`, the path is not
    searched.
    """
    places = [str((place / (home or name) / part).absolute()) for place in _list_homes() for part in ("bin", "Scripts")]
    found = shutil.which(name, path=os.pathsep.join(places))
    return found if found or home else shutil.which(name)


def _list_homes() -> list[Path]:
    """List where vendors may be: the user's folder, the current folder, and the checkout around that folder or around
    our code.

    No other parent directory is searched, because anyone who can write there could make us start a program.
    """
    given = os.environ.get("CONTEXT_BENCH_VENDORS")
    around = [*Path.cwd().parents, *Path(__file__).parents]
    checkouts = [each for each in around if (each / "tools/vendors").is_dir() and (each / "pyproject.toml").is_file()]
    return [*([Path(given)] if given else []), *(place / ".vendors" for place in (Path(), *checkouts))]


SCRATCH = "scratch"  # means a new scratch directory as the one in which a proxy is started

HOST = "127.0.0.1"

_POLL_SECONDS = 0.1
_ANSWER_TIMEOUT = 5.0
_SHOW_AFTER = 1.0
_TAIL_LINES, _TAIL_BYTES = 8, 4000


class StartedProxy:
    """Starts a proxy, waits until it answers, and stops it with all its children.

    The `command` is one line, run without a shell. `{port}`, `{host}`, `{tap}` and `{scratch}` (a directory that is
    removed afterwards) are filled in, in the command and in the values of `env`, which are added to our own
    environment. `tap_url` is its upstream, without `/v1`; its output goes to `log`, or a temporary file; `secrets` are
    masked in its output. The proxy is started in `directory`, which is ours by default; `SCRATCH` means the `{scratch}`
    directory. A proxy may index the files in this directory and send them upstream.
    """

    def __init__(
        self,
        command: str,
        *,
        port: int,
        tap_url: str,
        env: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        log: Path | None = None,
        secrets: Sequence[str] = (),
        directory: str | None = None,
    ) -> None:
        self._directory = directory
        self.command, self.port, self.timeout, self.log = command, port, timeout, log
        self.secrets = (*secrets, *find_command_secrets(command))
        self.url = f"http://{HOST}:{port}"
        self.token = uuid.uuid4().hex
        self._filled = {"{port}": str(port), "{host}": HOST, "{tap}": tap_url}
        self._env = dict(env or {})
        self._words = _split(command)
        self.name = mask_command(PurePath(self._words[0]).name)
        self._guardian: subprocess.Popen[bytes] | None = None
        self._output: BinaryIO | None = None
        self._ending = threading.Lock()

    async def start(self) -> None:
        """Start the proxy, and return once it answers."""
        environment = self._environment()
        word = self._words[0]
        found = shutil.which(word, path=environment.get("PATH")) or find_program(word)
        if found is None:
            hint = ": no shell is used, so write env NAME=VALUE PROGRAM ..." if "=" in word else ""
            raise UsageError(f"there is no program {mask_command(word)!r} to start{hint}")
        program = str(Path(found).absolute())  # it may start in another directory
        if self._directory not in (None, SCRATCH) and not Path(self._directory).is_dir():
            raise UsageError(f"{self._directory!r} is not a directory to start {self.name} in")
        if await _is_open(self.port):
            raise UsageError(f"something already listens on {HOST}:{self.port}, where {self.name} should start")
        try:
            self._launch(program, environment)
            await self._wait_until_healthy()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the proxy and everything that it started; do nothing if it does not run."""
        await asyncio.to_thread(self._end)

    async def __aenter__(self) -> StartedProxy:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _environment(self) -> dict[str, str]:
        """Return our environment with the proxy's additions; requests to this machine bypass any HTTP proxy."""
        environment = {**os.environ, **self._env, guardian.MARK: self.token}
        for name in ("NO_PROXY", "no_proxy"):
            parts = [environment.get(name, ""), "127.0.0.1", "localhost", "::1"]
            environment[name] = ",".join(part for part in parts if part)
        return environment

    def _launch(self, program: str, environment: Mapping[str, str]) -> None:
        try:  # append mode, so that reading here does not move the proxy's write position
            self._output = self.log.open("a+b") if self.log else tempfile.TemporaryFile("a+b")  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"cannot write the output of {self.name} to {self.log}: {error.strerror}") from error
        self._scratch = tempfile.mkdtemp(prefix="context-bench-")
        atexit.register(self._end)
        filled = {**self._filled, "{scratch}": self._scratch}
        arguments = [program, *(_fill(word, filled) for word in self._words[1:])]
        self._guardian = start_child(
            [sys.executable, "-I", guardian.__file__, self._scratch, *arguments],
            stdout=self._output,
            stderr=self._output,
            cwd=self._scratch if self._directory == SCRATCH else self._directory,
            env={name: _fill(value, filled) if name in self._env else value for name, value in environment.items()},
        )

    async def _wait_until_healthy(self) -> None:
        assert self._guardian is not None
        started = time.monotonic()
        with _Waiting(self.name, sys.stderr) as waiting:
            while True:
                answers = await _answers(self.port)
                if (code := self._guardian.poll()) is not None:
                    what = f"ended with exit code {code} before it answered on {HOST}:{self.port}"
                    raise StartFailed(self._describe_failure(what))
                if answers:
                    return
                seconds = time.monotonic() - started
                if seconds > self.timeout:
                    raise StartFailed(self._describe_failure(f"did not answer on {self.url} within {self.timeout:g} s"))
                waiting.show(seconds)
                await asyncio.sleep(_POLL_SECONDS)

    def _describe_failure(self, what: str) -> str:
        """Describe the failure with the proxy's last output, in which our keys are masked."""
        assert self._output is not None
        self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, self._output.tell() - _TAIL_BYTES))
        text = self._output.read().decode(errors="replace")
        named = [value for name, value in os.environ.items() if may_name_secret(name)]
        for value in sorted({*named, *self.secrets}, key=len, reverse=True):
            if len(value) > 7 or value in self.secrets:
                text = text.replace(value, "***").replace(value.removeprefix("Bearer "), "***")
        text = mask_command(text)
        lines = [line for line in map(printable, text.splitlines()) if line][-_TAIL_LINES:]
        return f"{self.name} {what}" + ("; it said: " + " / ".join(lines) if lines else ", and said nothing")

    def _end(self) -> None:
        with self._ending:
            process, self._guardian = self._guardian, None
            if process is not None:
                _dismiss(process)
                for pid in guardian.find_carriers(self.token):  # only if the guardian was killed
                    kill_process(pid)
                shutil.rmtree(self._scratch, ignore_errors=True)
            if self._output is not None:
                self._output.close()
                self._output = None
            atexit.unregister(self._end)


class _Waiting:
    """A progress line, shown while a proxy starts, only on a terminal."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name, self._stream, self._drawn = name, stream, False

    def show(self, seconds: float) -> None:
        if seconds >= _SHOW_AFTER and self._stream.isatty():
            self._stream.write(f"\r\x1b[2Kstarting {self._name} … {seconds:.0f} s")
            self._stream.flush()
            self._drawn = True

    def __enter__(self) -> _Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command {mask_command(command)!r} cannot be split into words: {error}") from error
    if not words:
        raise UsageError("the command that starts the proxy is empty")
    return words


def _fill(text: str, filled: Mapping[str, str]) -> str:
    for placeholder, value in filled.items():
        text = text.replace(placeholder, value)
    return text


async def _is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


async def _answers(port: int) -> bool:
    """Whether an HTTP server answers at the URL; any status counts, since a proxy need not know the path."""
    try:
        return await asyncio.wait_for(_ask(port), _ANSWER_TIMEOUT)
    except (OSError, ValueError, asyncio.TimeoutError):
        return False


async def _ask(port: int) -> bool:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(f"GET /health HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode())
        return (await reader.readline()).startswith(b"HTTP/")
    finally:
        writer.close()


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    """Make the guardian end its processes and itself."""
    assert process.stdin is not None
    try:
        process.stdin.write(b"\n")  # a process forked from us may keep the other end open
        process.stdin.close()
    except OSError:
        pass
    if wait_for_end(process, 2 * guardian.TERM_GRACE + 5.0) is None:
        kill_group(process)
