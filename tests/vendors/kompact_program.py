"""Runs kompact's pipeline as its own benchmark does: one JSON example a line in, what it sends on out."""

import json
import sys

from kompact.config import KompactConfig  # type: ignore[import-not-found]
from kompact.transforms import pipeline  # type: ignore[import-not-found]
from kompact.types import ContentBlock, ContentType, Message, Provider, Request, Role  # type: ignore[import-not-found]

for line in sys.stdin:
    example = json.loads(line)
    messages = [
        Message(Role.ASSISTANT, [ContentBlock(ContentType.TOOL_USE, tool_use_id="1", tool_name="retrieve_context")]),
        Message(Role.USER, [ContentBlock(ContentType.TOOL_RESULT, text=example["context"], tool_use_id="1")]),
        Message(Role.USER, [ContentBlock(ContentType.TEXT, text=example["question"])]),
    ]
    # a new configuration for each request: kompact changes the one that it is given
    sent = pipeline.run(Request(provider=Provider.ANTHROPIC, messages=messages), KompactConfig()).request
    texts = [sent.system, *(block.text for message in sent.messages for block in message.content)]
    print(json.dumps({"context": "\n".join(text for text in texts if text)}), flush=True)
