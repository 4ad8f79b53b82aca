"""A language model as judge of answers from memory: right or wrong, by the rules of the question's type.

The usual judge of memory products says yes to six of ten vague wrong answers. This one is told to be strict, and
`check_memory_judge` measures how often it is wrong all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from context_bench.errors import RequestFailed, describe
from context_bench.evaluators.judge.judge_prompt import Case
from context_bench.evaluators.judge.judge_reply import drop_thoughts
from context_bench.evaluators.llm_judge import DEFAULT_MODEL, LLMJudge
from context_bench.http import Secret
from context_bench.memory.judge_rules import (
    find_rule,
    read_prompts,
    rules_digest,
    write_item_messages,
    write_rule_messages,
)
from context_bench.memory.scoring.question_record import read_question
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text
from context_bench.wire.model_reply import NotAReply, read_chat_completion

__all__ = ["MemoryJudge", "read_yes_no"]

_KEPT = 2_000
"""Characters of a reply that a row keeps."""
_EDGES = " \t\r\n.,:;!*_`\"'()[]"
_MARKED = re.compile(r"(?:verdict|answer|label|correct)\W*(yes|no)", re.IGNORECASE)
_FIRST = re.compile(r"\A(yes|no)\b")
_ITEM_SCORES = {"0": 0.0, "0.0": 0.0, "0.5": 0.5, ".5": 0.5, "1": 1.0, "1.0": 1.0}


def read_yes_no(reply: str) -> bool:
    """Read a verdict: the whole reply, its last line, or one that is marked as such.

    Raises:
        ValueError: It is neither yes nor no.
    """
    lines = [line.strip(_EDGES).lower() for line in reply.splitlines() if line.strip(_EDGES)]
    for text in [*lines[:1], *lines[-1:]]:
        if text in ("yes", "no"):
            return text == "yes"
    marked = {found.lower() for found in _MARKED.findall(reply)} or set(_FIRST.findall(" ".join(lines)))
    if len(marked) != 1:
        raise ValueError("it is neither yes nor no")
    return marked == {"yes"}


class MemoryJudge(LLMJudge):
    """Scores `memory_judge`: 1.0 when the judge says that the answer is right by the rule of its type.

    A question with a `rubric` is judged criterion by criterion, 0, 0.5 or 1 each, and gets their mean. A judge that is
    down or cannot be read gives no score and a reason.

    Args:
        base_url: A server that speaks OpenAI's chat completions.
        model: The model that judges. It should not be the one that answered.
        api_key: Without one, `OPENAI_API_KEY` is used over https or on this machine.
        prompts: A TOML file with wordings of one's own by rule, or the wordings.
        official: Cut half points of a rubric to 0, as BEAM's own code does.
        settings: More of LLMJudge's: timeout, max_retries, temperature, extra_body, max_rpm.
    """

    name = "memory-judge"
    version = 2
    score_fields = ("memory_judge",)

    def __init__(
        self,
        base_url: str,
        model: str = DEFAULT_MODEL,
        api_key: str | Secret | None = None,
        *,
        prompts: str | Path | Mapping[str, str] | None = None,
        official: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(base_url, model, api_key, **settings)
        self.prompts = read_prompts(prompts) if isinstance(prompts, str | Path) else prompts
        self.official = official

    def __repr__(self) -> str:
        return super().__repr__().replace("LLMJudge", "MemoryJudge", 1)

    @property
    def fingerprint(self) -> str:
        """Everything that makes its verdicts differ; no secret is part of it."""
        return f"{super().fingerprint} {rules_digest(self.prompts)}{' official' if self.official else ''}"

    async def ascore(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Ask the judge; the rule, its replies and its tokens are in `details`."""
        record = read_question(original) or {}
        answer = response_text(processed)
        rule, rubric = find_rule(record), [str(each) for each in record.get("rubric") or ()]
        golds = [", ".join(gold) for gold in gold_answers(original)]
        if not golds and not rubric and rule != "abstention":
            return Scores(reason="no gold answer to judge by")
        if not answer.strip():
            # Saying nothing is not saying that it is not known.
            return Scores({"memory_judge": 0.0}, details={"rule": rule, "reply": "an empty answer, not asked"})
        task = str(original.get("question") or "")
        details: dict[str, Any] = {"rule": "rubric items" if rubric else rule, "model": self.model}
        try:
            if rubric:
                cases = [Case(task, (item,), answer) for item in rubric]
                values = [await self._rate_item(case, details) for case in cases]
                return Scores({"memory_judge": sum(values) / len(values)}, details=details)
            case = Case(task, tuple(golds) or ("The question cannot be answered.",), answer)
            reply = await self._read_reply(write_rule_messages(rule, case, self.prompts), details)
            return Scores({"memory_judge": float(read_yes_no(reply))}, details=details)
        except RequestFailed as error:
            return Scores(reason=f"the judge did not answer: {describe(error)}", transient=True)
        except ValueError as error:
            reason = f"the judge's reply cannot be read: {error}"
            return Scores(reason=reason, details=details, transient=True)

    async def _rate_item(self, case: Case, details: dict[str, Any]) -> float:
        reply = await self._read_reply(write_item_messages(case), details)
        found = _ITEM_SCORES.get(reply.strip(" \t\r\n\"'`*[]()"))
        if found is None:
            raise ValueError(f"it is not 0, 0.5 or 1 but {reply[:40]!r}")
        return float(int(found)) if self.official else found

    async def _read_reply(self, messages: list[dict[str, str]], details: dict[str, Any]) -> str:
        try:
            reply = read_chat_completion(await self._ask(messages))
        except NotAReply as error:
            raise ValueError("it is not a chat completion") from error
        details.setdefault("replies", []).append(reply.text[:_KEPT])
        for key in ("prompt_tokens", "completion_tokens"):
            if key in reply.usage:
                details[key] = details.get(key, 0) + reply.usage[key]
        if reply.finish == "length":
            raise ValueError("it was cut off")
        return drop_thoughts(reply.text)
