"""Programs that attack: each is shown to work in a plain process where that means something, then to be held."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from attacks import DECEPTIONS, Deception
from context_bench.sandbox import ProgramVerdict, find_isolation, read_task, run
from context_bench.sandbox.isolation import Child, Isolation
from sandboxed import REACHED, judge, missing, needs_sandbox


def plain(program: str, timeout: float = 10.0) -> subprocess.CompletedProcess[str]:
    """Run a program in a disposable process without any protection."""
    return subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=timeout, check=False
    )


def descendants() -> list[str]:
    """Processes that this one has started, or that those have started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, todo = [], {os.getpid()}
    while todo:
        todo = {pid for pid, parent in parents.items() if parent in todo}
        found += [f"{pid}" for pid in todo]
    return found


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No process, no zombie and no open file stays behind."""
    before, others = len(os.listdir("/proc/self/fd")), set(descendants())
    yield
    assert set(descendants()) <= others
    assert len(os.listdir("/proc/self/fd")) <= before  # what an earlier test left may be closed meanwhile


@pytest.mark.parametrize("attack", [each for each in DECEPTIONS.values() if each.works], ids=lambda each: "")
def test_a_harness_in_one_process_would_be_deceived(attack: Deception) -> None:
    assert plain(f"{attack.program}\n{attack.test}\ncheck(add)\n").returncode == 0


@needs_sandbox
@pytest.mark.parametrize("attack", DECEPTIONS.values(), ids=DECEPTIONS)
def test_a_wrong_program_does_not_pass(attack: Deception) -> None:
    verdict = judge(attack.program, attack.test, timeout=2.0)
    assert verdict.passed is False
    assert verdict.reason


@needs_sandbox
def test_the_tests_of_the_attacks_can_be_passed() -> None:
    honest = {
        "== 3\n    assert": "a + b",
        "abs": "a + b",
        "isclose": "a + b",
        "map": "1",
        "isinstance": "a + b",
        "len": "[1, 2, 3]",
        "in c": "[3]",
        "[1, 2, 3]": "[1, 2, 3]",
        "{3: 1}": "{3: 1}",
        "730912": "730912",
        "'three'": "'three'",
        "> 2": "3",
    }
    tests = {attack.test for attack in DECEPTIONS.values()}
    for mark, value in honest.items():
        test = next(each for each in tests if mark in each)
        assert judge(f"def add(a, b):\n    return {value}\n", test) == ProgramVerdict(True)


REACHES: dict[str, str] = {
    "reads a file of the user": "return open(PATH + '/secret').read() == 'secret'",
    "lists a directory of the user": "return 'secret' in os.listdir(PATH)",
    "lists the home directory": "return sorted(os.listdir(HOME)) == HOME_LIST",
    "reads the password file": "return 'root' in open('/etc/passwd').read()",
    "writes a file of the user": "open(PATH + '/new', 'w').write('x'); return True",
    "writes through a symlink": "os.symlink(PATH, 'link'); open('link/linked', 'w').write('x'); return True",
    "finds this process": "os.kill(PID, 0); return True",
    "sees processes": "return os.path.exists('/proc/self')",
    "reads the environment of its parent": "open(f'/proc/{os.getppid()}/environ', 'rb').read(); return True",
    "opens the verdict's pipe": "return any(os.listdir(f'/proc/{p}/fd') for p in [PID])",
    "connects to a local port": "socket.create_connection(('127.0.0.1', PORT), 2).close(); return True",
    "connects to an abstract socket": "s = socket.socket(socket.AF_UNIX); s.connect(ABSTRACT); s.close(); return True",
    "starts 60 processes": "return [os.fork() or (time.sleep(2), os._exit(0)) for _ in range(60)] != []",
    "fills /dev/shm": "[open(f'/dev/shm/{PID}-{i}', 'wb').write(bytes(8 << 20)) for i in range(8)]; return True",
    "fills the disk": "[open(f'f{i}', 'wb').write(bytes(8 << 20)) for i in range(8)]; return True",
    "runs a shell": "return subprocess.run(['/bin/sh', '-c', 'true']).returncode == 0",
}
"""What an unprotected program can do. Each function returns True when it could."""


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[str]:
    """Something to reach: a secret, a local server, this process. What programs are told about it."""
    (tmp_path / "secret").write_text("secret")
    abstract = f"\0context-bench-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(abstract)
        local.listen()
        facts = {
            "PATH": str(tmp_path),
            "PORT": server.getsockname()[1],
            "ABSTRACT": abstract,
            "PID": os.getpid(),
            "HOME": str(Path.home()),
            "HOME_LIST": sorted(os.listdir(Path.home())),
        }
        yield "import os, socket, subprocess, time\n" + "".join(f"{key} = {value!r}\n" for key, value in facts.items())


@pytest.mark.parametrize("body", REACHES.values(), ids=REACHES)
def test_what_a_plain_process_reaches(body: str, surroundings: str) -> None:
    program = f"{surroundings}def reach():\n    {body}\n"
    try:
        assert judge(program, REACHED, "none", entry="reach") == ProgramVerdict(True)
    finally:
        for left in Path("/dev/shm").glob(f"{os.getpid()}-*"):
            left.unlink()


@needs_sandbox
@pytest.mark.parametrize("body", REACHES.values(), ids=REACHES)
def test_what_a_sandboxed_program_does_not_reach(body: str, surroundings: str, tmp_path: Path) -> None:
    program = f"{surroundings}def reach():\n    {body}\n"
    verdict = judge(program, REACHED, entry="reach")
    assert verdict.passed is False
    assert "did not start" not in verdict.reason
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]


HELD: dict[str, str] = {
    "becomes root": "os.setuid(0); return True",
    "raises its limits": "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); return True",
    "writes to the library": "open(os.__file__, 'a').close(); return True",
    "writes to the root": "open('/new', 'w').close(); return True",
    "writes to /dev": "open('/dev/new', 'w').close(); return True",
    "writes a large file": "open('large', 'wb').write(bytes(20 << 20)); return True",
    "takes memory": "x = bytearray(3 << 30); return True",
    "starts 100 threads": "[threading.Thread(target=time.sleep, args=(1,)).start() for _ in range(100)]; return True",
    "kills all processes": "os.kill(-1, 9); return True",
    "kills the first process": "os.kill(1, 9); os.kill(os.getppid(), 9); time.sleep(0.2); return os.getppid() != 1",
    "traces other processes": "import ctypes; trace = ctypes.CDLL(None).ptrace; "
    "return any(trace(16, pid, 0, 0) == 0 for pid in range(2, 500) if pid != os.getpid())",
    "mounts": "import ctypes; return ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, 0) == 0",
    "changes the root": "os.chroot('/tmp'); return True",
    "runs for ever": "\n    while True: pass",
    "sleeps for ever": "time.sleep(1000)",
    "ignores signals for ever": "[signal.signal(s, signal.SIG_IGN) for s in (2, 15, 24)]\n    while True: pass",
    "leaves threads running": "threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start(); return False",
    "forks as long as it can": "\n    while True:\n        try: os.fork()\n        except OSError: time.sleep(0.1)",
}


@needs_sandbox
@pytest.mark.parametrize("body", HELD.values(), ids=HELD)
def test_what_the_sandbox_holds(body: str) -> None:
    started = time.monotonic()
    program = f"import os, signal, threading, time\ndef reach():\n    {body}\n"
    verdict = judge(program, REACHED, timeout=1.5, entry="reach")
    assert verdict.passed is False
    assert time.monotonic() - started < 30.0


def _named(name: str) -> list[int]:
    """Processes of that name, wherever they are."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
    return found


def test_a_daemon_outlives_a_plain_program_and_not_a_sandboxed_one() -> None:
    mark = f"cbt{os.getpid()}"
    program = (
        "import ctypes, os, time\ndef reach():\n    if os.fork() == 0:\n        os.setsid()\n"
        f"        ctypes.CDLL(None).prctl(15, b'{mark}', 0, 0, 0)\n        time.sleep(30)\n        os._exit(0)\n"
        "    time.sleep(0.5)\n    return True\n"
    )
    assert judge(program, REACHED, "none", entry="reach") == ProgramVerdict(True)
    left = _named(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(left) == 1
    if missing():
        pytest.skip(missing())
    deadline = time.monotonic() + 5
    while _named(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert judge(program, REACHED, entry="reach") == ProgramVerdict(True)
    assert _named(mark) == []
    assert judge(program.replace("return True", "os._exit(0)"), REACHED, entry="reach").passed is False
    assert _named(mark) == []


@needs_sandbox
def test_a_flood_of_output_is_not_kept() -> None:
    program = "def add(a, b):\n    for _ in range(64):\n        print('x' * (1 << 20))\n    return a + b\n"
    assert judge(program, DECEPTIONS["equals everything"].test) == ProgramVerdict(True)


@needs_sandbox
def test_a_secret_of_the_environment_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_SECRET", "hush")
    program = "import os\ndef reach():\n    return 'CONTEXT_BENCH_SECRET' in os.environ\n"
    assert "True" in plain(program + "print(reach())").stdout
    assert judge(program, REACHED, entry="reach").passed is False
    names = "NAMES = 'HOME LC_CTYPE LD_LIBRARY_PATH MALLOC_ARENA_MAX PWD PYTHONHASHSEED PYTHONTZPATH'.split()\n"
    listing = f"{names}def check(c):\n    assert set(c()) <= set(NAMES)\n"
    assert judge("import os\ndef reach():\n    return list(os.environ)\n", listing, entry="reach") == ProgramVerdict(
        True
    )


@needs_sandbox
def test_programs_do_not_see_each_others_files() -> None:
    writes = "import os\ndef reach():\n    open('/tmp/left', 'w').close()\n    return os.path.exists('/tmp/left')\n"
    assert judge(writes, REACHED, entry="reach") == ProgramVerdict(True)
    assert (
        judge("import os\ndef reach():\n    return os.path.exists('/tmp/left')\n", REACHED, entry="reach").passed
        is False
    )


@pytest.mark.parametrize("sandbox", ["none", pytest.param("auto", marks=needs_sandbox)])
def test_the_reason_for_a_failure(sandbox: str) -> None:
    def reason(program: str, timeout: float = 10.0) -> str:
        return judge(program, DECEPTIONS["exit in the call"].test, sandbox, timeout).reason

    assert reason("def add(a, b):\n    return 3\n") == "AssertionError in test 2"
    assert reason("def add(a, b):\n    return [][a]\n") == "IndexError in test 1: list index out of range"
    assert reason("def sub(a, b):\n    return 3\n") == "the reply does not define add"
    assert reason("def add(a, b):\n    while True: pass\n", 0.7) == "timed out after 0.7 s"
    assert reason("def add(a, b):\n    raise SystemExit\n") == "the program exited"
    assert reason("import os\ndef add(a, b):\n    os._exit(0)\n") == "the program ended before its tests"
    assert reason("import nothing_of_that_name\ndef add(a, b):\n    return 3\n").startswith("ModuleNotFoundError while")


def test_a_plain_run_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = "def add(a, b):\n    open('left', 'w').close()\n    return a + b\n"
    assert judge(program, DECEPTIONS["exit in the call"].test, "none") == ProgramVerdict(True)
    assert list(tmp_path.iterdir()) == []


class Faulty:
    """A real sandbox whose process of the tests gets other tests than it should, some of the times."""

    def __init__(self, isolation: Isolation, tests: str, times: int) -> None:
        self.isolation, self.tests, self.times, self.started = isolation, tests, times, 0

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        if main == "tester":
            self.started += 1
            job = (
                {**job, "tests": [self.tests.replace("VERDICT", str(job["verdict"]))]}
                if self.started <= self.times
                else job
            )
        return self.isolation.start(main, job, files, seconds)


HONEST = "def add(a, b):\n    return a + b\n"
CRASH = "import os\nos._exit(3)\n"
HANG = "import time\ntime.sleep(60)\n"
NONSENSE = "import posix\nposix.write(VERDICT, b'perhaps so\\n')\nposix._exit(0)\n"


@pytest.mark.parametrize("sandbox", ["none", pytest.param("auto", marks=needs_sandbox)])
@pytest.mark.parametrize(("fault", "reason"), [(CRASH, "ended without a verdict"), (HANG, "timed out after 0.7 s")])
def test_a_broken_sandbox_gives_no_verdict(sandbox: str, fault: str, reason: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(import_module("context_bench.sandbox.verdict"), "_MIN_START_SECONDS", 0.7)
    task = read_task({"test": DECEPTIONS["exit in the call"].test, "entry_point": "add"})
    assert task is not None
    faulty = Faulty(find_isolation(sandbox), fault, times=2)
    verdict = run(task, [HONEST], faulty, 0.7)
    assert verdict.passed is None
    assert reason in verdict.reason
    assert "a known-good program does not pass either" in verdict.reason
    assert faulty.started == 2


@pytest.mark.parametrize("sandbox", ["none", pytest.param("auto", marks=needs_sandbox)])
def test_a_program_that_makes_its_tests_fail_has_failed_when_others_pass(sandbox: str) -> None:
    unsafe = "def check(c):\n    import ctypes\n    assert ctypes.string_at(c(1, 2), 1) == b'x'\n"
    verdict = judge("def add(a, b):\n    return 1\n", unsafe, sandbox)  # reads address 1, and dies of it
    assert verdict == ProgramVerdict(False, "the process of the tests ended without a verdict")
    verdict = judge(
        "def add(a, b):\n    return 60\n", "def check(c):\n    import time\n    time.sleep(c(1, 2))\n", sandbox, 0.7
    )
    assert verdict == ProgramVerdict(False, "timed out after 0.7 s")


def test_a_word_that_is_no_verdict_is_none() -> None:
    task = read_task({"test": DECEPTIONS["exit in the call"].test, "entry_point": "add"})
    assert task is not None
    assert run(task, [HONEST], Faulty(find_isolation("none"), NONSENSE, times=2), 5.0).passed is None


class WithoutTests:
    """Plain processes, of which that of the tests never starts to work."""

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        if main == "tester":
            main = "confine"
        return find_isolation("none").start(main, job, files, seconds)


def test_no_program_runs_before_its_tests_are_there(tmp_path: Path) -> None:
    """Else it could take so much of the machine that they do not start, which would leave it unscored."""
    program = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{HONEST}"
    task = read_task({"test": DECEPTIONS["exit in the call"].test, "entry_point": "add"})
    assert task is not None
    stuck = run(task, [program], WithoutTests(), 1.0)
    assert stuck.passed is None
    assert list(tmp_path.iterdir()) == []
    assert judge(program, DECEPTIONS["exit in the call"].test, "none") == ProgramVerdict(True)
    assert [path.name for path in tmp_path.iterdir()] == ["ran"]


class SlowToStart:
    """Plain processes, of which that of the tests starts late."""

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        if main == "tester":
            time.sleep(0.6)
        return find_isolation("none").start(main, job, files, seconds)


def test_the_time_of_a_program_counts_from_when_its_tests_are_there() -> None:
    task = read_task({"test": DECEPTIONS["exit in the call"].test, "entry_point": "add"})
    assert task is not None
    assert run(task, [HONEST], SlowToStart(), 0.5) == ProgramVerdict(True)


@needs_sandbox
def test_pools_of_one_process_for_each_cpu_fit_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_bench.sandbox.isolation.CPUS", 1)
    counting = "import os\ndef reach():\n    return len(os.sched_getaffinity(0))\n"
    assert judge(counting, "def check(c):\n    assert c() == 1\n", entry="reach") == ProgramVerdict(True)
