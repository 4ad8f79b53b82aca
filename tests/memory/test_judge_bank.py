"""The bank: what is in it, and that a judge who is too kind, too strict or right is told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from context_bench.memory.judge import KINDS, RULES, MemoryJudge, MistakeRate, check_memory_judge, find_rule, read_bank
from servers import Reply, Request, Server, completion


def test_the_bank_has_every_kind_and_most_rules() -> None:
    examples = list(read_bank())
    kinds = Counter(example["dataset"] for example in examples)
    assert set(kinds) == set(KINDS)
    assert kinds["right"] == kinds["paraphrased"] == kinds["vague-wrong"] == kinds["specific-wrong"] == 32
    assert kinds["outdated"] >= 12
    assert kinds["refusing"] >= 25
    assert {find_rule(example["memory"]) for example in examples} == set(RULES) - {"rubric", "exact"}
    answers = [(example["id"], example["meta"]["given"]) for example in examples]
    assert len(set(answers)) == len(answers)


def test_every_updated_question_has_an_outdated_answer() -> None:
    outdated = {example["id"] for example in read_bank() if example["dataset"] == "outdated"}
    assert {example["id"] for example in read_bank() if example["memory"]["rule"] == "update"} <= outdated


def _check(decide: Callable[[Request], Reply]) -> dict[tuple[str, ...], MistakeRate]:
    with Server(decide) as server:
        rates = check_memory_judge(MemoryJudge(server.url, "m"), max_workers=4)
    return {rate.kinds: rate for rate in rates}


GOOD, BAD = tuple(kind for kind in KINDS if KINDS[kind]), tuple(kind for kind in KINDS if not KINDS[kind])


def test_a_judge_that_accepts_everything_is_caught() -> None:
    rates = _check(lambda _: completion("yes"))
    assert rates[GOOD].mistakes == 0
    assert rates[BAD].mistakes == rates[BAD].n > 90
    assert rates["vague-wrong",].mistake == "false accept"
    interval = rates["vague-wrong",].interval
    assert interval is not None
    assert (interval.value, interval.n) == (1.0, 32)
    assert 0.85 < interval.low < 0.95


def test_a_judge_that_rejects_everything_is_caught() -> None:
    rates = _check(lambda _: completion("no"))
    assert rates[GOOD].mistakes == rates[GOOD].n == 64
    assert rates[GOOD].mistake == "false reject"
    assert rates[BAD].mistakes == 0


def test_a_judge_that_knows_makes_no_mistake_and_silence_is_not_counted() -> None:
    verdicts = {
        (example["question"], example["meta"]["given"]): KINDS[example["dataset"]]
        for example in read_bank()
        if example["dataset"] != "outdated"
    }

    def decide(request: Request) -> Reply:
        text = request.json["messages"][1]["content"]
        question, answer = (
            re.findall(rf"\[{name} \w+ begins\]\n(.*)\n\[{name}", text)[0] for name in ("question", "answer")
        )
        known = verdicts.get((question, answer))
        return completion("hm" if known is None else "yes" if known else "no")

    rates = _check(decide)
    assert rates[GOOD].mistakes == rates[BAD].mistakes == 0
    assert rates["outdated",].n == 0
    assert rates["outdated",].unscored > 12
    assert rates["outdated",].interval is None
