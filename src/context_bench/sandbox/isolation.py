"""A fresh Python for untrusted code, isolated by bubblewrap, or as a plain process on request.

This Python has only the standard library, so that a verdict does not depend on installed packages; a fixed hash seed
makes runs repeatable.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from typing import IO, Any, Protocol

from context_bench.errors import UsageError
from context_bench.processes.child import kill_group, start_child
from context_bench.sandbox.seccomp import MACHINES, build_filter

_PACKAGE = "context_bench.sandbox.inside"
_CONVERSATION = ("confine", "encoding", "peer")
_USED_BY = {"confine": ("confine",), "candidate": (*_CONVERSATION, "candidate"), "tester": (*_CONVERSATION, "tester")}
"""For each module with a `main`, the modules that it needs, in the order of their imports."""

BOOT = """\
import marshal, sys
modules, job = marshal.loads(sys.stdin.buffer.read())
for name, code in marshal.loads(modules):
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.main(job)
"""
"""The code that the interpreter runs (`python -c`): load the modules, and call `main` of the last module."""


@cache
def _compile_modules(main: str) -> bytes:
    from importlib import resources

    modules = []
    for name in _USED_BY[main]:
        source = resources.files(_PACKAGE).joinpath(f"{name}.py").read_text("utf-8")
        code = compile(source, f"<{name}>", "exec", dont_inherit=True, optimize=2)
        modules.append((f"{_PACKAGE}.{name}", code))
    return marshal.dumps(modules)


MEMORY = 1 << 30
LIMITS = {"RLIMIT_FSIZE": 16 << 20, "RLIMIT_NOFILE": 64, "RLIMIT_CORE": 0}


class Child(Protocol):
    """A running interpreter."""

    def follow(self) -> None:
        """Get a handle of the process after its start; do this before the process can end by itself."""

    def end(self) -> None:
        """Kill the process and all its descendants, and wait until all have ended."""


class Isolation(Protocol):
    """A way to start interpreters."""

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        """Start `main` of a module of `inside` with a job, open files and a limit of CPU seconds."""


def build_command() -> list[str]:
    """Build the command of a Python that reads its job, and uses no site packages, user directory or compiled files."""
    found = getattr(sys, "_base_executable", None) or sys.executable
    return [os.path.realpath(found), "-s", "-S", "-B", "-X", "utf8", "-c", BOOT]


def list_library_folders() -> list[str]:
    """List the folders of this Python's standard library, and of the shared libraries that came with it."""
    return [os.path.join(sys.base_prefix, name) for name in ("lib", "lib64")]


@cache
def find_zone_folder() -> str | None:
    """Find the data of time zones: the system's, else the package tzdata's; None without both."""
    from importlib.util import find_spec
    from zoneinfo import TZPATH

    package = find_spec("tzdata")
    packaged = (package and package.submodule_search_locations) or ()
    folders = [*TZPATH, *(os.path.join(path, "zoneinfo") for path in packaged)]
    return next((folder for folder in folders if os.path.isdir(folder)), None)


def build_environment(home: str) -> dict[str, str]:
    """Build the complete environment of a program. It limits the address space that the C library reserves for each
    thread, because by default only a few threads would fit.
    """
    zones = find_zone_folder()
    return {
        "HOME": home,
        "LD_LIBRARY_PATH": list_library_folders()[0],
        "MALLOC_ARENA_MAX": "1",
        "PYTHONHASHSEED": "0",
        **({"PYTHONTZPATH": zones} if zones else {}),
    }


def open_job_file(main: str, job: dict[str, Any]) -> IO[bytes]:
    """Open an anonymous file with the input of BOOT; unlike a pipe, a file takes any length without a reader."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(marshal.dumps((_compile_modules(main), job)))
    file.seek(0)
    return file


DISK = 32 << 20
SHARED_MEMORY = 32 << 20
PROCESSES = 32
CPUS = 8  # pools start as many processes as there are CPUs, and all of them have to fit in

_TRANSIENT_USERS = (61184, 65519)
"""User ids that systemd reserves for short-lived services; programs that root starts get such an id."""


class Bubblewrap:
    """Starts interpreters in separate namespaces with `bwrap`, a program at the given path. Inside there is no network,
    no home directory, no environment, no /proc and no other process; only two small file systems in RAM are writable. A
    filter refuses system calls that could bypass this. Everything is removed when `end` returns.

    `disables_userns` also disables user namespaces. That option needs bubblewrap 0.8 and a writable /proc/sys. It is
    not used as root, because it would remove the limit on processes.
    """

    def __init__(self, program: str, *, disables_userns: bool = False) -> None:
        self._program = program
        self._command = [*(["--disable-userns"] if disables_userns else []), *_build_options(), *build_command()]

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        return self._start(main, {**job, **_choose_limits(seconds)}, files, subprocess.DEVNULL)

    def _start(self, main: str, job: dict[str, Any], files: Sequence[int], stderr: int) -> _Sandboxed:
        told, tells = os.pipe()
        try:
            with open_job_file(main, job) as stdin, _open_filter_file() as filtering:
                process = start_child(
                    [self._program, "--seccomp", str(filtering), "--info-fd", str(tells), *self._command],
                    stdin=stdin,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    files=[*files, filtering, tells],
                    env={},
                    own_group=False,  # it is ended by the first process of its namespace
                )
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(tells)
        return _Sandboxed(process, told)

    def complaint(self) -> str | None:
        """Try to set up a sandbox; return the error, or None if it works."""
        try:
            tried = self._start("confine", _choose_limits(10), (), subprocess.PIPE)
        except OSError as error:
            return str(error)
        tried.follow()
        try:
            said = tried.process.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired as error:
            return str(error)
        finally:
            tried.end()
        lines = said.decode("utf-8", "replace").strip().splitlines()
        status = tried.process.returncode
        return None if status == 0 else (lines or [f"exit status {status}"])[-1]


@contextlib.contextmanager
def _open_filter_file() -> Iterator[int]:
    """Open a pipe with the filter of system calls in bwrap's form; each sandbox needs a separate one."""
    machine = os.uname().machine
    program = build_filter(machine)
    if program is None:
        raise NotImplementedError(f"no filter of system calls for {machine}")
    reads, writes = os.pipe()
    try:
        try:
            os.write(writes, program)
        finally:
            os.close(writes)
        yield reads
    finally:
        os.close(reads)


class _Sandboxed:
    def __init__(self, process: subprocess.Popen[bytes], told: int) -> None:
        self.process, self._told = process, told
        self._first: int | None = None
        self._followed = False

    def follow(self) -> None:
        """Get a handle of the namespace's first process; when it ends, the kernel ends all others there."""
        if self._followed:
            return
        self._followed = True
        facts = b""
        while b"}" not in facts and select.select([self._told], [], [], 5.0)[0]:
            chunk = os.read(self._told, 4096)
            if not chunk:
                break
            facts += chunk
        number = re.search(rb'"child-pid": (\d+)\D', facts)
        with contextlib.suppress(ProcessLookupError):  # it may have ended already
            self._first = os.pidfd_open(int(number[1])) if number else None

    def end(self) -> None:
        """Kill the namespace's first process, and wait until the kernel has ended the others."""
        self.follow()
        try:
            if self._first is None:
                self.process.kill()
            else:
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
                select.select([self._first], [], [], 10.0)
        except ProcessLookupError:
            pass
        finally:
            os.close(self._told)
            self.process.wait()
            if self._first is not None:
                # bwrap may end before its child, which then is a child of process 1: ours, if we are that.
                with contextlib.suppress(ChildProcessError):
                    os.waitid(os.P_PIDFD, self._first, os.WEXITED | os.WNOHANG)
                os.close(self._first)


def _choose_limits(seconds: int) -> dict[str, Any]:
    """Choose limits, and for root another user, because root is exempt from the limit on processes."""
    limits = {**LIMITS, "RLIMIT_AS": MEMORY, "RLIMIT_CPU": seconds}
    low, high = _TRANSIENT_USERS
    user = low + int.from_bytes(os.urandom(4), "big") % (high - low) if os.geteuid() == 0 else None
    if user is not None or _counts_by_namespace():
        limits["RLIMIT_NPROC"] = PROCESSES
    cpus = os.sched_getaffinity(0)
    some = random.SystemRandom().sample(sorted(cpus), CPUS) if len(cpus) > CPUS else None
    return {"limits": limits, "user": user, "cpus": some}


def _counts_by_namespace() -> bool:
    """Whether the limit counts only the processes of the sandbox, not all of the user's."""
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)


def _build_options() -> list[str]:
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv", "--cap-drop", "ALL"]
    if os.geteuid() == 0:  # kept until the user is changed, which is the first thing done inside
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        options += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    for key, value in build_environment("/tmp").items():
        options += ["--setenv", key, value]
    options += ["--perms", "1777", "--size", str(DISK), "--tmpfs", "/tmp"]  # first: Python may be installed below it
    devices = ["/dev/null", "/dev/urandom"]
    for folder in _list_folders_above([*_list_visible_paths(), *devices]):  # else they are made for the first user only
        options += ["--dir", folder]
    for path in _list_visible_paths():
        options += ["--ro-bind", path, path]
    for device in devices:
        options += ["--dev-bind", device, device]
    options += ["--perms", "1777", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"]
    return [*options, "--chdir", "/tmp", "--remount-ro", "/"]


def _list_visible_paths() -> list[str]:
    """List the paths that Python needs: its binary, its library, the system's shared libraries, and time zones."""
    system = ["/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache"]
    wanted = dict.fromkeys([*system, *list_library_folders(), build_command()[0], find_zone_folder()])
    found = [path for path in wanted if path is not None and os.path.exists(path)]
    return [path for path in found if not any(path.startswith(f"{other}/") for other in found)]


def _list_folders_above(paths: list[str]) -> list[str]:
    steps = [path.split("/") for path in paths]
    return sorted({"/".join(parts[:end]) for parts in steps for end in range(2, len(parts))})


class Plain:
    """Starts each interpreter in a separate session and temporary directory, with limits.

    Use it only for programs that are not hostile: they run as the user, with the user's files and network.
    """

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        limits = {**LIMITS, "RLIMIT_CPU": seconds}
        if sys.platform == "linux":
            limits["RLIMIT_AS"] = MEMORY
        directory = tempfile.mkdtemp(prefix="context-bench-")
        try:
            with open_job_file(main, {**job, "limits": limits, "user": None, "cpus": None}) as stdin:
                process = start_child(
                    build_command(),
                    stdin=stdin,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    files=files,
                    cwd=directory,
                    env=build_environment(directory),
                )
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return _Session(process, directory)


class _Session:
    def __init__(self, process: subprocess.Popen[bytes], directory: str) -> None:
        self._process, self._directory = process, directory

    def follow(self) -> None:
        """Do nothing: the started process is the interpreter."""

    def end(self) -> None:
        """Kill the process group, and remove the directory."""
        kill_group(self._process)
        shutil.rmtree(self._directory, ignore_errors=True)


SANDBOXES = ("auto", "bubblewrap", "none")

_OTHERWISE = "or accept the risk with CodeExecution(sandbox='none') or --unsafe-code"


def find_isolation(sandbox: str) -> Isolation:
    """Return the isolation of that name, or raise UsageError; "auto" is the best available one, never "none"."""
    if os.name != "posix":
        raise UsageError("model-written code cannot be run on this system: use Linux, a container or WSL")
    if sandbox == "none":
        return Plain()
    found = _bubblewrap()
    if isinstance(found, str):
        raise UsageError(f"model-written code needs a sandbox: {found}, {_OTHERWISE}")
    return found


@cache
def _bubblewrap() -> Bubblewrap | str:
    """Return the sandbox after testing it once, or advice on how to get one."""
    if sys.platform != "linux":
        return "there is none for this system: use Linux or a container"
    program = shutil.which("bwrap")
    if program is None:
        return "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
    machine = os.uname().machine
    if build_filter(machine) is None:
        return f"system calls are filtered on {' and '.join(MACHINES)} and this is {machine}, so use another machine"
    complaint = None
    for disables_userns in [True, False] if os.geteuid() else [False]:
        isolation = Bubblewrap(program, disables_userns=disables_userns)
        complaint = isolation.complaint()
        if complaint is None:
            return isolation
    return f"bubblewrap 0.7 or newer must work here, but it says {complaint!r}"
