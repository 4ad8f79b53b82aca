"""The viewer in a real Chromium: it can be used, follows a run, and no other site in the same browser can read it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from browsing import NEEDS_CHROMIUM, Opened, read_axe
from command import called
from context_bench import evaluate
from context_bench.output.viewer import ViewServer
from context_bench.results import EvalRow
from context_bench.store import Store
from context_bench.store.backend import Keys
from injections import INJECTIONS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on needles."""
    folder = tmp_path_factory.mktemp("viewed")
    for systems, data in (
        (("passthrough", "truncate:ratio=0.5"), "needle:length=500|1000,n=40"),
        (("passthrough", "truncate:ratio=0.3|0.7"), "needle:length=500,n=10"),
    ):
        flags = [each for system in systems for each in ("--system", system)]
        data_flags = ("--dataset", data, "--score-field", "answer_in_context", "--quiet")
        done = called(*flags, *data_flags, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder / ".context-bench"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ViewServer]:
    with ViewServer(folder) as server:
        yield server


def find_runs(server: ViewServer) -> list[str]:
    """The ids of the runs, the oldest first."""
    return [run.id for run, _ in reversed(server.store.list_runs())]


def open_run(browser: Browser, server: ViewServer, *runs: str, rows: int, after: str = "", **options: Any) -> Opened:
    opened = Opened(browser, f"{server.url}run/{'+'.join(runs)}{after}", **options)
    opened.wait_for(f"of {rows} rows")
    return opened


def test_the_list_is_searched_and_leads_to_runs(browser: Browser, server: ViewServer) -> None:
    first, second = find_runs(server)
    with Opened(browser, server.url) as opened:
        page = opened.page
        opened.wait_for("2 of 2 runs")
        assert opened.find_row_texts(2) == [second, first], "the newest first"
        page.keyboard.press("/")
        page.keyboard.type("length=1000 passthrough")
        opened.wait_for("0 of 2 runs")
        page.fill("#search", "needle:length=500|1000")
        opened.wait_for("1 of 2 runs")
        page.fill("#search", "")
        opened.wait_for("2 of 2 runs")
        page.click("[data-sort=rows]")
        assert opened.find_row_texts(2) == [first, second]
        for run in (first, second):
            page.check(f"[data-pick='{run}']")
        page.click("#side-by-side")
        page.wait_for_selector("#side")
        opened.wait_for("of 190 rows")
        assert page.locator("article").count() == 2
        page.click("a.brand")
        opened.wait_for("2 of 2 runs")
        assert opened.said == []
        assert {urlsplit(address).netloc for address in opened.asked} == {f"127.0.0.1:{server.port}"}


def test_examples_are_filtered_sorted_and_opened(browser: Browser, server: ViewServer) -> None:
    run, _ = find_runs(server)
    with open_run(browser, server, run, rows=160) as opened:
        page = opened.page
        page.select_option("#by-system", label="truncate 50%")
        opened.wait_for("of 80 rows")
        page.select_option("#by-outcome", label="wrong")
        opened.wait_for("of 41 rows (of 160)")
        page.select_option("#by-flip", "-1")
        page.fill("#search", "needle-1000")
        opened.wait_for("of 20 rows")
        page.click("#reset")
        opened.wait_for("1–50 of 160 rows")
        page.click("[data-sort=score]")
        page.wait_for_selector("th.c-score[aria-sort=ascending]")
        assert opened.find_row_texts(4)[0] == "0.000"
        page.fill("#score-from", "0.5")
        opened.wait_for("of 119 rows")
        page.click("#reset")
        opened.wait_for("1–50 of 160 rows")
        page.fill("#search", "d1.00")
        opened.wait_for("of 4 rows")
        page.locator("#search").blur()
        for key in ("j", "j", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("dialog[open]")
        title = page.locator("#one-title").inner_text()
        assert title == "needle-500-d1.00-of40-s0-039 · truncate 50%"
        assert len(page.locator("#one-body del mark").all_inner_texts()) == 1
        address = page.evaluate("location.hash")
        page.keyboard.press("ArrowRight")
        page.locator("#one-title", has_text="needle-1000-d1.00").wait_for()
        page.keyboard.press("Escape")
        assert opened.said == []
    with open_run(browser, server, run, rows=160, after=address) as opened:
        opened.page.wait_for_selector("dialog[open]")
        assert opened.page.locator("#one-title").inner_text() == title
        opened.page.keyboard.press("ArrowLeft")
        opened.page.locator("#one-title", has_text="passthrough").wait_for()


def test_theme_and_print(browser: Browser, server: ViewServer) -> None:
    run, _ = find_runs(server)
    with open_run(browser, server, run, rows=160, color_scheme="dark") as opened:
        before = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        opened.page.click("#theme")
        assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
        assert len(opened.page.pdf(format="A4")) > 20_000


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window(browser: Browser, server: ViewServer, width: int) -> None:
    for address in ("", f"run/{'+'.join(find_runs(server))}"):
        with Opened(browser, server.url + address, viewport={"width": width, "height": 800}) as opened:
            assert opened.page.evaluate("document.documentElement.scrollWidth") == width


def test_axe_finds_nothing(browser: Browser, server: ViewServer) -> None:
    script = read_axe()
    for address in ("", f"run/{'+'.join(find_runs(server))}"):
        with Opened(browser, server.url + address, bypass_csp=True) as opened:
            opened.wait_for(" of ")
            opened.page.evaluate(script)
            found = opened.page.evaluate("axe.run()")["violations"]
            assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []


def test_a_page_follows_a_run_that_is_under_way(browser: Browser, tmp_path: Path) -> None:
    config = {"systems": ["a"], "metrics": [], "score_field": "score", "datasets": {}}
    with Store(tmp_path) as store:
        run = store.start_run(config)

        def put(place: int) -> None:
            example = {"id": f"e{place}", "context": "c", "question": "q"}
            row = EvalRow("a", f"e{place}", {"score": 1.0}, 1, 1)
            store.put_result(run, place, Keys(f"{place:016d}".encode(), None, None), example, None, None, row, None)

        put(0)
        with ViewServer(tmp_path) as server, Opened(browser, server.url) as listed:
            listed.wait_for("1 of 1 runs")
            assert listed.find_row_texts(4) == ["under way"]
            with open_run(browser, server, run.id, rows=1) as opened:
                for place in (2, 1):
                    put(place)
                opened.wait_for("of 3 rows")
                opened.page.locator(".answer", has_text="in progress: 3 rows so far").wait_for()
                assert opened.said == []
            listed.page.locator("#rows tr", has_text="under way").locator("td", has_text="3").first.wait_for()


def test_no_injection_runs_or_changes_the_layout(browser: Browser, tmp_path: Path) -> None:
    """Every text stands in ids, questions, contexts, gold answers, replies, errors and tools; one names a system."""
    examples = [
        {"id": f"{number} {text}", "context": f"{text}\n{text}", "question": text, "answer": text, "dataset": text}
        | {"tools": [{"name": text, "url": text}]}
        for number, text in enumerate(INJECTIONS)
    ]

    def answers(example: dict[str, Any]) -> dict[str, Any]:
        if example["id"].startswith("1"):
            raise ValueError(example["question"])
        return {"response": example["question"], "context": example["context"][1:]}

    answers.__name__ = INJECTIONS[0]
    evaluate([answers], examples, cache_dir=str(tmp_path), progress=False)
    with ViewServer(tmp_path) as server:
        (run,) = find_runs(server)
        with Opened(browser, server.url, viewport={"width": 1200, "height": 900}) as opened:
            opened.wait_for("1 of 1 runs")
            _look_for_harm(opened, server)
        with open_run(browser, server, run, rows=len(INJECTIONS), viewport={"width": 1200, "height": 900}) as opened:
            page = opened.page
            assert opened.page.evaluate("window.__ran") is None
            page.click("#rows tr")
            page.wait_for_selector("dialog[open]")
            for number in range(1, len(INJECTIONS)):
                page.keyboard.press("ArrowRight")
                page.locator("#one-title", has_text=re.compile(f"^{number} ")).wait_for()
            page.keyboard.press("Escape")
            sections = page.evaluate("fetch(location.href).then((reply) => reply.status)")
            assert sections == 200
            _look_for_harm(opened, server)
            assert page.is_visible("#examples")


def _look_for_harm(opened: Opened, server: ViewServer) -> None:
    page = opened.page
    assert opened.said == []
    assert {urlsplit(address).netloc for address in opened.asked} == {f"127.0.0.1:{server.port}"}
    assert page.evaluate("window.__ran") is None
    assert page.evaluate("document.documentElement.scrollWidth") == 1200
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    made = page.evaluate("document.querySelectorAll('iframe, img, object, embed, link, base, form:not(#picks)').length")
    assert made == 0


# --- other sites


@contextmanager
def serve_page(content: str) -> Iterator[int]:
    """Serve one page, as another site would; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = content.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield site.server_address[1]
        site.shutdown()
        thread.join()


_READ = """async (address) => {
    const tries = {};
    for (const mode of ["cors", "no-cors"]) {
        try {
            const reply = await fetch(address, { mode });
            tries[mode] = `${reply.type} ${reply.status} ${(await reply.text()).length}`;
        } catch (error) { tries[mode] = "refused"; }
    }
    const load = (tag, name) => new Promise((resolve) => {
        const made = document.createElement(tag);
        made.onload = () => resolve("loaded");
        made.onerror = () => resolve("refused");
        made[name] = address;
        document.body.append(made);
    });
    tries.script = await load("script", "src");
    tries.image = await load("img", "src");
    tries.frame = await new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.onload = () => resolve(frame.contentDocument ? "read" : "refused");
        frame.src = address;
        document.body.append(frame);
    });
    return tries;
}"""


@pytest.mark.parametrize("site", ["127.0.0.1", "localhost", "evil.test"])
def test_another_site_cannot_read_it_even_with_the_token(browser: Browser, server: ViewServer, site: str) -> None:
    """The worst case: the other site knows the token, and is on this very machine."""
    with serve_page("<!doctype html><html data-ready=yes><body></body></html>") as port:
        for what in ("api/runs", ""):
            with Opened(browser, f"http://{site}:{port}/") as opened:
                found = opened.page.evaluate(_READ, server.url + what)
            assert found["cors"] == found["script"] == found["image"] == found["frame"] == "refused", (what, found)
            assert found["no-cors"] in ("refused", "opaque 0 0"), (what, found)


def test_a_name_that_is_bound_anew_to_this_machine_is_refused(browser: Browser, server: ViewServer) -> None:
    """DNS rebinding: the browser believes the page to be of `evil.test`, and sends the request here."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(120_000)
        for what in ("", "api/runs", f"run/{find_runs(server)[0]}"):
            reply = page.goto(server.url.replace("127.0.0.1", "evil.test") + what)
            assert reply is not None
            assert reply.status == 403
            assert "needle" not in page.content()
        reply = page.goto(server.url.replace("127.0.0.1", "localhost"))
        assert reply is not None
        assert reply.status == 200, "and its own other name is answered"
    finally:
        context.close()


def test_a_wrong_token_is_refused_in_the_browser(browser: Browser, server: ViewServer) -> None:
    context = browser.new_context()
    try:
        page = context.new_page()
        for address in (f"http://127.0.0.1:{server.port}/", f"http://127.0.0.1:{server.port}/{'x' * 32}/api/runs"):
            reply = page.goto(address)
            assert reply is not None
            assert reply.status == 403
    finally:
        context.close()
