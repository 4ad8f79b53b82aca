"""The page in a real Chromium: nothing runs that should not, nothing is asked for, and everything can be used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browsing import NEEDS_CHROMIUM, Opened, read_axe
from command import called
from context_bench import evaluate
from context_bench.output.page import HtmlReporter
from injections import INJECTIONS
from report_pages import make_result
from rows import make_row

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems on needles, written by the command line from its store."""
    folder = tmp_path_factory.mktemp("report")
    systems = ("--system", "passthrough", "--system", "truncate:ratio=0.5")
    data = ("--dataset", "needle:length=500|1000,n=40", "--score-field", "answer_in_context")
    done = called(*systems, *data, "--quiet", "--report", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "page.html"


def test_it_opens_without_a_complaint_and_asks_for_nothing(browser: Browser, report: Path) -> None:
    with Opened(browser, report.as_uri()) as opened:
        assert opened.asked == [report.as_uri()]
        assert opened.said == []
        assert opened.page.locator("#found").inner_text() == "1–50 of 160 rows"


def test_the_grids_of_a_sweep_stand_in_columns(browser: Browser, tmp_path: Path) -> None:
    names = ["cut:ratio=0.1", "cut:ratio=0.3", "whole", "cut:ratio=0.5", "cut:ratio=0.7"]
    cells = [f"needle-{length}-d0.50-of9-s0-1" for length in (500, 1000)]
    rows = [make_row(1.0, system=name, example_id=cell) for name in names for cell in cells]
    path = tmp_path / "page.html"
    path.write_text(HtmlReporter().render(make_result(rows, baseline="whole")), encoding="utf-8")
    read = "pairs => pairs.map(pair => { const box = pair.getBoundingClientRect(); return [box.left, box.top]; })"
    with Opened(browser, path.as_uri(), viewport={"width": 1200, "height": 900}) as opened:
        titles = opened.page.locator("#needles .pair > svg:first-child .group").all_text_contents()
        places = opened.page.eval_on_selector_all("#needles .pair", read)
    assert titles == ["whole", "cut 10%", "cut 30%", "cut 50%", "cut 70%"]
    columns, lines = ([round(place[axis]) for place in places] for axis in (0, 1))
    left, right = sorted(set(columns))  # the baseline has a line of its own; the others stand in two columns
    assert columns == [left, left, right, left, right]
    assert len(set(lines)) == 3


def test_filters_search_and_sort(browser: Browser, report: Path) -> None:
    with Opened(browser, report.as_uri()) as opened:
        page, found = opened.page, opened.page.locator("#found")
        page.select_option("#by-system", label="truncate 50%")
        opened.wait_for("of 80 rows")
        page.select_option("#by-outcome", "wrong")
        opened.wait_for("of 41 rows")  # those of the later half, and one that the cut goes through
        page.select_option("#by-flip", "-1")
        assert found.inner_text() == "1–41 of 41 rows (of 160)"
        page.fill("#search", "needle-1000")
        opened.wait_for("of 20 rows")
        page.click("#reset")
        opened.wait_for("of 160 rows")
        page.click("[data-sort=score]")
        assert set(opened.find_row_texts(4)) == {"0.000", "1.000"}
        assert opened.find_row_texts(4)[0] == "0.000"
        page.click("[data-sort=score]")
        assert set(opened.find_row_texts(4)) == {"1.000"}
        assert page.get_attribute("th.c-score", "aria-sort") == "descending"
        page.fill("#score-to", "0.5")
        opened.wait_for("of 41 rows")
        assert opened.said == []


def test_an_example_opens_by_keyboard_and_its_link_leads_to_it(browser: Browser, report: Path) -> None:
    with Opened(browser, report.as_uri()) as opened:
        page = opened.page
        page.keyboard.press("/")
        page.keyboard.type("d1.00")
        opened.wait_for("of 4 rows")
        page.locator("#search").blur()
        for key in ("j", "j", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("dialog[open]")
        title = page.locator("#one-title").inner_text()
        assert title == "needle-500-d1.00-of40-s0-039 · truncate 50%"
        dropped = page.locator("#one-body del").all_inner_texts()
        evidence = page.locator("#one-body del mark").all_inner_texts()
        assert dropped
        assert len(evidence) == 1, "the needle stands at the end, in the half that was cut off"
        address = page.evaluate("location.hash")
        page.keyboard.press("Escape")
        page.wait_for_url("**#examples")  # the dialog tells of its end a moment later; the page forbids to eval
        assert opened.said == []
    with Opened(browser, report.as_uri() + address) as opened:
        opened.page.wait_for_selector("dialog[open]")
        assert opened.page.locator("#one-title").inner_text() == title


def test_long_unchanged_text_is_folded_until_it_is_asked_for(browser: Browser, report: Path) -> None:
    with Opened(browser, report.as_uri()) as opened:
        page = opened.page
        page.fill("#search", "needle-1000-d0.97")
        page.select_option("#by-system", label="truncate 50%")
        opened.wait_for("of 1 rows")
        page.locator("#rows tr").click()
        page.wait_for_selector("dialog[open]")
        shown, folded = page.locator("#one-body pre").first, page.locator("#one-body .fold")
        assert folded.count() == 1
        before = len(shown.inner_text())
        hidden = int("".join(filter(str.isdigit, folded.inner_text())))
        folded.click()
        assert folded.count() == 0
        assert len(shown.inner_text()) > before + hidden - 100
        assert opened.said == []


@pytest.mark.parametrize("count", [2, 13, 24])
def test_no_label_of_a_plane_touches_another_and_no_table_scrolls(browser: Browser, tmp_path: Path, count: int) -> None:
    rows = [
        make_row(
            float(n % 7 > 0 or place % 3 == 0),
            system=f"cut:ratio={(place + 1) / 25}",
            example_id=n,
            input_tokens=4000,
            output_tokens=160 * (place + 1),
        )
        for place in range(count)
        for n in range(30)
    ]
    path = tmp_path / "page.html"
    names = {row.system: "context" for row in rows}
    path.write_text(HtmlReporter(wide=True).render(make_result(rows, returns=names)), encoding="utf-8")
    with Opened(browser, path.as_uri(), viewport={"width": 1280, "height": 900}) as opened:
        boxes = opened.page.eval_on_selector_all(
            "#pareto .window .point",
            "texts => texts.map(text => { const box = text.getBBox(); return [box.x, box.y + 3, box.x + box.width, "
            "box.y + box.height - 3]; })",
        )
        marks = opened.page.eval_on_selector_all(
            ".headline .system svg path",
            "marks => marks.map(mark => mark.getAttribute('class') + mark.getAttribute('d'))",
        )
        count_wide = "parts => parts.filter(part => part.scrollWidth > part.clientWidth + 1).length"
        wide = opened.page.eval_on_selector_all(".scroll, .plot", count_wide)
        opened.page.set_viewport_size({"width": 390, "height": 844})
        wide += opened.page.eval_on_selector_all(".scroll:has(.headline), nav", count_wide)
    assert len(boxes) == count
    for number, one in enumerate(boxes):
        for two in boxes[number + 1 :]:
            assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1], (one, two)
    assert len(set(marks)) == count
    assert wide == 0


def test_the_theme_can_be_switched_and_is_that_of_the_system_at_first(browser: Browser, report: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with Opened(browser, report.as_uri(), color_scheme="dark") as opened:
        assert opened.page.evaluate(ground) == "rgb(23, 24, 26)"
        opened.page.click("#theme")
        assert opened.page.evaluate(ground) == "rgb(252, 252, 251)"


def test_it_prints_what_is_read_and_not_what_is_searched(browser: Browser, report: Path) -> None:
    with Opened(browser, report.as_uri()) as opened:
        opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        opened.page.emulate_media(media="print")
        assert not any(map(opened.page.is_visible, (".banner", "#examples", "#pareto details")))
        assert all(map(opened.page.is_visible, ("h1", "#pareto svg", "details.reading ul", "details.missing ul")))
        assert len(opened.page.pdf(format="A4")) > 20_000


def test_marks_tell_their_values(browser: Browser, report: Path) -> None:
    with Opened(browser, report.as_uri()) as opened:
        opened.page.locator("#pareto .mark").first.hover()
        assert opened.page.locator("#tip").inner_text().startswith("passthrough: mean score 1.000")


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window(browser: Browser, report: Path, width: int) -> None:
    with Opened(browser, report.as_uri(), viewport={"width": width, "height": 800}) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, report: Path, scheme: str) -> None:
    script = read_axe()
    with Opened(browser, report.as_uri(), bypass_csp=True, color_scheme=scheme) as opened:
        opened.page.evaluate(script)
        for _ in range(2):
            found = opened.page.evaluate("axe.run()")["violations"]
            assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
            if not opened.page.locator("dialog[open]").count():
                opened.page.click("#rows tr")
                opened.page.wait_for_selector("dialog[open]")


def test_no_injection_runs_or_changes_the_layout(browser: Browser, tmp_path: Path) -> None:
    """Every text stands in ids, questions, contexts, gold answers, replies, errors and names of tools at once."""
    examples = [
        {"id": f"{number} {text}", "context": f"{text}\n{text}", "question": text, "answer": text, "dataset": text}
        for number, text in enumerate(INJECTIONS)
    ]

    def answers(example: dict[str, Any]) -> dict[str, Any]:
        if example["id"].startswith("1"):
            raise ValueError(example["question"])
        return {"response": example["question"], "context": example["context"][1:]}

    answers.__name__ = INJECTIONS[0]
    result = evaluate([answers], examples, cache_dir=str(tmp_path), progress=False)
    path = tmp_path / "page.html"
    path.write_text(HtmlReporter(str(tmp_path)).render(result), encoding="utf-8")
    with Opened(browser, path.as_uri(), viewport={"width": 1200, "height": 900}) as opened:
        page = opened.page
        page.click("#rows tr")
        page.wait_for_selector("dialog[open]")
        for _ in range(len(INJECTIONS) - 1):
            page.keyboard.press("ArrowRight")
        page.wait_for_selector("#later:disabled")
        page.wait_for_timeout(200)
        page.keyboard.press("Escape")
        page.mouse.move(400, 400)
        assert opened.said == []
        assert opened.asked == [path.as_uri()]
        assert page.evaluate("window.__ran") is None
        assert page.evaluate("document.documentElement.scrollWidth") == 1200
        assert page.evaluate("document.querySelectorAll('script:not([type])').length") == 1
        assert (
            page.evaluate(
                "document.querySelectorAll('iframe, img, object, embed, link, base, form:not(#picks)').length"
            )
            == 0
        )
        assert page.is_visible("#examples")


def test_many_rows_are_unpacked_part_by_part(browser: Browser, tmp_path: Path) -> None:
    """4,500 rows are packed in three parts and 45 blocks; how fast 50,000 open is measured by benchmarks/view.py."""
    rows = [
        make_row(
            float(number % 3 > 0), system=f"s{number % 5}", example_id=f"e{number // 5}", response=f"answer {number}"
        )
        for number in range(4_500)
    ]
    path = tmp_path / "page.html"
    path.write_text(HtmlReporter().render(make_result(rows)), encoding="utf-8")
    with Opened(browser, path.as_uri()) as opened:
        opened.page.fill("#search", "answer 449")
        wanted = sum("449" in f"e{number // 5} answer {number}" for number in range(4_500))
        opened.wait_for(f"of {wanted} rows")
        opened.page.fill("#search", "answer 4499")
        opened.wait_for("of 1 rows")
        opened.page.click("#rows tr")
        opened.page.wait_for_selector("dialog[open]")
        assert opened.page.locator("#one-title").inner_text() == "e899 · s4"
        assert "answer 4499" in opened.page.locator("#one-body").inner_text()


def test_a_context_of_a_million_characters_does_not_freeze_it(browser: Browser, tmp_path: Path) -> None:
    context = "All work and no play makes a dull day. " * 26_000

    def halve(example: dict[str, Any]) -> str:
        return str(example["context"])[: len(context) // 2]

    examples = [{"id": number, "context": context, "question": "q", "answer": "a"} for number in range(3)]
    result = evaluate([halve], examples, cache_dir=str(tmp_path), progress=False)
    path = tmp_path / "page.html"
    path.write_text(HtmlReporter(str(tmp_path)).render(result), encoding="utf-8")
    assert path.stat().st_size < 300_000
    with Opened(browser, path.as_uri()) as opened:
        opened.page.click("#rows tr")
        opened.page.wait_for_selector("dialog[open]")
        assert "characters are not shown" in opened.page.locator("#one-body").inner_text()


def test_several_runs_have_landmarks_of_their_own(browser: Browser, tmp_path: Path) -> None:
    script = read_axe()
    results = [
        make_result(
            [make_row(float(number % 2), system=name, example_id=number) for number in range(6) for name in "ab"]
        )
        for _ in range(2)
    ]
    path = tmp_path / "page.html"
    path.write_text("".join(HtmlReporter().write_runs(results)), encoding="utf-8")
    with Opened(browser, path.as_uri(), bypass_csp=True) as opened:
        opened.page.evaluate(script)
        found = opened.page.evaluate("axe.run()")["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
        opened.page.select_option("#by-run", label="2")
        opened.wait_for("of 12 rows (of 24)")
