"""The report as one HTML file: everything is in it, and its content policy lets it ask nothing of anybody."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files

from context_bench._version import __version__
from context_bench.report.axes import section
from context_bench.report.elements import Markup, element, join
from context_bench.report.example_pack import ExamplePack, Source
from context_bench.report.headline import headline_table, list_notes
from context_bench.report.method import describe_method, error_table
from context_bench.report.plot_grids import plot_evidence, plot_needles
from context_bench.report.plot_pareto import plot_pareto
from context_bench.report.plot_rows import plot_datasets, plot_meters, plot_times
from context_bench.report.run_facts import RunFacts
from context_bench.report.sentences import answer_sentence, ask_sentence, list_names

__all__ = ["Run", "make_page"]

Run = tuple[RunFacts, Iterable[Source]]
"""The facts of a run that are known before its rows are read, and its rows."""


@cache
def _read_asset(name: str) -> str:
    return files("context_bench.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"


def make_page(runs: Sequence[Run], rows: int) -> Iterator[str]:
    """Make the page, piece by piece.

    Args:
        runs: The runs in order; the rows of each are read once.
        rows: About how many rows there are in all.
    """
    pack = ExamplePack(rows)
    read = []
    for facts, sources in runs:
        for source in sources:
            facts.add(source)
            pack.add(source, facts.name, facts.read_score(source.row), facts.threshold)
        if facts.baseline is not None:
            pack.mark_flips(facts.name, facts.baseline)
        read.append(facts)
    index = pack.pack_index({"many": len(read) > 1, "baselines": {facts.name: facts.baseline for facts in read}})
    yield '<!doctype html>\n<html lang="en">\n'
    yield _head(read) + "\n<body>\n"
    yield _body(read, len(pack)) + "\n"
    yield element("script", {"type": "text/plain", "id": "index"}, Markup(index)) + "\n"
    for block in pack.blocks:
        yield element("script", {"type": "text/plain", "class": "block"}, Markup(block)) + "\n"
    yield element("script", None, Markup(_read_asset("page.js"))) + "\n</body>\n</html>\n"


def _head(runs: Sequence[RunFacts]) -> Markup:
    style, script = _read_asset("page.css"), _read_asset("page.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    title = f"{list_names([name for facts in runs for name in facts.result.systems], 3)}: context-bench report"
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "generator", "content": f"context-bench {__version__}"}),
        element("title", None, title),
        element("style", None, Markup(style)),
    )


def _body(runs: Sequence[RunFacts], rows: int) -> Markup:
    many = len(runs) > 1
    parts = [_describe_run(facts, f"r{number}-" if many else "") for number, facts in enumerate(runs, 1)]
    return join(
        element("a", {"href": "#main", "class": "skip"}, "Skip to the report"),
        _banner(many, runs),
        element("main", {"id": "main"}, *parts, _examples(rows)),
        element("footer", None, f"Made by context-bench {__version__}. This file asks nothing of any server."),
        element("div", {"id": "tip", "hidden": True}),
        _dialog(),
    )


_CONTENTS = {
    "headline": "Headline",
    "pareto": "Cost",
    "datasets": "Datasets",
    "needles": "Needles",
    "evidence": "Evidence",
    "meters": "Meters",
    "times": "Times",
    "errors": "Errors",
    "method": "Method",
}


def _banner(many: bool, runs: Sequence[RunFacts]) -> Markup:
    links = ({f"r{number}-run": facts.name for number, facts in enumerate(runs, 1)} if many else dict(_CONTENTS)) | {
        "examples": "Examples"
    }
    return element(
        "header",
        {"class": "banner"},
        element("span", {"class": "brand"}, "context-bench"),
        element(
            "nav", {"aria-label": "Parts"}, *(element("a", {"href": f"#{name}"}, text) for name, text in links.items())
        ),
        element("button", {"type": "button", "id": "theme", "aria-label": "Switch between light and dark"}, "◐"),
    )


def _describe_run(facts: RunFacts, prefix: str) -> Markup:
    heading = element("p", {"class": "run"}, f"Run {facts.name}" + (f", {facts.created}" if facts.created else ""))
    times = plot_times(facts, facts.latencies, "latency")
    overhead = (
        join(element("h3", None, "Overhead of the proxy"), plot_times(facts, facts.overheads, "overhead"))
        if facts.overheads
        else element("p", {"class": "missing"}, "Overhead of a proxy: not measured (a tap is needed).")
    )
    parts = {
        "headline": (headline_table(facts), list_notes(facts)),
        "pareto": (plot_pareto(facts),),
        "datasets": (plot_datasets(facts),),
        "needles": (plot_needles(facts),),
        "evidence": (plot_evidence(facts),),
        "meters": (plot_meters(facts),),
        "times": (times, overhead),
        "errors": (error_table(facts),),
        "method": (describe_method(facts),),
    }
    return element(
        "article",
        {"id": f"{prefix}run", "aria-label": f"Run {facts.name}"},
        heading,
        element("h1", None, ask_sentence(facts)),
        element("p", {"class": "answer"}, answer_sentence(facts)),
        *(section(prefix + name, _TITLES[name], *content) for name, content in parts.items()),
    )


_TITLES = {
    "headline": "Headline numbers",
    "pareto": "Quality against cost",
    "datasets": "Quality by dataset",
    "needles": "Depth and length",
    "evidence": "Evidence: survived or lost, right or wrong",
    "meters": "Three meters of tokens",
    "times": "Latency and overhead",
    "errors": "Errors by kind",
    "method": "How it was measured",
}


def _select(name: str, title: str, *options: tuple[str, str]) -> Markup:
    choices = [element("option", {"value": value}, text) for value, text in (("", "all"), *options)]
    return element("label", {"class": "pick"}, title, element("select", {"id": f"by-{name}"}, *choices))


def _examples(rows: int) -> Markup:
    if not rows:
        return section("examples", "Examples", element("p", {"class": "missing"}, "The rows were not kept."))
    pick = [
        _select("run", "run"),
        _select("system", "system"),
        _select("dataset", "dataset"),
        _select("outcome", "outcome", *((each, each) for each in ("right", "wrong", "error", "unscored"))),
        _select("evidence", "evidence", ("1", "survived"), ("0", "lost"), ("null", "not measured")),
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
            element("p", {"id": "found", "role": "status"}, f"{rows:,} rows"),
            element("button", {"type": "button", "id": "before"}, "Previous"),
            element("button", {"type": "button", "id": "after"}, "Next"),
            element("button", {"type": "button", "id": "reset"}, "Show all"),
        ),
        element(
            "div",
            {"class": "scroll", "tabindex": 0, "role": "region", "aria-label": "Table: examples"},
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


def _dialog() -> Markup:
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
