"""A model's API that writes down what it is asked and what it says: an independent count beside the tap's.

It shares no code with the tap: a plain HTTP server, `json`, and the tokenizer's own library. Beside it examples whose
answer it knows how to find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import splintr

from context_bench import EvalResult
from servers import Reply, Request, Server, chunk, reply, stream

__all__ = ["Recorder", "count_request", "count_text", "examples", "facts", "sent_tokens"]

FILLER = [f"Note {number}: the clerk counted {number * 7} boxes in hall {number} before noon." for number in range(40)]

_encode = splintr.Tokenizer.from_pretrained("cl100k_base").encode_ordinary


def count_text(text: str) -> int:
    """Tokens of a text."""
    return len(_encode(text))


def count_request(body: Mapping[str, Any]) -> int:
    """Tokens of the messages and tools of a chat request."""
    texts = [_compact(tool) for tool in body.get("tools") or ()]
    for message in body["messages"]:
        content = message.get("content") or ""
        texts += [content] if isinstance(content, str) else [part["text"] for part in content]
        texts += [_compact(call) for call in message.get("tool_calls") or ()]
    return sum(count_text(text) for text in texts if text)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class Recorder(Server):
    """Answers with the harbour that the prompt names, or says that it does not know; each answer has its own id."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.said: list[str] = []

    @property
    def read(self) -> list[int]:
        """Tokens of each request."""
        return [count_request(request.json) for request in self.chats]

    @property
    def written(self) -> list[int]:
        """Tokens of each answer."""
        return [count_text(text) for text in self.said]

    def _answer(self, request: Request) -> Reply:
        body = request.json
        texts = " ".join(str(message.get("content")) for message in body["messages"])
        harbour = re.search(r"Port\d+", texts)
        text = f"It is {harbour[0]}." if harbour else f"Unknown to me, number {len(self.said)}."
        self.said.append(text)
        if body.get("stream"):
            first, _, rest = text.partition(" ")
            return stream(chunk(first), chunk(f" {rest}"), chunk(finish="stop"), b"data: [DONE]\n\n")
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return reply(200, {"id": f"chatcmpl-{len(self.said)}", "object": "chat.completion", "choices": [choice]})


def examples(count: int = 3, place: float = 0.8) -> list[dict[str, Any]]:
    """A fact of its own in each context, near the end by default."""
    made = []
    for number in range(count):
        fact = f"The secret harbour of captain number {number} is called Port{number}."
        lines = [*FILLER]
        lines.insert(int(place * len(lines)), fact)
        question = f"What is the secret harbour of captain number {number} called?"
        made.append({"id": number, "context": "\n".join(lines), "question": question, "answer": f"Port{number}"})
        made[-1]["evidence"] = [fact]
    return made


def sent_tokens(example: dict[str, Any]) -> int:
    """The context is the system message, the question the user's: nothing else is sent."""
    return count_text(example["context"]) + count_text(example["question"])


def facts(result: EvalResult, key: str) -> list[Any]:
    return [row.metadata.get(key) for row in result.rows]
