"""Which API is spoken at which path."""

from __future__ import annotations

import pytest

from context_bench.wire.dialects import asks_model, find_dialect


@pytest.mark.parametrize(
    ("path", "dialect", "asks"),
    [
        ("/v1/chat/completions", "openai", True),
        ("/v1/messages", "anthropic", True),
        ("/v1/messages/count_tokens", None, False),
        ("/v1/embeddings", None, False),
        ("/v1/responses", None, True),
    ],
)
def test_paths(path: str, dialect: str | None, asks: bool) -> None:
    assert find_dialect(path) == dialect
    assert asks_model(path) is asks
