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
from context_bench.sandbox import find_isolation, read_task


def _missing() -> str:
    try:
        find_isolation("auto")
    except UsageError as error:
        return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(bool(_missing()), reason=_missing())
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


@pytest.mark.parametrize("response", [None, "", " \n"])
def test_no_code_is_a_failure_with_a_reason(response: Any) -> None:
    scores = score(ADD, response)
    assert scores == {"pass_at_1": 0.0}
    assert scores.details == {"reason": "no code in the reply"}
    assert CodeExecution().score(ADD, {}) == {"pass_at_1": 0.0}


def test_nothing_to_judge() -> None:
    assert "no tests" in str(score({"context": "x"}, "def f(): pass").reason)
    assert "no Python" in str(score({"test": "def check(c:", "entry_point": "f"}, "x").reason)
    unsupported = score(
        {"test": "import re\nassert f(re) == 1\n", "entry_point": "f"}, "def f(x): return 1", sandbox="none"
    )
    assert (unsupported, unsupported.reason) == ({}, "a module cannot be handed to the program")


def test_without_a_sandbox_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from context_bench.sandbox import find

    find._bubblewrap.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        scores = score(ADD, "    return a + b\n")
    finally:
        find._bubblewrap.cache_clear()
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
    assert (ev.slow, ev.name, ev.version, ev.score_fields) == (True, "code-execution", 1, ("pass_at_1",))
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
