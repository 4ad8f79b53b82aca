"""Recorded chat traffic as examples: chat requests, one JSON object a line.

A line is the request itself, or holds it under `request` or `body`, as an object or as its text: so does each line of
`context-bench runs requests`. Only messages, tools and the recorded reply are taken over: headers and keys stay behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.datasets.formats import read_jsonl
from context_bench.errors import DataError, suggest_file
from context_bench.types import Example
from context_bench.wire.form import Completion
from context_bench.wire.forms import read_completion, read_document_completion, read_prompt
from context_bench.wire.prompts import read_document, read_text


def read_traffic(path: Path, answers: bool = False) -> Iterator[Example | None]:
    """Yield one example for each chat request, and None for a line that is some other request.

    The messages are the `turns`; for systems that work on a text, all but the last user message is the `context`, and
    that message the `question`. With `answers`, the recorded replies are the answers to compare with.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file{suggest_file(path)}")
    try:
        with path.open("rb") as source:
            for line, item in read_jsonl(source, str(path)):
                if not isinstance(item, Mapping):
                    raise DataError(f"{path}, line {line}: a request must be a JSON object (got {type(item).__name__})")
                yield _make_example(item, line, answers)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def _make_example(record: Mapping[str, Any], line: int, answers: bool) -> Example | None:
    request = next((found for key in ("request", "body") if (found := _read_object(record.get(key)))), record)
    request = _read_object(request.get("body")) or request
    prompt = read_prompt(request)
    if prompt is None:
        return None
    if not all(isinstance(each, Mapping) and isinstance(each.get("role"), str) for each in prompt.messages):
        return None
    messages = prompt.messages
    if prompt.system:  # Anthropic's requests have it beside the messages
        messages = [{"role": "system", "content": read_text(prompt.system)}, *messages]
    asked = max((place for place, each in enumerate(messages) if each["role"] == "user"), default=None)
    if asked is None:
        return None
    before = [read_text(each.get("content")) for place, each in enumerate(messages) if place != asked]
    example: Example = {
        "id": f"line-{line}",
        "context": "\n\n".join(text for text in before if text),
        "question": read_text(messages[asked].get("content")),
        "turns": messages,
        "meta": {key: request[key] for key in ("model",) if key in request},
    }
    if prompt.tools:
        example["tools"] = prompt.tools
    reply = _read_reply(record)
    if reply is not None and reply.texts[:1] not in ([], [""]):
        example["meta"]["recorded_reply"] = reply.texts[0]
        if answers:
            example["answer"] = reply.texts[0]
    return example


def _read_object(value: Any) -> Mapping[str, Any] | None:
    """Return a JSON object, also from the text of one; None for anything else."""
    if isinstance(value, str):
        value = read_document(value) or None
    return value if isinstance(value, Mapping) else None


def _read_reply(record: Mapping[str, Any]) -> Completion | None:
    """Read the recorded reply, plain or as the text of a stream; None where there is none."""
    given = record.get("response") or record.get("reply")
    response = _read_object(given)
    if response is None:
        return read_completion(given) if isinstance(given, str) else None
    return read_document_completion(_read_object(response.get("body")) or response)
