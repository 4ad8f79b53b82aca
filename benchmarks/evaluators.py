"""Microseconds per call of our evaluators, beside reference scorers where those are installed.

    python -m benchmarks.evaluators

Ours and the peer take turns in one process, so that a busy machine slows both alike; the ratio is the
median over the rounds. Peers: rouge-score, math-verify, and the SQuAD script written out below.
"""

from __future__ import annotations

import importlib
import logging
import re
import statistics
import string
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

ROUNDS = 15
SECONDS_A_TURN = 0.02

Call = Callable[[], object]

REPLY = (
    "Janet sells 16 - 3 - 4 = <<16-3-4=9>>9 duck eggs a day.\nShe makes 9 * 2 = $18 every day at the market.\n#### 18"
)
SUMMARY = "The committee agreed to move the launch to spring, because the tests of the new engine were late. " * 12
REFERENCE = (
    "The launch was moved to spring by the committee since engine tests had been late and costs had grown. " * 10
)


def squad_script(prediction: str, gold: str) -> tuple[float, float]:
    """Exact match and F1 by SQuAD v1.1, as a script would do it."""

    punctuation = set(string.punctuation)

    def words(text: str) -> list[str]:
        bare = "".join(char for char in text.lower() if char not in punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", bare).split()

    given, wanted = words(prediction), words(gold)
    common = sum((Counter(given) & Counter(wanted)).values())
    return float(given == wanted), 2 * common / (len(given) + len(wanted)) if common else 0.0


def evaluator(name: str, **parameters: Any) -> Any:
    """One of our evaluators by class name, or None when it is not there."""
    try:
        return getattr(importlib.import_module("context_bench.evaluators"), name)(**parameters)
    except (ImportError, AttributeError):
        return None


def scoring(name: str, example: dict[str, Any], response: str) -> Call | None:
    """A call of one of our evaluators on one example."""
    made = evaluator(name)
    return None if made is None else lambda: made.score(example, {"response": response})


def rouge_score() -> Call | None:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        return None
    scorer = RougeScorer(["rougeL"])
    return lambda: scorer.score(REFERENCE, SUMMARY)


def math_verify(gold: str, reply: str) -> Call | None:
    try:
        from math_verify import parse, verify
    except ImportError:
        return None
    logging.disable(logging.WARNING)

    def call() -> bool:
        parsed = [parse(text, parsing_timeout=None) for text in (f"${gold}$", reply)]
        return bool(verify(*parsed, timeout_seconds=None))

    return call


def contests() -> list[tuple[str, Call | None, str, Call | None]]:
    """What is measured: a label, ours, the name of the peer, the peer."""
    answer = "It was in the Hall of Mirrors, on 28 June 1919."
    factored = r"Therefore \boxed{(x-1)(x+1)}."
    ifeval = {
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_sentences"],
        "kwargs": [{}, {"num_sentences": 5, "relation": "at least"}],
    }
    return [
        ("AnswerQuality", scoring("AnswerQuality", {"answer": "28 June 1919"}, answer),
         "SQuAD script", lambda: squad_script(answer, "28 June 1919")),
        ("SummarizationQuality, 200 words", scoring("SummarizationQuality", {"answer": REFERENCE}, SUMMARY),
         "rouge-score, ROUGE-L", rouge_score()),
        ("MathEquivalence, a number", scoring("MathEquivalence", {"answer": "18"}, REPLY),
         "math-verify", math_verify("18", REPLY)),
        ("MathEquivalence, algebra", scoring("MathEquivalence", {"answer": "x^2-1"}, factored),
         "math-verify", math_verify("x^2-1", factored)),
        ("IFEvalOfficial, 2 instructions", scoring("IFEvalOfficial", ifeval, SUMMARY), "", None),
        ("ContextRecall", _context_recall(), "", None),
    ]  # fmt: skip


def _context_recall() -> Call | None:
    made = evaluator("ContextRecall")
    example = {"context": SUMMARY, "answer": "to spring", "evidence": ["the tests of the new engine were late"]}
    return None if made is None else lambda: made.score(example, {"context": SUMMARY})


def microseconds(call: Call) -> float:
    """One turn: as many calls as fit."""
    calls, started = 0, time.perf_counter()
    while (spent := time.perf_counter() - started) < SECONDS_A_TURN or not calls:
        call()
        calls += 1
    return spent / calls * 1e6


def measure(ours: Call, peer: Call | None) -> tuple[float, float | None, float | None]:
    """Median microseconds of ours and of the peer, and the median of their ratios; in turns."""
    for call in filter(None, (ours, peer)):
        call()
    turns = [(microseconds(ours), microseconds(peer) if peer else None) for _ in range(ROUNDS)]
    own = statistics.median(one for one, _ in turns)
    pairs = [(one, other) for one, other in turns if other is not None]
    if not pairs:
        return own, None, None
    return own, statistics.median(other for _, other in pairs), statistics.median(other / one for one, other in pairs)


def main() -> None:
    """Print one line for each contest."""
    print(f"{'evaluator':34} {'us/call':>9}   {'peer':22} {'us/call':>9} {'times as fast':>14}")
    for label, ours, peer_name, peer in contests():
        if ours is None:
            print(f"{label:34} not there")
            continue
        own, other, ratio = measure(ours, peer)
        if other is None:
            print(f"{label:34} {own:9.0f}   {peer_name + (' not installed' if peer_name else '')}")
        else:
            print(f"{label:34} {own:9.0f}   {peer_name:22} {other:9.0f} {ratio:14.1f}")


if __name__ == "__main__":
    main()
