"""Take the screenshots of docs/images: page and viewer, light, dark, on a phone and in print, of runs that it makes.

`python tools/screenshots.py` needs Playwright and Chromium (`make system`). Look at what it took before you commit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from context_bench.output.viewer import ViewServer

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
CHROMIUM = os.environ.get("CONTEXT_BENCH_CHROMIUM", "/usr/bin/chromium")
RUNS = (
    ("passthrough", "truncate:ratio=0.3|0.5|0.7", "bm25:ratio=0.5", "needle:length=500|1000|2000,n=60"),
    ("passthrough", "truncate:ratio=0.5", "bm25:ratio=0.5", "json-logs:n=30"),
)
WIDE, PHONE = {"width": 1200, "height": 860}, {"width": 390, "height": 844}


def make_runs(folder: Path) -> None:
    """Record two runs, with no key and no network."""
    for *systems, dataset in RUNS:
        flags = [part for system in systems for part in ("--system", system)]
        more = ["--dataset", dataset, "--score-field", "answer_in_context", "--quiet", "--report", "page.html"]
        command = [sys.executable, "-m", "context_bench", *flags, *more]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def take(browser: Browser, name: str, address: str, act: Any = None, **options: Any) -> None:
    """Take one screenshot."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.locator("#found", has_text=" of ").wait_for()
    page.wait_for_timeout(4_000)  # the viewer reads the rows, and then shows what they say
    if act is not None:
        act(page)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    context.close()
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")


def open_row(page: Page) -> None:
    """Open a row from which evidence was lost."""
    page.select_option("#by-flip", "-1")
    page.wait_for_timeout(800)
    page.locator("#rows tr").nth(2).click()
    page.wait_for_selector("dialog[open]")
    page.wait_for_timeout(200)


def go_to(part: str) -> Any:
    """Scroll to a part of the page."""
    return lambda page: page.evaluate(f"document.getElementById('{part}').scrollIntoView()")


def main() -> None:
    """Take all of them."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        make_runs(folder)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        os.chdir(folder)
        with ViewServer(".context-bench") as server:
            newest, oldest = (run.id for run, _ in server.store.list_runs())
            page = f"{server.url}run/{oldest}"
            take(browser, "report", page, viewport=WIDE)
            take(browser, "report-dark", page, viewport=WIDE, color_scheme="dark")
            take(browser, "report-phone", page, viewport=PHONE, color_scheme="dark")
            take(browser, "report-print", page, lambda tab: tab.emulate_media(media="print"), viewport=WIDE)
            take(browser, "view-runs", server.url, viewport={"width": 1200, "height": 430})
            take(browser, "view-examples", page, go_to("examples"), viewport={"width": 1200, "height": 620})
            take(browser, "view-row", page, open_row, viewport=WIDE)
            take(browser, "view-side-by-side", f"{server.url}run/{newest}+{oldest}", viewport=WIDE)
        browser.close()


if __name__ == "__main__":
    main()
