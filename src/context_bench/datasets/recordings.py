"""Recorded traffic as examples: each request of a session becomes an example with chat messages, whatever its API was.

The `group` in `meta` is the id of the session, so that intervals count the requests of a session together. Only
messages, tools and the recorded reply are kept, with secrets masked; headers and keys are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from context_bench.errors import DataError
from context_bench.text.masking import Placeholders
from context_bench.traffic.parts import convert_to_chat, convert_tool_to_chat
from context_bench.traffic.readers import Findings, find_reader, read_threads
from context_bench.traffic.sessions import Request, Thread
from context_bench.types import Example
from context_bench.wire.forms import read_document_completion
from context_bench.wire.prompts import read_text


def is_recording(path: Path) -> bool:
    """Whether a file has recorded traffic instead of examples, or a folder contains such a file."""
    if path.is_dir():
        return next(read_threads([path]), None) is not None
    return find_reader(path, lambda record: "context" in record or "turns" in record) is not None


def find_recorded_api(paths: Iterable[str | Path]) -> str | None:
    """Find the API of the first request in the recordings; None without a request."""
    for path in map(Path, paths):
        if path.exists() and is_recording(path):
            return next((thread.requests[0].api for thread in read_threads([path])), None)
    return None


def read_examples(
    paths: Iterable[str | Path], *, answers: bool = False, emails: bool = False, findings: Findings | None = None
) -> Iterator[tuple[int, Example]]:
    """Yield the line and the example of each request.

    The messages are the `turns`; for systems that work on a text, the last user message is the `question`, and
    everything else is the `context`. With `answers`, the recorded replies are the answers to compare with. Requests
    that cannot be examples are counted in `findings`.
    """
    findings = Findings() if findings is None else findings
    masked = Placeholders(emails=emails)
    for thread in read_threads(paths, findings):
        report = findings.files[-1]  # of the file that is being read
        for number, request in enumerate(thread.requests, 1):
            try:
                example = _make_example(thread, request, number, answers)
            except DataError as error:
                report.skip(request.line, str(error))
            else:
                yield request.line, masked.mask_all(example)


def _make_example(thread: Thread, request: Request, number: int, answers: bool) -> Example:
    messages = _read_chat(request)
    asked = max((place for place, each in enumerate(messages) if each.get("role") == "user"), default=None)
    if asked is None:
        raise DataError("a request without a user's message")
    before = [read_text(each.get("content")) for place, each in enumerate(messages) if place != asked]
    example: Example = {
        "id": f"{thread.id}#{number}",
        "context": "\n\n".join(text for text in before if text),
        "question": read_text(messages[asked].get("content")),
        "turns": messages,
        "meta": {"group": thread.session, "api": request.api},
    }
    if request.model:
        example["meta"]["model"] = request.model
    if tools := [each for each in map(convert_tool_to_chat, request.tools) if each]:
        example["tools"] = tools
    reply = _read_reply(request)
    if reply:
        example["meta"]["recorded_reply"] = reply
        if answers:
            example["answer"] = reply
    return example


def _read_chat(request: Request) -> list[Any]:
    """Return the messages in chat form, converted if the API has another form."""
    if request.api in ("anthropic", "responses"):
        return convert_to_chat(request.messages, request.system)
    text = read_text(request.system)
    return [{"role": "system", "content": text}, *request.messages] if text else request.messages


def _read_reply(request: Request) -> str:
    """Read the text of the recorded reply; "" without a reply."""
    reply = request.reply or {}
    if request.api == "responses" and isinstance(reply.get("output"), list):
        said = (each for each in reply["output"] if isinstance(each, dict) and each.get("type") == "message")
        return "".join(read_text(each.get("content")) for each in said)
    completion = read_document_completion(reply)
    return completion.texts[0] if completion is not None and completion.texts else ""
