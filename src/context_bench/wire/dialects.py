"""Which API is spoken at which path."""

from __future__ import annotations

from typing import Literal

__all__ = ["CHAT_PATH", "MESSAGES_PATH", "Dialect", "asks_model", "find_dialect"]

Dialect = Literal["openai", "anthropic"]

CHAT_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/v1/messages"

_DIALECTS: dict[str, Dialect] = {CHAT_PATH: "openai", MESSAGES_PATH: "anthropic"}
_OTHER_SERVICES = ("/count_tokens", "/embeddings", "/moderations", "/files", "/tokenize", "/rerank")
"""Ends of paths where no model is asked for an answer."""


def find_dialect(path: str) -> Dialect | None:
    """Find the API that is spoken at a path; None where no model is asked."""
    return _DIALECTS.get(path)


def asks_model(path: str) -> bool:
    """Tell whether a model is to answer at a path: counting tokens or embedding a text is something else."""
    return not path.endswith(_OTHER_SERVICES)
