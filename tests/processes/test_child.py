"""Children: started, heard and killed in one place, with everything that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from context_bench.processes.child import LastLines, describe_exit, kill_group, kill_process, start_child, wait_for_end

FORKS = """
import subprocess, sys
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(grandchild.pid, flush=True)
sys.stdin.read()
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_killing_a_group_ends_what_the_child_started() -> None:
    with start_child([sys.executable, "-c", FORKS]) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert is_alive(grandchild)
        assert kill_group(child) == -signal.SIGKILL
    deadline = time.monotonic() + 5
    while is_alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(grandchild)


def test_a_child_that_has_ended_keeps_its_exit_code_when_it_is_killed() -> None:
    with start_child([sys.executable, "-c", "import sys; sys.exit(3)"]) as child:
        assert wait_for_end(child, 20.0) == 3
        assert kill_group(child) == 3


def test_one_that_goes_on_is_not_waited_for_longer() -> None:
    with start_child([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        assert wait_for_end(child, 0.05) is None
        kill_group(child)


def test_a_child_is_in_a_group_of_its_own_unless_told_otherwise() -> None:
    program = [sys.executable, "-c", "import os; print(os.getpgid(0) == os.getpid())"]
    for own_group in (True, False):
        with start_child(program, own_group=own_group) as child:
            output, _ = child.communicate(timeout=20)
        assert output.decode().strip() == str(own_group)


def test_the_last_lines_are_kept_and_the_pipe_never_fills_up() -> None:
    program = "import sys; [print('line', n, 'x' * 100, file=sys.stderr) for n in range(5000)]; print('done')"
    with start_child([sys.executable, "-c", program], stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        said = LastLines(child.stderr, 3)
        assert wait_for_end(child, 20.0) == 0  # a full pipe would have stopped it
        said.wait(5.0)
    assert [line.split()[1] for line in said.lines] == ["4997", "4998", "4999"]


@pytest.mark.parametrize(
    ("code", "words"),
    [(None, "not ended"), (0, "ended with exit code 0"), (-11, "ended by SIGSEGV"), (-200, "ended by signal 200")],
)
def test_how_a_process_ended_in_words(code: int | None, words: str) -> None:
    assert describe_exit(code) == words


def test_killing_who_has_gone_is_no_error() -> None:
    with start_child([sys.executable, "-c", ""]) as child:
        child.wait()
    kill_process(child.pid)
    assert os.getpid()
