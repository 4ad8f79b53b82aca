"""Right and wrong programs, in every form of reply; real tasks where CONTEXT_BENCH_DATA has them.

All of HumanEval runs, each task in one form, and a sample of MBPP; CONTEXT_BENCH_FULL=1 runs everything.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.evaluators import CodeExecution
from context_bench.results import Scores
from context_bench.sandbox import read_task
from sandboxed import needs_sandbox

FULL = bool(os.environ.get("CONTEXT_BENCH_FULL"))
ADD = {
    "context": "def add(a, b):\n",
    "test": "def check(c):\n    assert c(1,2)==3\n",
    "entry_point": "add",
}


def score(example: dict[str, Any], response: Any, **parameters: Any) -> Scores:
    scores = CodeExecution(**parameters).score(example, {"response": response})
    assert isinstance(scores, Scores)
    return scores


@needs_sandbox
def test_the_sample_of_the_specification() -> None:
    ev = CodeExecution(timeout=10.0)
    assert ev.score(ADD, {"response": "    return a + b\n"}) == {"pass_at_1": 1.0}


@pytest.mark.parametrize("sandbox", ["none", pytest.param("auto", marks=needs_sandbox)])
@pytest.mark.parametrize(
    ("response", "passes"),
    [
        ("    return a + b\n", True),
        ("def add(a, b):\n    return a + b\n", True),
        ("Sure!\n\n```python\ndef add(a, b):\n    return a + b\n```\n", True),
        ("    return a - b\n", False),
        ("I do not know.", False),
    ],
)
def test_forms_of_a_reply(response: str, passes: bool, sandbox: str) -> None:
    assert score(ADD, response, sandbox=sandbox) == {"pass_at_1": float(passes)}


@pytest.mark.parametrize(
    ("response", "passes"),
    [
        ("<think>\ndef add(a, b):\n    return a + b\n</think>\nAdd them.", False),
        ("<think>\n```python\ndef add(a, b):\n    return a + b\n```\n</think>", False),
        ("<think>easy</think>\n    return a + b\n", True),
        ("<think>return a - b</think>\n```python\ndef add(a, b):\n    return a + b\n```", True),
    ],
)
def test_code_within_the_reasoning_is_no_answer(response: str, passes: bool) -> None:
    assert score(ADD, response, sandbox="none") == {"pass_at_1": float(passes)}


@pytest.mark.parametrize("response", [None, "", " \n"])
def test_no_code_is_a_failure_with_a_reason(response: Any) -> None:
    scores = score(ADD, response)
    assert scores == {"pass_at_1": 0.0}
    assert scores.details == {"reason": "no code in the reply"}
    assert CodeExecution().score(ADD, {}) == {"pass_at_1": 0.0}


def test_nothing_to_judge() -> None:
    assert "no tests" in str(score({"context": "x"}, "def f(): pass").reason)
    assert "not Python" in str(score({"test": "def check(c:", "entry_point": "f"}, "x").reason)
    unsupported = score(
        {"test": "import re\nassert f(re) == 1\n", "entry_point": "f"}, "def f(x): return 1", sandbox="none"
    )
    assert (unsupported, unsupported.reason) == ({}, "a module cannot be handed to the program")


@pytest.mark.parametrize(
    ("program", "test"),
    [
        ("Pair = property\ndef chain(pairs): return 0", "assert chain([Pair(5, 24), Pair(15, 25)]) == 1"),
        ("Pair = memoryview\ndef chain(pair): return 0", "assert chain(Pair(b'5')) == 1"),
        ("def chain(pair): return 0\ndef kind(): return object", "assert chain(kind()()) == 1"),
        (
            "import collections\ndef chain(pair): return 0\ndef table(): return collections.defaultdict(object)",
            "assert chain(table()['x']) == 1",
        ),
    ],
    ids=["property", "memoryview", "a type that is returned", "the type of a default"],
)
def test_a_type_that_the_program_chose_leaves_it_no_way_out(program: str, test: str) -> None:
    """The tests make an object of it that cannot be handed over: that is the program's fault, not theirs."""
    assert score({"test_list": [test]}, program, sandbox="none") == {"pass_at_1": 0.0}


def test_without_a_sandbox_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from context_bench.sandbox import isolation

    isolation._bubblewrap.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        scores = score(ADD, "    return a + b\n")
    finally:
        isolation._bubblewrap.cache_clear()
    assert scores == {}
    assert "install bubblewrap" in str(scores.reason)
    assert "--unsafe-code" in str(scores.reason)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_timeouts_that_are_none(timeout: float) -> None:
    with pytest.raises(UsageError, match="timeout"):
        CodeExecution(timeout=timeout)


def test_a_sandbox_that_nobody_knows() -> None:
    with pytest.raises(UsageError, match="auto, bubblewrap, none"):
        CodeExecution(sandbox="docker")


def test_it_belongs_into_threads_and_names_its_version() -> None:
    ev = CodeExecution(timeout=3.0, sandbox="none")
    assert (ev.slow, ev.name, ev.version, ev.score_fields) == (True, "code-execution", 3, ("pass_at_1",))
    assert (ev.timeout, ev.sandbox) == (3.0, "none")


BENIGN: dict[str, tuple[str, str]] = {
    "recursion": ("def f(n):\n    return 1 if n < 2 else n * f(n - 1)", "assert f(20) == 2432902008176640000"),
    "deep recursion": ("def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)", "assert f(900) == 900"),
    "generator": ("def f(n):\n    yield from range(n)", "assert list(f(3)) == [0, 1, 2]"),
    "endless generator": (
        "import itertools\ndef f():\n    return itertools.count()",
        "import itertools\nassert list(itertools.islice(f(), 3)) == [0, 1, 2]",
    ),
    "map and zip": ("def f(x):\n    return zip(map(str, x), x)", "assert dict(f([1, 2])) == {'1': 1, '2': 2}"),
    "class": (
        "class Stack:\n    def __init__(self): self.items = []\n"
        "    def push(self, x): self.items.append(x); return self",
        "s = Stack()\ns.push(1).push(2)\nassert s.items == [1, 2]",
    ),
    "dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(x): return P(x)",
        "assert f(3).x == 3\nassert str(f(3)) == 'P(x=3)'",
    ),
    "linked objects": (
        "class Node:\n    def __init__(self, v): self.v, self.next = v, None\n"
        "def total(n): return 0 if n is None else n.v + total(n.next)",
        "a, b = Node(1), Node(2)\na.next = b\nassert total(a) == 3\nassert a.next == b and a.next.v == 2",
    ),
    "named tuple": (
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int\ndef f(): return P(1, 2)",
        "assert f() == (1, 2)\nassert f().y == 2",
    ),
    "math": ("import math\ndef f(x):\n    return math.sqrt(x)", "assert abs(f(2) - 1.4142135) < 1e-6"),
    "regular expressions": (
        "import re\ndef f(s):\n    return re.search('a+', s)",
        "assert f('baa').group() == 'aa'\nassert not f('b')",
    ),
    "counter": (
        "from collections import Counter\ndef f(s):\n    return Counter(s)",
        "assert f('aab') == {'a': 2, 'b': 1}",
    ),
    "default dict": (
        "from collections import defaultdict\ndef f(s):\n    d = defaultdict(list)\n    d[s].append(1)\n    return d",
        "assert f('a') == {'a': [1]}",
    ),
    "ordered dict": (
        "from collections import OrderedDict\ndef f():\n    return OrderedDict(a=1)",
        "from collections import OrderedDict\nassert f() == OrderedDict(a=1)",
    ),
    "itertools": (
        "import itertools\ndef f(x):\n    return itertools.permutations(x)",
        "assert sorted(f([1, 2])) == [(1, 2), (2, 1)]",
    ),
    "typing": (
        "from typing import List, Optional\ndef f(x: List[int]) -> Optional[int]:\n    return max(x)",
        "assert f([1, 2]) == 2",
    ),
    "big integers": ("def f(n):\n    return 2 ** n", "assert f(5000) == 1 << 5000"),
    "floats": (
        "def f():\n    return [0.1 + 0.2, float('inf'), -0.0]",
        "assert f() == [0.30000000000000004, float('inf'), 0.0]",
    ),
    "sets": ("def f(a, b):\n    return a & b", "assert f({1, 2}, {2, 3}) == {2}"),
    "decimals and fractions": (
        "from decimal import Decimal\nfrom fractions import Fraction\n"
        "def f():\n    return Decimal('0.1'), Fraction(1, 3)",
        "from decimal import Decimal\nfrom fractions import Fraction\nassert f() == (Decimal('0.1'), Fraction(1, 3))",
    ),
    "dates": (
        "import datetime\ndef f(y):\n    return datetime.date(y, 1, 1)",
        "import datetime\nassert f(2024) == datetime.date(2024, 1, 1)",
    ),
    "printing": ("print('hello')\ndef f(x):\n    print('x' * 1000)\n    return x", "assert f(1) == 1"),
    "temporary file": (
        "import tempfile\ndef f(s):\n    with tempfile.TemporaryFile('w+') as t:\n"
        "        t.write(s)\n        t.seek(0)\n        return t.read()",
        "assert f('text') == 'text'",
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor\ndef f(x):\n"
        "    with ThreadPoolExecutor(4) as pool:\n        return list(pool.map(abs, x))",
        "assert f([-1, 2]) == [1, 2]",
    ),
    "twenty threads at once": (
        "import threading\ndef f(n):\n    wait, done = threading.Barrier(n, timeout=5), []\n"
        "    def work():\n        wait.wait()\n        done.append(len(bytes(1 << 20)))\n"
        "    threads = [threading.Thread(target=work) for _ in range(n)]\n"
        "    for t in threads: t.start()\n    for t in threads: t.join()\n    return len(done)",
        "assert f(20) == 20",
    ),
    "asyncio": (
        "import asyncio\nasync def g():\n    return 1\ndef f():\n    return asyncio.run(g())",
        "assert f() == 1",
    ),
    "pool of processes": (
        "from multiprocessing import Pool\ndef double(x):\n    return 2 * x\n"
        "def f(x):\n    with Pool() as pool:\n        return pool.map(double, x)",
        "assert f([1, 2]) == [2, 4]",
    ),
    "executor of processes": (
        "from concurrent.futures import ProcessPoolExecutor\ndef double(x):\n    return 2 * x\n"
        "def f(x):\n    with ProcessPoolExecutor(2) as pool:\n        return list(pool.map(double, x))",
        "assert f([1, 2]) == [2, 4]",
    ),
    "queue and lock between processes": (
        "from multiprocessing import Lock, Process, Queue\n"
        "def work(queue, lock, x):\n    with lock: queue.put(x * x)\n"
        "def f(x):\n    queue, lock = Queue(), Lock()\n"
        "    started = [Process(target=work, args=(queue, lock, y)) for y in x]\n"
        "    for one in started: one.start()\n    found = sorted(queue.get(timeout=5) for _ in x)\n"
        "    for one in started: one.join()\n    return found",
        "assert f([1, 2, 3]) == [1, 4, 9]",
    ),
    "values and arrays between processes": (
        "from multiprocessing import Array, Process, Value\n"
        "def work(total, cells):\n    with total.get_lock(): total.value += sum(cells)\n    cells[0] = 7\n"
        "def f():\n    total, cells = Value('i', 1), Array('i', [1, 2])\n"
        "    one = Process(target=work, args=(total, cells))\n    one.start()\n    one.join()\n"
        "    return total.value, list(cells)",
        "assert f() == (4, [7, 2])",
    ),
    "shared memory": (
        "from multiprocessing import Process\nfrom multiprocessing.shared_memory import SharedMemory\n"
        "def work(name):\n    there = SharedMemory(name)\n    there.buf[:2] = b'ok'\n    there.close()\n"
        "def f():\n    here = SharedMemory(create=True, size=1 << 20)\n"
        "    one = Process(target=work, args=(here.name,))\n    one.start()\n    one.join()\n"
        "    try: return bytes(here.buf[:2])\n    finally:\n        here.close()\n"
        "        here.unlink()",
        "assert f() == b'ok'",
    ),
    "another Python": (
        "import subprocess, sys\ndef f(x):\n"
        "    command = [sys.executable, '-S', '-c', f'print({x} + 1)']\n"
        "    return subprocess.run(command, capture_output=True, text=True).stdout",
        "assert f(1) == '2\\n'",
    ),
    "another Python in asyncio": (
        "import asyncio, sys\nasync def g():\n"
        "    command = [sys.executable, '-S', '-c', 'print(1)']\n"
        "    one = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)\n"
        "    return (await one.communicate())[0]\ndef f():\n    return asyncio.run(g())",
        "assert f() == b'1\\n'",
    ),
    "server and client in asyncio": (
        "import asyncio\nasync def serve(reader, writer):\n"
        "    writer.write((await reader.readline()).upper())\n    await writer.drain()\n    writer.close()\n"
        "async def g(text):\n    server = await asyncio.start_server(serve, '127.0.0.1', 0)\n"
        "    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())\n"
        "    writer.write(text)\n    answer = await reader.readline()\n    writer.close()\n    server.close()\n"
        "    return answer\ndef f(text):\n    return asyncio.run(g(text))",
        "assert f(b'hello\\n') == b'HELLO\\n'",
    ),
    "web server": (
        "import http.server, threading, urllib.request\nclass H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n        self.send_response(200)\n        self.end_headers()\n"
        "        self.wfile.write(b'hello')\n"
        "def f():\n    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\n"
        "    threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "    return urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/').read()",
        "assert f() == b'hello'",
    ),
    "a call back from C": (
        "import ctypes\ndef f(x):\n    cells = (ctypes.c_int * len(x))(*x)\n"
        "    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))\n"
        "    ctypes.CDLL(None).qsort(cells, len(x), 4, kind(lambda a, b: a[0] - b[0]))\n    return list(cells)",
        "assert f([3, 1, 2]) == [1, 2, 3]",
    ),
    "database": (
        "import sqlite3\ndef f():\n    with sqlite3.connect('/tmp/data.db') as db:\n"
        "        db.execute('create table t (x)')\n        db.execute('insert into t values (1)')\n"
        "        return db.execute('select x from t').fetchall()",
        "assert f() == [(1,)]",
    ),
    "time zones of the world": (
        "from datetime import datetime\nfrom zoneinfo import ZoneInfo\ndef f(day, zone):\n"
        "    return datetime(2024, *day, 12, tzinfo=ZoneInfo(zone)).utcoffset().total_seconds() / 3600",
        "assert f((1, 1), 'Europe/Berlin') == 1\nassert f((7, 1), 'Europe/Berlin') == 2",
    ),
    "aware times": (
        "from datetime import datetime, timezone\nfrom zoneinfo import ZoneInfo\n"
        "def f(moment, zone):\n    return moment.astimezone(ZoneInfo(zone))",
        "from datetime import datetime, timedelta, timezone\nfrom zoneinfo import ZoneInfo\n"
        "noon = datetime(2024, 7, 1, 12, tzinfo=timezone.utc)\nthere = f(noon, 'America/New_York')\n"
        "assert there == noon and there.hour == 8 and there.tzinfo == ZoneInfo('America/New_York')\n"
        "assert f(there, 'Asia/Tokyo').isoformat() == '2024-07-01T21:00:00+09:00'",
    ),
    "fixed time zones": (
        "from datetime import datetime, timedelta, timezone\n"
        "def f(text):\n    return datetime.fromisoformat(text).astimezone(timezone(timedelta(hours=2), 'there'))",
        "from datetime import datetime, timezone\n"
        "assert f('2024-07-01T12:00:00+00:00') == datetime(2024, 7, 1, 12, tzinfo=timezone.utc)\n"
        "assert f('2024-07-01T12:00:00+00:00').tzname() == 'there'",
    ),
    "sorting in place": ("def f(x):\n    x.sort()", "x = [2, 1]\nassert f(x) is None and x == [1, 2]"),
    "changes deep inside": ("def f(x):\n    x[0]['k'].append(1)", "x = [{'k': []}]\nf(x)\nassert x == [{'k': [1]}]"),
    "function as argument": (
        "def f(g, x):\n    return [g(y) for y in x]",
        "assert f(lambda y: y * 2, [1, 2]) == [2, 4]",
    ),
    "iterator as argument": (
        "def f(x):\n    return sum(x)",
        "assert f(iter([1, 2])) == 3\nassert f(y for y in (1, 2)) == 3",
    ),
    "type as argument": (
        "def f(x, t):\n    return [y for y in x if isinstance(y, t)]",
        "assert f([1, 'a'], str) == ['a']",
    ),
    "object of the tests as argument": (
        "def f(p):\n    p.x += 1\n    return p.twice()",
        "class P:\n    x = 1\n    def twice(self): return self.x * 2\np = P()\nassert f(p) == 4 and p.x == 2",
    ),
    "keyword arguments": ("def f(a, *, b=1, **c):\n    return a + b + sum(c.values())", "assert f(1, b=2, c=3) == 6"),
    "function that returns a function": ("def f(n):\n    return lambda x: x + n", "assert f(1)(2) == 3"),
    "expected exception": (
        "class Bad(ValueError): pass\ndef f(x):\n    raise Bad('bad')",
        "try:\n    f(1)\nexcept ValueError as e:\n    assert str(e) == 'bad'\nelse:\n    assert False",
    ),
    "caught exit": (
        "import sys\ndef f():\n    try: sys.exit(1)\n    except SystemExit as e: return e.code",
        "assert f() == 1",
    ),
    "main guard": ("def f():\n    return 1\nif __name__ == '__main__':\n    raise ValueError", "assert f() == 1"),
    "unicode": ("def f(s):\n    return s[::-1]", "assert f('é🍕') == '🍕é'"),
    "bytes": ("def f(b):\n    return bytearray(b) + b'!'", "assert f(b'\\xff') == b'\\xff!'"),
    "no value": ("def f():\n    pass", "assert f() is None"),
    "name of a builtin": ("def sum(a, b):\n    return a * b", "assert sum(2, 3) == 6"),
    "global state": ("n = 0\ndef f():\n    global n\n    n += 1\n    return n", "assert [f(), f(), f()] == [1, 2, 3]"),
    "large result": ("def f(n):\n    return list(range(n))", "assert len(f(200_000)) == 200_000"),
}


@needs_sandbox
@pytest.mark.parametrize("name", BENIGN)
def test_honest_programs_pass(name: str) -> None:
    program, test = BENIGN[name]
    entry = {"class": "Stack", "linked objects": "total"}.get(name, "sum" if "builtin" in name else "f")
    scores = score({"test": test, "entry_point": entry}, program)
    assert scores == {"pass_at_1": 1.0}, scores.details


@needs_sandbox
def test_many_threads_at_once() -> None:
    ev = CodeExecution(timeout=30.0)
    before = len(os.listdir("/proc/self/fd"))
    bodies = ["    return a + b\n", "    return a - b\n"] * 12
    with ThreadPoolExecutor(8) as threads:
        scores = list(threads.map(lambda body: ev.score(ADD, {"response": body})["pass_at_1"], bodies))
    assert scores == [1.0, 0.0] * 12
    assert len(os.listdir("/proc/self/fd")) == before


def _data(name: str) -> Path:
    root = os.environ.get("CONTEXT_BENCH_DATA")
    if not root or not (Path(root) / name).exists():
        pytest.skip(f"set CONTEXT_BENCH_DATA to a directory that has {name}")
    return Path(root) / name


Case = tuple[str, dict[str, Any], str, float]


def _spread(cases: list[Case], step: int) -> list[Case]:
    return cases if FULL else cases[::step]


def _human_eval() -> Iterator[Case]:
    with gzip.open(_data("humaneval/HumanEval.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            example = {"context": record["prompt"], "test": record["test"], "entry_point": record["entry_point"]}
            whole = record["prompt"] + record["canonical_solution"]
            yield record["task_id"], example, record["canonical_solution"], 1.0
            yield record["task_id"], example, whole, 1.0
            yield record["task_id"], example, f"Here you are:\n\n```python\n{whole}\n```\n\nIt works.", 1.0
            yield record["task_id"], example, "    return None\n", 0.0


def _mbpp() -> Iterator[Case]:
    lines = _data("mbpp/mbpp.jsonl").read_text("utf-8").splitlines()
    for record in [*map(json.loads, lines), *json.loads(_data("mbpp/sanitized-mbpp.json").read_text("utf-8"))]:
        keys = ("test_list", "test_imports", "test_setup_code")
        example = {"context": record.get("text"), **{key: record.get(key) for key in keys}}
        task = read_task(example)
        assert task is not None
        classes = "".join(f"class {name}:\n    def __init__(self, *a): pass\n" for name in task.names[1:])
        yield record["task_id"], example, record["code"], 1.0
        yield record["task_id"], example, f"Here you are:\n```python\n{record['code']}\n```\nIt works.", 1.0
        yield record["task_id"], example, f"{classes}def {task.entry}(*a):\n    return None\n", 0.0


def _wrong(cases: list[Case]) -> list[str]:
    ev = CodeExecution(timeout=30.0)

    def check(case: Case) -> str | None:
        name, example, response, expected = case
        scores = ev.score(example, {"response": response})
        return None if scores == {"pass_at_1": expected} else f"{name}: {dict(scores)} {getattr(scores, 'details', '')}"

    with ThreadPoolExecutor(4) as threads:
        return [said for said in threads.map(check, cases) if said]


@needs_sandbox
def test_human_eval() -> None:
    cases = list(_human_eval())
    assert len(cases) == 164 * 4
    if not FULL:  # each task in one form, in turn
        cases = [cases[4 * task + task % 4] for task in range(164)]
    assert _wrong(cases) == []


@needs_sandbox
def test_mbpp() -> None:
    cases = list(_mbpp())
    assert len(cases) == (974 + 427) * 3
    assert _wrong(_spread(cases, 71)) == []
