"""How large the request of an example will be, by our own count, before it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.systems.prompts import open_turns
from context_bench.traits import find_judge_request, system_traits
from context_bench.types import Evaluator, Example, System
from context_bench.utils.tokens import Tokenizer, count_prompt, count_value, read_token_count

__all__ = ["RequestSize", "measure_judge_request", "measure_request"]


@dataclass(frozen=True)
class RequestSize:
    """Tokens of all requests that an example takes, and the most that their replies may have; None without a bound."""

    prompt: int
    reply: int | None = None


def measure_request(system: System, example: Example, count: Tokenizer) -> RequestSize:
    """Count the request that a system of ours would make; of any other system the prompt fields of the example.

    A conversation with several open turns takes as many requests, each with the replies before it.
    """
    body = _request_body(system, example)
    if body is None:
        return RequestSize(count_prompt(example, count))
    prompt = sum(count_value(body.get(part), count) for part in ("system", "messages", "tools"))
    reply = _reply_bound(body)
    turns = max(1, open_turns(example.get("turns") or ()))
    if reply is None:
        return RequestSize(turns * prompt)
    return RequestSize(turns * prompt + reply * turns * (turns - 1) // 2, turns * reply)


def measure_judge_request(
    evaluator: Evaluator, example: Example, processed: Example, count: Tokenizer
) -> RequestSize | None:
    """Count the request that a judge would make for an answer; None when it would make none.

    For a judge of the user's own, count the texts that it is handed.
    """
    write = find_judge_request(evaluator)
    if write is None:
        return RequestSize(count_prompt(example, count) + count(str(processed.get("response") or "")))
    body = write(example, processed)
    return None if body is None else RequestSize(count_value(body.get("messages"), count), _reply_bound(body))


def _request_body(system: Any, example: Example) -> Mapping[str, Any] | None:
    make_body = system_traits(system).request_body
    if make_body is None:
        return None
    try:
        body = make_body(example)
    except Exception:  # noqa: BLE001 - an example that no request can be made of is an error of its row, not of the estimate
        return None
    return body if isinstance(body, Mapping) else None


def _reply_bound(body: Mapping[str, Any]) -> int | None:
    told = [read_token_count(body.get(name)) for name in ("max_tokens", "max_completion_tokens")]
    bounds = [bound for bound in told if bound is not None]
    return max(bounds) * (read_token_count(body.get("n")) or 1) if bounds else None
