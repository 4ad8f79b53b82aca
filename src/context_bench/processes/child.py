"""Child processes: each starts in its own process group and is killed with it.

With a separate group, Ctrl-C in a terminal reaches only us, and killing the group also ends what the program started.
`WorkerPool` runs functions in child processes, so that a function can be stopped midway.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from context_bench.errors import printable

File = int | IO[bytes] | None

MAX_COLLECT_SECONDS = 1.0  # seconds to wait for the orphans of a killed group; one that changed its user may survive


def start_child(
    command: Sequence[str],
    *,
    stdin: File = subprocess.PIPE,
    stdout: File = subprocess.PIPE,
    stderr: File = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    files: Sequence[int] = (),
    own_group: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a program without a shell; it inherits no open files except `files`.

    `own_group` is False for a program that creates its own session, and is not to be killed with its group.
    """
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        pass_fds=files,
        start_new_session=own_group,
    )


def wait_for_end(process: subprocess.Popen[bytes], seconds: float | None) -> int | None:
    """Wait for a program to end; return its exit code, or None after `seconds`."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def kill_group(process: subprocess.Popen[bytes]) -> int:
    """Kill a program and its group, wait, and return the exit code; a program that had already ended has its own."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):  # the group is empty
        pass
    code = process.wait()
    if os.getpid() == 1:
        _collect_orphans(process.pid)
    return code


def _collect_orphans(group: int) -> None:
    """Wait for the rest of a killed group if we are process 1, which inherits these processes."""
    deadline = time.monotonic() + MAX_COLLECT_SECONDS
    try:
        while time.monotonic() < deadline:
            if os.waitpid(-group, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
    except ChildProcessError:  # all are collected
        pass


def kill_process(pid: int) -> None:
    """Kill the process with that number, if it still runs."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def describe_exit(code: int | None) -> str:
    """Say how a process ended, by its exit code."""
    if code is None:
        return "not ended"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


class LastLines:
    """The last lines of a process's output. A thread reads them, since a full pipe would block the process."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.lines: deque[str] = deque(maxlen=most)
        self._stream = stream
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream as stream:
            for line in stream:
                self.lines.append(printable(line.decode(errors="replace")))

    def wait(self, seconds: float) -> None:
        """Wait for the end of the stream, which comes when all processes that write to it have ended."""
        self._reader.join(seconds)


_START_SECONDS = 120.0
_GRACE_SECONDS = 1.0
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")


class WorkerFailed(Exception):
    """A call returned no result: it reached the limit, or the function raised."""


class WorkerPool:
    """Runs a function in up to `size` workers; any number of threads may call it.

    The function is named `module:function`; its arguments and result must fit into JSON. A function `prepare`
    in the module is called first, outside the time limit. Memory is limited where the platform can do that.
    """

    def __init__(self, function: str, *, seconds: float, megabytes: int, size: int | None = None) -> None:
        self.function = function
        self.seconds = seconds
        self.megabytes = megabytes
        self.size = size or min(4, os.cpu_count() or 1)
        self._places = threading.BoundedSemaphore(self.size)
        self._idle: list[_Worker] = []
        _pools.add(self)
        weakref.finalize(self, _stop_all, self._idle)  # with the pool, or with the process

    def call(self, *arguments: Any) -> Any:
        """Return the result of the function, or raise WorkerFailed."""
        with self._places:
            worker = self._worker()
            try:
                result = worker.call(arguments, self.seconds)
            except BaseException:
                # After any interruption the worker is dropped: its late reply would be taken for that of the next call.
                worker.stop()
                raise
            self._idle.append(worker)
        if "error" in result:
            raise WorkerFailed(result["error"])
        return result["value"]

    def _worker(self) -> _Worker:
        while self._idle:
            with suppress(IndexError):  # another thread took it
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.stop()
        return _Worker(self.function, self.seconds, self.megabytes)

    def close(self) -> None:
        """Stop the idle workers; the pool starts new workers when it is called again."""
        _stop_all(self._idle)

    def forget(self) -> None:
        """Drop the workers that belong to the process from which this process was forked."""
        for worker in self._idle:
            worker.process.returncode = 0
        self._idle.clear()
        self._places = threading.BoundedSemaphore(self.size)


class _Worker:
    def __init__(self, function: str, seconds: float, megabytes: int) -> None:
        environment = {key: os.environ[key] for key in _KEPT_ENVIRONMENT if key in os.environ}
        # The order of sets must not depend on the run, and the child must find what this process finds.
        environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = start_child(
            [sys.executable, "-c", "from context_bench.processes.child import serve; serve()"],
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        try:
            ready = self.call({"function": function, "seconds": seconds, "megabytes": megabytes}, _START_SECONDS)
        except BaseException:
            self.stop()
            raise
        if "error" in ready:
            self.stop()
            raise WorkerFailed(f"the worker for {function} did not start: {ready['error']}")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def call(self, request: Any, seconds: float) -> dict[str, Any]:
        """Send a request and wait for the reply; kill the worker if the reply is late."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        late = threading.Event()
        timer = threading.Timer(seconds, self._kill, (late,))
        timer.daemon = True
        timer.start()
        try:
            _send(stdin, request)
            line = stdout.readline()
        except (BrokenPipeError, OSError):
            line = b""
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.stop()
            raise WorkerFailed(f"no result within {seconds:g} s" if late.is_set() else "the worker process died")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _kill(self, late: threading.Event) -> None:
        late.set()
        self.process.kill()

    def stop(self) -> None:
        """End the child process and close the pipes."""
        kill_group(self.process)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()


def _send(pipe: IO[bytes], message: Any) -> None:
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def serve() -> None:
    """Load the function in the child process, then answer requests until the parent is gone."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    sys.stdout = sys.stderr  # output of the function must not be taken for a reply
    setting = json.loads(requests.readline())
    try:
        megabytes = setting["megabytes"]
        with suppress(ImportError, ValueError, OSError):
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        module = importlib.import_module(setting["function"].partition(":")[0])
        function = getattr(module, setting["function"].partition(":")[2])
        getattr(module, "prepare", lambda: None)()
        _send(replies, {"ready": True})
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        _send(replies, {"error": f"{type(error).__name__}: {error}"})
        return
    for line in requests:
        _alarm(setting["seconds"] + _GRACE_SECONDS)
        try:
            reply = {"value": function(*json.loads(line))}
        except Exception as error:  # noqa: BLE001 - a failed call is a result
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        _alarm(0)
        _send(replies, reply)


def _alarm(seconds: float) -> None:
    """Make the kernel end this process when the time is up, because the parent may be gone, and a long computation in
    the interpreter blocks all other threads.
    """
    with suppress(ImportError, AttributeError):
        import signal

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _stop_all(workers: list[_Worker]) -> None:
    while workers:
        with suppress(IndexError):  # another thread took it
            workers.pop().stop()


_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
