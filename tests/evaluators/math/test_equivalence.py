"""MathEquivalence as a whole: documented samples, real golds, hangs, threads, and life without math-verify."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_bench.evaluators import MathEquivalence
from timing import depends_on_time

DATA = os.environ.get("CONTEXT_BENCH_DATA")
FORMS = (
    "{gold}",
    "#### {gold}",
    "The answer is ${gold}.",
    "\\boxed{{{gold}}}",
    "So she makes {gold} dollars every day.",
    "Some steps: 1 + 1 = 2.\n\n**Final Answer:** {gold}",
    "We get \\[ x = {gold} \\]",
    "<think>Is it 3? No.</think>{gold}",
)


def score(gold: object, reply: object, **limits: float) -> float:
    return MathEquivalence(**limits).score({"answer": gold}, {"response": reply})["math_equiv"]  # type: ignore[arg-type]


def test_the_documented_samples() -> None:
    evaluator = MathEquivalence()
    assert evaluator.score({"answer": r"\frac{1}{2}"}, {"response": "0.5"}) == {"math_equiv": 1.0}
    assert evaluator.score({"answer": "42"}, {"response": r"The answer is $\boxed{42}$."}) == {"math_equiv": 1.0}


def test_nothing_to_judge_and_nothing_said() -> None:
    unscored = MathEquivalence().score({"question": "?"}, {"response": "5"})
    assert unscored == {}
    assert getattr(unscored, "reason", None) == "no gold answer"
    for processed in ({}, {"response": None}, {"response": ""}, {"response": "  \n"}):
        assert MathEquivalence().score({"answer": "5"}, processed) == {"math_equiv": 0.0}


def test_any_accepted_answer_will_do_and_a_gold_may_be_a_number() -> None:
    evaluator = MathEquivalence()
    assert evaluator.score({"answers": ["3", "4"]}, {"response": "4"}) == {"math_equiv": 1.0}
    assert evaluator.score({"answers": ["3", "4"]}, {"response": "5"}) == {"math_equiv": 0.0}
    assert evaluator.score({"answer": 18}, {"response": "It is 18."}) == {"math_equiv": 1.0}
    assert evaluator.score({"answer": 0}, {"response": "It is 0."}) == {"math_equiv": 1.0}
    assert evaluator.score({"answers": [["1", "2"]]}, {"response": r"\boxed{2, 1}"}) == {"math_equiv": 1.0}


def golds() -> Iterator[str]:
    folder = Path(str(DATA))
    with (folder / "gsm8k" / "test.jsonl").open(encoding="utf-8") as lines:
        yield from (json.loads(line)["answer"].rpartition("####")[2].strip() for line in lines)
    for language in ("en", "de", "ja"):
        with (folder / "mgsm" / f"mgsm_{language}.tsv").open(encoding="utf-8") as lines:
            yield from (line.rstrip("\n").rpartition("\t")[2] for line in lines)


@pytest.mark.long
@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_every_gold_of_gsm8k_and_mgsm_in_every_form() -> None:
    count = 0
    for gold in golds():
        count += 1
        digits = gold.replace(",", "")
        above = str(int(digits) + 1)
        for form in FORMS:
            for written in {gold, digits}:
                assert score(gold, form.format(gold=written)) == 1.0, (gold, form)
            assert score(gold, form.format(gold=above)) == 0.0, (gold, form)
    assert count == 1319 + 3 * 250


@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_every_worked_solution_of_gsm8k_passes_as_it_stands() -> None:
    with (Path(str(DATA)) / "gsm8k" / "test.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            solution = json.loads(line)["answer"]
            assert score(solution, solution) == 1.0


@pytest.mark.long
@depends_on_time("a new worker has to import SymPy within the seconds that one answer may take")
@pytest.mark.parametrize("answer", ["9^{9^{9^{9}}}", "(10^8)!"])
def test_a_hang_costs_that_example_alone(answer: str) -> None:
    pytest.importorskip("math_verify")
    evaluator = MathEquivalence(seconds=4)
    evaluator.score({"answer": "x^2-1"}, {"response": r"\boxed{(x-1)(x+1)}"})  # the worker is up
    started = time.monotonic()
    stuck = evaluator.score({"answer": "5"}, {"response": rf"\boxed{{{answer}}}"})
    assert stuck == {"math_equiv": 0.0}
    assert stuck.details["undecided"]  # type: ignore[attr-defined]
    assert time.monotonic() - started < 30
    assert evaluator.score({"answer": "x^2-1"}, {"response": r"\boxed{(x-1)(x+1)}"}) == {"math_equiv": 1.0}


def test_threads_may_share_one_evaluator() -> None:
    pytest.importorskip("math_verify")
    evaluator = MathEquivalence()
    found: dict[int, float] = {}

    def judge(n: int) -> None:
        reply = rf"\boxed{{(x-{n})(x+{n})}}"
        found[n] = evaluator.score({"answer": f"x^2-{n * n + n % 2}"}, {"response": reply})["math_equiv"]

    threads = [threading.Thread(target=judge, args=(n,)) for n in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: float(n % 2 == 0) for n in range(1, 13)}


def test_without_math_verify_numbers_work_and_algebra_says_what_is_missing() -> None:
    code = (
        "import sys; sys.modules['math_verify'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'math_verify' else real(name, *rest)\n"
        "from context_bench.evaluators import MathEquivalence\n"
        "one = MathEquivalence()\n"
        "print(one.score({'answer': '18'}, {'response': 'The answer is $18.'}))\n"
        "print(one.score({'answer': '(1,2)'}, {'response': '(2,1)'}))\n"
        "open_ = one.score({'answer': 'x^2-1'}, {'response': '(x-1)(x+1)'})\n"
        "print(open_, open_.reason, open_.transient)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    first, second, third = done.stdout.splitlines()
    assert first == "{'math_equiv': 1.0}"
    assert second == "{'math_equiv': 0.0}"
    assert third.startswith("{} ")
    assert "ctxbench[math]" in third
    assert third.endswith("True")
