"""Further routes of a scripted upstream that clients of these APIs expect.

Models, token counts, embeddings by hashed words, the older `/v1/completions`, and stored responses (to continue, fetch
or compact) of OpenAI's newer API.
"""

from __future__ import annotations

import base64
import math
import struct
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote
from zlib import crc32

from context_bench.http.loop import work_beside
from context_bench.tap.answering import (
    LONG_BODY,
    Incoming,
    Outgoing,
    build_error,
    build_json,
    build_reply,
    build_stream,
)
from context_bench.text.words import split_words
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.form import Answer, Recorded, cut_text
from context_bench.wire.forms import FORMS, expand_request, make_reply
from context_bench.wire.openai_responses import OPENAI_RESPONSES
from context_bench.wire.prompts import dump_body
from context_bench.wire.response_items import list_items

COMPLETIONS_PATH = "/v1/completions"
COMPACT_PATH = "/v1/responses/compact"
EMBEDDINGS_PATH = "/v1/embeddings"
MODELS_PATH = "/v1/models"

MAX_STORED_CHARS = 64 * 1024 * 1024  # of stored requests and replies; the oldest are dropped

DIMENSIONS = 256  # default length of a vector

_MAX_DIMENSIONS = 65_536


def embed_words(words: list[str], dimensions: int = DIMENSIONS) -> list[float]:
    """Count words in hashed dimensions, and scale the vector to length 1; a text without words gives zeros."""
    vector = [0.0] * dimensions
    for word, count in Counter(words).items():
        code = crc32(word.encode("utf-8", "replace"))
        vector[code % dimensions] += count if code & 0x8000_0000 else -count
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


def answer_embeddings(request: Incoming) -> Outgoing:
    """Answer an embeddings request of OpenAI's API, also in base64."""
    document = request.document()
    texts = _read_texts(document.get("input"))
    dimensions = document.get("dimensions", DIMENSIONS)
    if texts is None:
        return build_error(400, "input must be a text, a list of texts, or tokens", request.form)
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or not 1 <= dimensions <= _MAX_DIMENSIONS:
        return build_error(400, f"dimensions must be an integer from 1 to {_MAX_DIMENSIONS}", request.form)
    packed = document.get("encoding_format") == "base64"
    vectors = [embed_words(words, dimensions) for words, _ in texts]
    tokens = sum(size for _, size in texts)
    return build_json(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": place, "embedding": _pack(vector) if packed else vector}
                for place, vector in enumerate(vectors)
            ],
            "model": str(document.get("model", "")),
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def _read_texts(given: Any) -> list[tuple[list[str], int]] | None:
    """Return the words and the number of tokens of each text; a text may be given as token numbers."""
    if isinstance(given, str) or (isinstance(given, list) and given and all(isinstance(each, int) for each in given)):
        given = [given]
    if not isinstance(given, list) or not given:
        return None
    count = get_tokenizer()
    texts: list[tuple[list[str], int]] = []
    for each in given:
        if isinstance(each, str):
            texts.append((split_words(each), count(each)))
        elif isinstance(each, list) and all(isinstance(token, int) for token in each):
            texts.append(([str(token) for token in each], len(each)))
        else:
            return None
    return texts


def _pack(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


# --- models, counts, stored replies


async def answer_service(request: Incoming, conversations: Conversations) -> Outgoing | None:
    """Answer a request that does not ask a model; None for all others."""
    if request.method in ("GET", "HEAD") and request.path == MODELS_PATH:
        return build_json({"object": "list", "data": [describe_model("scripted")], "has_more": False})
    if request.method in ("GET", "HEAD") and request.path.startswith(f"{MODELS_PATH}/"):
        return build_json(describe_model(unquote(request.path.removeprefix(f"{MODELS_PATH}/"))))
    if request.path.startswith("/v1/responses/") and request.method in ("GET", "DELETE"):
        return conversations.fetch(request)
    if request.method != "POST":
        return None
    if request.path == EMBEDDINGS_PATH:
        return await work_beside(answer_embeddings, request)
    if any(form.count_route is not None and request.path == f"/v1{form.count_route}" for form in FORMS):
        if request.prompt() is None or conversations.expand(request) is None:
            return build_error(400, "the body has no prompt to count", request.form)
        is_long = len(request.body) >= LONG_BODY
        tokens = await work_beside(request.count_tokens) if is_long else request.count_tokens()
        kind = {"object": "response.input_tokens"} if request.path.startswith("/v1/responses") else {}
        return build_json({**kind, "input_tokens": tokens})
    return None


def describe_model(name: str) -> dict[str, Any]:
    """Describe a model with the fields of both APIs."""
    openai = {"id": name, "object": "model", "created": 0, "owned_by": "context-bench"}
    return {**openai, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


class Conversations:
    """The requests and replies of `/v1/responses`, kept for requests that continue a conversation."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Recorded, int]] = OrderedDict()
        self._room = MAX_STORED_CHARS

    def find(self, identity: str) -> Recorded | None:
        """Find a request and its reply by the id of the reply."""
        found = self._known.get(identity)
        return found[0] if found else None

    def expand(self, request: Incoming) -> Mapping[str, Any] | None:
        """Add the stored conversation to a request, for the script and the token count; None if it is unknown."""
        document = expand_request(request.document(), self.find)
        if document is not None:
            request.conversation = document
        return document

    def reply(self, answer: Answer, request: Incoming) -> Outgoing:
        """Build the reply to a request, and store it unless the request disables that."""
        document = request.document()
        if request.form is OPENAI_RESPONSES and answer.status < 400 and document.get("store") is not False:
            reply = make_reply(answer, document, body=request.body, count_prompt=request.count_tokens)
            self.store(request.conversation or document, OPENAI_RESPONSES.write_reply(reply))
        return build_reply(answer, request)

    def store(self, request: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Store a request and its reply, so that another request can continue them."""
        identity = reply.get("id")
        if not isinstance(identity, str) or not isinstance(reply.get("output"), list):
            return
        self._forget(identity)
        recorded = Recorded(request, reply)
        size = len(dump_body(request)) + len(dump_body(reply))
        if size > MAX_STORED_CHARS:
            return
        while size > self._room:
            self._forget(next(iter(self._known)))
        self._known[identity] = recorded, size
        self._room -= size

    def _forget(self, identity: str) -> bool:
        found = self._known.pop(identity, None)
        self._room += found[1] if found else 0
        return found is not None

    def fetch(self, request: Incoming) -> Outgoing:
        """Return a stored reply or its input items, or delete it."""
        identity, _, part = request.path.removeprefix("/v1/responses/").partition("/")
        found = self.find(identity)
        if found is None or part not in ("", "input_items"):
            return build_error(404, f"no response {identity!r} is stored here", OPENAI_RESPONSES)
        if request.method == "DELETE":
            self._forget(identity)
            return build_json({"id": identity, "object": "response", "deleted": True})
        if part:
            items = [{"id": f"item_{n}", **item} for n, item in enumerate(list_items(found.request.get("input")))]
            return build_json({"object": "list", "data": items, "has_more": False})
        return build_json(found.reply)


def build_compaction(answer: Answer, request: Incoming) -> Outgoing:
    """Build the reply to a compaction request: the user messages, and an opaque item."""
    if answer.status >= 400:
        return build_reply(answer, request)
    reply = make_reply(answer, request.document(), body=request.body, count_prompt=request.count_tokens)
    whole = OPENAI_RESPONSES.write_reply(reply)
    items = list_items((request.conversation or request.document()).get("input"))
    said = [
        {"type": "message", "id": f"msg_{place}", "role": "user", "content": _list_parts(item.get("content"))}
        for place, item in enumerate(items)
        if isinstance(item, Mapping) and item.get("role") == "user"
    ]
    hidden = base64.b64encode(answer.text.encode("utf-8", "replace")).decode()
    compaction = {"id": f"cmp_{reply.id}", "type": "compaction", "encrypted_content": hidden}
    head = {"id": whole["id"], "object": "response.compaction", "created_at": 0}
    return build_json({**head, "output": [*said, compaction], "usage": whole["usage"]}, headers=answer.headers)


def _list_parts(content: Any) -> Any:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


# --- the older completions


def build_completion(answer: Answer, request: Incoming) -> Outgoing:
    """Build the reply to a request of `/v1/completions`, streamed if the request asks for that."""
    document = request.document()
    if answer.status >= 400:
        return build_reply(answer, request)
    reply = make_reply(answer, document, body=request.body, count_prompt=request.count_tokens)
    prompt, completion = reply.usage
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    head = {"id": f"cmpl-{reply.id}", "object": "text_completion", "created": 0, "model": reply.model}

    def make(place: int, text: str, finish: str | None = None) -> dict[str, Any]:
        return {"index": place, "text": text, "logprobs": None, "finish_reason": finish}

    texts = [answer.text, *answer.choices]
    if document.get("stream") is not True:
        choices = [make(place, text, reply.finish) for place, text in enumerate(texts)]
        return build_json({**head, "choices": choices, "usage": usage, **answer.extra}, answer.status, answer.headers)

    def write() -> Iterator[bytes]:
        for place, text in enumerate(texts):
            for piece in cut_text(reply, place, text):
                yield b"data: %s\n\n" % dump_body({**head, "choices": [make(place, piece)]})
            yield b"data: %s\n\n" % dump_body({**head, "choices": [make(place, "", reply.finish)]})
        yield b"data: %s\n\ndata: [DONE]\n\n" % dump_body({**head, "choices": [], "usage": usage})

    return build_stream(write(), answer)
