"""A language model as judge: it rates an answer from 1 to 5, and `judge_score` is that on a scale from 0 to 1.

A judge that is down, fails, or says nothing that can be read gives no score and a reason; that is never
a 0, and it is asked again next time. `context-bench judge-check` measures how far a judge can be trusted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.errors import RequestFailed, describe
from context_bench.evaluators.judge.judge_prompt import PROMPT, read_case, write_judge_messages
from context_bench.evaluators.judge.judge_reply import read_verdict
from context_bench.http import Secret
from context_bench.http.loop import run_sync
from context_bench.http.paths import describe_path
from context_bench.results import Scores
from context_bench.systems.chat import open_connection
from context_bench.text.masking import mask_text
from context_bench.wire.model_reply import NotAReply, read_chat_completion

__all__ = ["DEFAULT_MODEL", "LLMJudge"]

DEFAULT_MODEL = "gpt-4"
"""The judge where nobody names one."""

_KEPT = 20_000
"""Characters of a reply that a row keeps; a longer one is not a verdict of two sentences anyway."""


class LLMJudge:
    """Scores `judge_score`: a model rates the answer against the gold answers, (rating - 1) / 4.

    Without a gold answer it rates how well the answer serves the question; with neither there is no score.

    Args:
        base_url: A server that speaks OpenAI's chat completions, with or without `/v1`, or the whole URL.
        model: The model that judges; gpt-4 by default.
        api_key: Without one, `OPENAI_API_KEY` is used over https or on this machine.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds before the first retry; doubled each time.
        temperature: None leaves it to the server, as happens by itself where the server takes none.
        extra_body: More fields for each request, such as `response_format`; None removes one.
        max_connections: The most requests in flight.
        max_rpm: The most requests in a minute.
    """

    name = "llm-judge"
    version = 2
    score_fields = ("judge_score",)

    def __init__(
        self,
        base_url: str,
        model: str = DEFAULT_MODEL,
        api_key: str | Secret | None = None,
        *,
        timeout: float = 60.0,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        temperature: float | None = 0.0,
        extra_body: Mapping[str, Any] | None = None,
        max_connections: int | None = None,
        max_rpm: float | None = None,
    ) -> None:
        connection = open_connection(
            "openai",
            base_url,
            model,
            api_key=api_key,
            extra_body=extra_body,
            timeout=timeout,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
            max_rpm=max_rpm,
            max_connections=max_connections,
        )
        self._endpoint, self._path = connection.endpoint, connection.path
        self.base_url = self._endpoint.base_url
        self.model = model
        self.temperature = temperature
        self.extra_body = dict(extra_body or {})
        self._takes_temperature = True

    def __repr__(self) -> str:
        return f"LLMJudge({mask_text(self.base_url)!r}, model={self.model!r})"

    @property
    def fingerprint(self) -> str:
        """Everything that makes its verdicts differ; no secret is part of it."""
        path = describe_path(self.base_url, self._path).values()  # nothing where the URL tells it
        settings = [self.base_url, self.model, PROMPT, self.temperature, self.extra_body, *path]
        described = orjson.dumps(settings, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
        return f"{self.name}/{self.version} {blake2b(described, digest_size=16).hexdigest()}"

    async def prepare(self) -> None:
        """Find out whether the judge is there; one that is not is then not waited for again and again."""
        await self._endpoint.probe()

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Ask the judge, for callers without an event loop."""
        return run_sync(self.ascore(original, processed))

    def write_request(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, Any] | None:
        """Write the body of the request that an answer takes; None where the judge is not asked."""
        case = read_case(original, processed)
        asks = (case.task or case.references) and case.answer.strip()
        return self._body(write_judge_messages(case)) if asks else None

    async def ascore(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Ask the judge; its rationale, its whole reply and its tokens are in `details`."""
        case = read_case(original, processed)
        if not case.task and not case.references:
            return Scores(reason="no question and no gold answer to judge by")
        if not case.answer.strip():
            return Scores({"judge_score": 0.0}, details={"rationale": "an empty answer, the judge was not asked"})
        try:
            document = await self._ask(write_judge_messages(case))
        except RequestFailed as error:
            return Scores(reason=f"the judge did not answer: {describe(error)}", transient=True)
        return _scores(document, self.model)

    async def _ask(self, messages: list[dict[str, str]]) -> Any:
        body = self._body(messages)
        try:
            return (await self._endpoint.post(self._path, body)).document
        except RequestFailed as error:
            # Reasoning models refuse any temperature but their own.
            refused = error.status == 400 and "temperature" in str(error) and "temperature" in body
            if not refused or "temperature" in self.extra_body:
                raise
            if self._takes_temperature:
                warnings.warn(f"the judge {self.model} takes no temperature: it judges with its own", stacklevel=2)
            self._takes_temperature = False
            return (await self._endpoint.post(self._path, self._body(messages))).document

    def _body(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        temperature = self.temperature if self._takes_temperature else None
        body = {"model": self.model, "messages": messages, "temperature": temperature, **self.extra_body}
        return {key: value for key, value in body.items() if value is not None}


def _scores(document: Any, model: str) -> Scores:
    """Read the verdict in a chat completion, or why it holds none."""
    try:
        reply = read_chat_completion(document)
    except NotAReply:
        return Scores(reason="the judge's reply is not a chat completion", transient=True)
    tokens: dict[str, Any] = {
        key: reply.usage[key] for key in ("prompt_tokens", "completion_tokens", "cached_tokens") if key in reply.usage
    }
    details: dict[str, Any] = {"model": model, "reply": reply.text[:_KEPT], **tokens}
    try:
        if reply.finish == "length":
            raise ValueError("it was cut off")
        verdict = read_verdict(reply.text)
    except ValueError as error:
        return Scores(reason=f"the judge's reply cannot be read: {error}", details=details, transient=True)
    details = {"rating": verdict.rating, "rationale": verdict.rationale[:_KEPT], **details}
    return Scores({"judge_score": (verdict.rating - 1) / 4}, details=details)
