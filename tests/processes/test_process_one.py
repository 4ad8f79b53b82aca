"""As process 1, where nobody collects orphans that have ended, none stays behind as a zombie."""

from __future__ import annotations

import subprocess
import sys

import pytest

from command import environment
from context_bench.errors import UsageError
from context_bench.sandbox import find_isolation

INSIDE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]

SCRIPT = """
import os, pathlib, sys, time
from context_bench.evaluators import CodeExecution

evaluator = CodeExecution(sandbox=sys.argv[1], timeout=2.0)
for at in range(int(sys.argv[3])):
    scores = evaluator.score({"test_list": ["assert add(1, 2) == 3"]}, {"response": sys.argv[2]})
    assert scores == {"pass_at_1": 0.0}, scores.reason
time.sleep(0.3)
stats = (path.read_text() for path in pathlib.Path("/proc").glob("[0-9]*/stat"))
print(os.getpid(), sum(text.rpartition(")")[2].split()[0] == "Z" for text in stats))
"""


def setup_module() -> None:
    try:
        allowed = subprocess.run([*INSIDE, "true"], capture_output=True, check=False).returncode == 0
        find_isolation("auto")
    except (FileNotFoundError, UsageError):
        allowed = False
    if not allowed:
        pytest.skip("this user may not make a process namespace, or has no sandbox")


@pytest.mark.long
@pytest.mark.parametrize(
    ("sandbox", "program", "times"),
    [
        ("auto", "import os\nos._exit(3)\ndef add(a, b): pass\n", 60),
        ("auto", "import os\ndef add(a, b):\n    os.kill(os.getpid(), 9)\n", 10),
        ("none", "import os, time\nif not os.fork():\n    time.sleep(60)\ndef add(a, b):\n    return 0\n", 5),
    ],
    ids=["exits", "is killed", "leaves a child"],
)
def test_no_zombie_of_a_crashed_program(sandbox: str, program: str, times: int) -> None:
    done = subprocess.run(
        [*INSIDE, sys.executable, "-c", SCRIPT, sandbox, program, str(times)],
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.stdout == "1 0\n", done.stderr
