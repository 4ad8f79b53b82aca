"""Fixtures that several test modules share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from context_bench.registry import registry
from context_bench.utils.tokens import set_tokenizer


def pytest_configure() -> None:
    """Hear SIGINT whoever started us: under nohup and some CI runners it is ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _default_tokenizer() -> Iterator[None]:
    """No test leaves another tokenizer behind."""
    yield
    set_tokenizer(None)


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    registered = {kind: dict(components) for kind, components in registry._registered.items()}
    monkeypatch.setattr(registry, "_registered", registered)
