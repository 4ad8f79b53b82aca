"""The two pages of the viewer: the list of runs, and runs as the report shows them."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench._version import __version__
from context_bench.report.elements import Markup, element, join
from context_bench.report.page_head import banner, page_head, page_script, write_policy
from context_bench.report.run_facts import RunFacts
from context_bench.report.single_page import name_page, page_body

__all__ = ["LIST_POLICY", "RUN_POLICY", "list_page", "run_page"]

_LIST = ("common", "runs")
_RUN = ("common", "served", "examples")
LIST_POLICY = write_policy(*_LIST, served=True)
RUN_POLICY = write_policy(*_RUN, served=True)


def _whole_page(title: str, body: Markup, scripts: Sequence[str]) -> str:
    head = page_head(title, None)
    return f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}\n{page_script(*scripts)}\n</body>\n</html>\n'


def run_page(runs: Sequence[RunFacts], version: str) -> str:
    """Make the page of a run, or of several side by side."""
    footer = f"Served by context-bench {__version__}, to this machine alone."
    about = {"data-runs": "+".join(facts.name for facts in runs), "data-version": version}
    body = page_body(runs, None, footer, home="../", about=about)
    return _whole_page(name_page(runs), join(_trouble(), body), _RUN)


def _trouble() -> Markup:
    return element("p", {"id": "trouble", "role": "alert", "hidden": True})


def list_page(folder: str) -> str:
    """Make the list of runs, which the page's script fills."""
    search = element(
        "label",
        {"class": "search"},
        element("span", {"class": "sr"}, "Search"),
        element("input", {"id": "search", "type": "search", "placeholder": "Search runs, systems, datasets  ( / )"}),
    )
    bar = element(
        "div",
        {"class": "bar"},
        element("p", {"id": "found", "role": "status"}),
        element("button", {"type": "button", "id": "side-by-side", "disabled": True}, "Open side by side"),
    )
    table = element(
        "table",
        {"class": "list all-runs", "id": "list"},
        element("thead", None, element("tr", {"id": "heads"})),
        element("tbody", {"id": "rows"}),
    )
    main = element(
        "main",
        {"id": "main"},
        element("p", {"class": "run"}, f"Store {folder}"),
        element("h1", None, "Runs"),
        element("noscript", None, element("p", {"class": "missing"}, "The list of runs needs JavaScript.")),
        element("form", {"class": "picks", "id": "picks", "role": "search"}, search),
        bar,
        element("div", {"class": "scroll", "tabindex": 0, "role": "group", "aria-label": "Table: runs"}, table),
        element(
            "p",
            {"class": "about"},
            "Keys: / searches, j and k (or the arrows) move, Enter opens. The list follows the store; choose two or "
            "more runs to see them side by side.",
        ),
    )
    body = join(
        element("a", {"href": "#main", "class": "skip"}, "Skip to the list"),
        _trouble(),
        banner({}),
        main,
        element("footer", None, f"Served by context-bench {__version__}, to this machine alone."),
        element("div", {"id": "tip", "hidden": True}),
    )
    return _whole_page("Runs: context-bench", body, _LIST)
