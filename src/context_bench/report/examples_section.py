"""The part of a page that lists the examples, and the dialog that shows one: filled by the page's script."""

from __future__ import annotations

from context_bench.report.axes import section
from context_bench.report.elements import Markup, element
from context_bench.report.row_values import EVIDENCE, OUTCOMES

__all__ = ["examples_section", "one_example"]


def _select(name: str, title: str, *options: tuple[str, str]) -> Markup:
    choices = [element("option", {"value": value}, text) for value, text in (("", "all"), *options)]
    return element("label", {"class": "pick"}, title, element("select", {"id": f"by-{name}"}, *choices))


def examples_section(rows: int | None) -> Markup:
    """Make the list; `rows` is None where it is not known yet how many there are."""
    if rows == 0:
        return section("examples", "Examples", element("p", {"class": "missing"}, "The rows were not kept."))
    pick = [
        _select("run", "run"),
        _select("system", "system"),
        _select("dataset", "dataset"),
        _select("outcome", "outcome", *((str(number), name) for number, name in enumerate(OUTCOMES))),
        _select(
            "evidence",
            "evidence",
            *((str(number), state) for number, state in enumerate(EVIDENCE)),
            ("null", "not measured"),
        ),
        _select("flip", "against the baseline", ("-1", "right became wrong"), ("1", "wrong became right")),
        _select("error", "error kind"),
    ]
    limits = [
        element(
            "label",
            {"class": "pick"},
            f"score {side}",
            element("input", {"id": f"score-{side.replace(' ', '-')}", "type": "number", "step": "any"}),
        )
        for side in ("from", "to")
    ]
    search = element(
        "label",
        {"class": "search"},
        element("span", {"class": "sr"}, "Search"),
        element("input", {"id": "search", "type": "search", "placeholder": "Search ids, questions, answers  ( / )"}),
    )
    return section(
        "examples",
        "Examples",
        element("noscript", None, element("p", {"class": "missing"}, "The list of examples needs JavaScript.")),
        element("form", {"class": "picks", "id": "picks", "role": "search"}, search, *pick, *limits),
        element(
            "div",
            {"class": "bar"},
            element("p", {"id": "found", "role": "status"}, "" if rows is None else f"{rows:,} rows"),
            element("button", {"type": "button", "id": "before"}, "Previous"),
            element("button", {"type": "button", "id": "after"}, "Next"),
            element("button", {"type": "button", "id": "reset"}, "Show all"),
        ),
        element(
            "div",
            {"class": "scroll", "tabindex": 0, "role": "group", "aria-label": "Table: examples"},
            element(
                "table",
                {"class": "list", "id": "list"},
                element("thead", None, element("tr", {"id": "heads"})),
                element("tbody", {"id": "rows"}),
            ),
        ),
        element(
            "p",
            {"class": "about"},
            "Keys: / searches, j and k (or the arrows) move, Enter opens, n and p turn pages, Esc closes.",
        ),
    )


def one_example() -> Markup:
    """Make the dialog of one example."""
    buttons = [
        element("button", {"type": "button", "id": "earlier", "aria-label": "Previous example"}, "←"),
        element("button", {"type": "button", "id": "later", "aria-label": "Next example"}, "→"),
        element("button", {"type": "button", "id": "copy"}, "Copy link"),
        element("button", {"type": "button", "id": "close"}, "Close"),
    ]
    return element(
        "dialog",
        {"id": "one", "aria-labelledby": "one-title"},
        element("div", {"class": "top"}, element("h2", {"id": "one-title", "tabindex": -1}), *buttons),
        element("div", {"id": "one-body"}),
    )
