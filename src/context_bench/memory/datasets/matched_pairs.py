"""Matches every unanswerable question with an answerable one, so that refusing can be judged by balanced accuracy."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.memory.conversations import Question
from context_bench.text.porter import stem_word
from context_bench.text.words import split_words

__all__ = ["match_pairs"]


def match_pairs(questions: Sequence[Question]) -> None:
    """Give each unanswerable question and its partner the same `pair`.

    The partner is the free answerable question that is most alike: first by evidence in common (LoCoMo made its false
    questions from true ones about the same turns), then by words in common, then by place. Both lists are gone through
    from the best match down, so that the result does not depend on the order of the questions.

    Args:
        questions: All questions about one conversation. Where more are unanswerable than answerable, some stay without
            a partner, and do not count.
    """
    open_questions = [question for question in questions if question.get("unanswerable")]
    answerable = [question for question in questions if not question.get("unanswerable")]
    words = {id(question): set(map(stem_word, split_words(question["question"]))) for question in questions}
    evidence = {id(question): set(question.get("evidence_ids", ())) for question in questions}

    def measure(one: Question, other: Question) -> tuple[int, float]:
        shared = len(evidence[id(one)] & evidence[id(other)])
        mine, theirs = words[id(one)], words[id(other)]
        return shared, len(mine & theirs) / max(1, len(mine | theirs))

    ranked = sorted(
        ((measure(one, other), i, j) for i, one in enumerate(open_questions) for j, other in enumerate(answerable)),
        key=lambda each: (-each[0][0], -each[0][1], each[1], each[2]),
    )
    taken: set[int] = set()
    for _, i, j in ranked:
        if "pair" not in open_questions[i] and j not in taken:
            taken.add(j)
            open_questions[i]["pair"] = answerable[j]["pair"] = f"pair-{open_questions[i]['id']}"
