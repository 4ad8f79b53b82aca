"""Compresses contexts by kompact as a library, for `--system command:`: JSON lines in, JSON lines out.

Runs in kompact's own environment (`make vendors`). Each request gets a configuration of its own: kompact 0.4.0 changes
the one that it is given.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kompact.config import KompactConfig  # type: ignore[import-not-found]
from kompact.transforms import pipeline  # type: ignore[import-not-found]
from kompact.types import (  # type: ignore[import-not-found]
    ContentBlock,
    ContentType,
    Message,
    Provider,
    Request,
    Role,
)


def compress(context: str, question: str) -> str:
    """Return all text of the request that comes back, with the question in it."""
    call = {"tool_use_id": "t1", "tool_name": "retrieve_context"}
    asked = ContentBlock(type=ContentType.TOOL_USE, tool_input={}, **call)
    found = ContentBlock(type=ContentType.TOOL_RESULT, text=context, **call)
    messages = [
        Message(role=Role.ASSISTANT, content=[asked]),
        Message(role=Role.USER, content=[found]),
        Message(role=Role.USER, content=[ContentBlock(type=ContentType.TEXT, text=question)]),
    ]
    back: Any = pipeline.run(Request(provider=Provider.ANTHROPIC, messages=messages), KompactConfig()).request
    return "\n".join(block.text for message in back.messages for block in message.content if block.text)


for line in sys.stdin:
    example = json.loads(line)
    print(json.dumps({"context": compress(example["context"], example["meta"]["question"])}), flush=True)
