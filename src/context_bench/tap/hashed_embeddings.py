"""Embeddings with no model: a bag of hashed words, at `/v1/embeddings`.

Texts that share words are near to each other, and the same text has the same vector everywhere: enough to run a memory
system offline and to count what it asks, and no measure of quality.
"""

from __future__ import annotations

import base64
import math
import struct
from collections import Counter
from typing import Any
from zlib import crc32

from context_bench.tap.answering import Incoming, Outgoing, build_error, build_json
from context_bench.text.words import split_words
from context_bench.utils.tokens import get_tokenizer

__all__ = ["DIMENSIONS", "EMBEDDINGS_PATH", "answer_embeddings", "embed_words"]

EMBEDDINGS_PATH = "/v1/embeddings"
DIMENSIONS = 256
"""Numbers in a vector, where the request does not say."""

_MOST_DIMENSIONS = 65_536


def embed_words(words: list[str], dimensions: int = DIMENSIONS) -> list[float]:
    """Count words in hashed places, and scale the vector to length 1; no words at all give zeros."""
    vector = [0.0] * dimensions
    for word, count in Counter(words).items():
        code = crc32(word.encode("utf-8", "replace"))
        vector[code % dimensions] += count if code & 0x8000_0000 else -count
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


def answer_embeddings(request: Incoming) -> Outgoing:
    """Answer a request for embeddings in the form of OpenAI's API, also in base64."""
    document = request.document()
    texts = _read_texts(document.get("input"))
    dimensions = document.get("dimensions", DIMENSIONS)
    if texts is None:
        return build_error(400, "input must be a text, a list of texts, or tokens", "openai")
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or not 1 <= dimensions <= _MOST_DIMENSIONS:
        return build_error(400, f"dimensions must be an integer from 1 to {_MOST_DIMENSIONS}", "openai")
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
    """Return the words and the number of tokens of each text; a text may come as token numbers."""
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
