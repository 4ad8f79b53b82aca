"""A model and an embedder for vendors' memory systems: enough of OpenAI's API that each of them extracts something.

It answers by rule (the last line that a user said becomes the memory), and counts what it was asked, sharing no code
with the tap.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from typing import Any

from servers import Reply, Request, Server, reply

__all__ = ["relay"]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def relay() -> Server:
    """The server; `requests` tells what it was asked."""
    return Server(answer)


def answer(request: Request) -> Reply:
    """Embeddings, or a completion in the form that is asked for."""
    if request.path.endswith("/embeddings"):
        return embed(request.json)
    asked = request.json
    message: dict[str, Any] = {"role": "assistant", "content": "Noted."}
    form = asked.get("response_format") or {}
    if asked.get("tools"):
        message = call_tool(asked)
    elif form.get("type") == "json_schema":
        message["content"] = json.dumps(fill_schema(form["json_schema"]["name"], asked))
    elif form.get("type") == "json_object":
        message["content"] = json.dumps({"memory": [{"id": "0", "text": last_words(asked), "attributed_to": "user"}]})
    choice = {"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop", "message": message}
    return reply(
        200, {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": USAGE}
    )


def embed(asked: dict[str, Any]) -> Reply:
    """Bags of hashed words."""
    texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    size = asked.get("dimensions") or 256
    data = []
    for place, text in enumerate(texts):
        vector = [0.0] * size
        for word in re.findall(r"\w+", text.lower()):
            vector[sum(map(ord, word)) % size] += 1.0
        packed = asked.get("encoding_format") == "base64"
        value = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector
        data.append({"object": "embedding", "index": place, "embedding": value})
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return reply(200, {"object": "list", "model": "e", "data": data, "usage": usage})


def last_words(asked: dict[str, Any]) -> str:
    """The last line of the prompt that looks like something a speaker said."""
    text = json.dumps(asked["messages"], ensure_ascii=False)
    found = re.findall(r"(?:Ana|Bob): [^\"\\\\]+", text)
    return found[-1].strip() if found else "nothing"


def call_tool(asked: dict[str, Any]) -> dict[str, Any]:
    """A memory by the first tool that takes one; done once a tool has answered."""
    tools = {tool["function"]["name"]: tool["function"] for tool in asked["tools"]}
    choice = asked.get("tool_choice")
    forced = choice["function"]["name"] if isinstance(choice, dict) else None
    name = forced or ("Memory" if "Memory" in tools else next(iter(tools)))
    wanted = tools[name]["parameters"].get("properties", {})
    arguments: dict[str, Any] = {key: last_words(asked) for key in wanted if key in ("content", "text", "memory")}
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def fill_schema(name: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What graphiti asks for by the name of its class."""
    said = last_words(asked)
    speaker = said.split(":")[0]
    match name:
        case "ExtractedEntities":
            entities = [{"name": speaker, "entity_type_id": 0, "episode_indices": [0]}]
            entities.append({"name": "tea", "entity_type_id": 0, "episode_indices": [0]})
            return {"extracted_entities": entities}
        case "ExtractedEdges":
            edge = {
                "source_entity_name": speaker,
                "target_entity_name": "tea",
                "source_entity_id": 0,
                "target_entity_id": 1,
                "relation_type": "SAID",
                "fact": said,
                "valid_at": None,
                "invalid_at": None,
                "episode_indices": [0],
            }
            return {"edges": [edge]}
        case "NodeResolutions":
            return {"entity_resolutions": []}
        case "EdgeDuplicate":
            return {"duplicate_facts": [], "contradicted_facts": [], "fact_type": "DEFAULT"}
        case "SummarizedEntities":
            return {"summaries": []}
        case "EdgeTimestamps":
            return {"valid_at": None, "invalid_at": None}
        case _:
            return {}
