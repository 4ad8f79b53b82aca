"""Pages in a real Chromium, by Playwright: what they say, and what they ask for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["CHROMIUM", "FLAGS", "NEEDS_CHROMIUM", "Opened", "read_axe"]

CHROMIUM = Path(os.environ.get("CONTEXT_BENCH_CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
NEEDS_CHROMIUM = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is missing: `make system` installs it"),
]


def read_axe() -> str:
    """Read the script that looks for what keeps people out."""
    package = pytest.importorskip("axe_playwright_python", reason="axe is missing: requirements-dev.txt has it")
    return (Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_default_timeout(120_000)  # the machine may be busy
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def wait_for(self, found: str) -> None:
        """Wait until the line above the list of examples says so."""
        self.page.locator("#found", has_text=found).wait_for()

    def find_row_texts(self, column: int) -> list[str]:
        return self.page.eval_on_selector_all(
            "#rows tr", f"rows => rows.map(row => row.children[{column - 1}].textContent)"
        )
