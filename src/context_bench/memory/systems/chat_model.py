"""The model that some memories work with: one chat request at a time, to the server that the run names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.errors import BadOutput
from context_bench.http import Secret
from context_bench.http.loop import run_sync
from context_bench.systems.chat import open_connection
from context_bench.wire.model_reply import ModelReply, NotAReply, read_chat_completion

__all__ = ["DEFAULT_MODEL", "ChatModel"]

DEFAULT_MODEL = "gpt-4o-mini"
"""The model where nobody names one."""


class ChatModel:
    """Asks a server that speaks OpenAI's chat completions.

    Args:
        base_url: The server, with or without `/v1`.
        model: The model.
        api_key: Without one, `OPENAI_API_KEY` is used over https or on this machine.
        max_tokens: The longest reply.
        timeout: Seconds for one attempt.
    """

    def __init__(
        self, base_url: str, model: str, api_key: str | Secret | None, *, max_tokens: int = 1024, timeout: float = 120.0
    ) -> None:
        connection = open_connection(
            "openai", base_url, model, api_key=api_key, timeout=timeout, max_retries=3, retry_base_delay=1.0
        )
        self._endpoint, self._path = connection.endpoint, connection.path
        self.model, self.max_tokens = model, max_tokens

    def ask(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> ModelReply:
        """Send messages and wait for the reply.

        Raises:
            RequestFailed: The server did not answer.
            BadOutput: It answered with something that is not a chat completion.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        if tools:
            body["tools"] = list(tools)
        try:
            return read_chat_completion(run_sync(self._endpoint.post(self._path, body)).document)
        except NotAReply as error:
            raise BadOutput(f"{self._endpoint.place} answered with {error}") from error
