"""Fixtures that several test modules share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from browsing import CHROMIUM, FLAGS
from context_bench.registry import registry
from context_bench.utils.tokens import set_tokenizer

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def pytest_configure() -> None:
    """Hear SIGINT whoever started us: under nohup and some CI runners it is ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _default_tokenizer() -> Iterator[None]:
    """No test leaves another tokenizer behind."""
    yield
    set_tokenizer(None)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    registered = {kind: dict(components) for kind, components in registry._registered.items()}
    monkeypatch.setattr(registry, "_registered", registered)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a Chromium for the tests of a module; `evil.test` is another name of this machine there."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: requirements-dev.txt has it")
    flags = [*FLAGS, "--host-resolver-rules=MAP evil.test 127.0.0.1"]
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        yield chromium
        chromium.close()
