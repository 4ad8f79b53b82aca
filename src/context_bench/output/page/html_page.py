"""The report as one self-contained HTML file that makes no request; plots as files (`--plots`)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from context_bench._version import __version__
from context_bench.compare.seeds import merge_row
from context_bench.errors import UsageError
from context_bench.numbers import NUM_EXAMPLES
from context_bench.output.elements import Child, Markup, element, fill_template, join, read_asset, section
from context_bench.output.page.answer import show_answer
from context_bench.output.page.example_pack import ExamplePack
from context_bench.output.page.examples import examples_section
from context_bench.output.page.headline import (
    compare_headlines,
    describe_memory,
    headline_table,
    note_headline,
)
from context_bench.output.page.run_facts import RunFacts, Source, to_source, write_time
from context_bench.output.page.sections import describe_method, error_table, say_missing, show_charts
from context_bench.output.plots import ResultPlots
from context_bench.output.plots.result_plots import check_png
from context_bench.output.plots.svg import read_style
from context_bench.results import EvalResult
from context_bench.store import Store
from context_bench.store.backend import RunRecord
from context_bench.text import list_names


@cache
def _read_styles() -> str:
    return f"{read_style()}\n{read_asset('page.css')}"


@cache
def _join_scripts(*names: str) -> str:
    parts = "\n\n".join(read_asset(f"{name}.js") for name in names)
    return f'"use strict";\n(() => {{\n{parts}\n}})();'


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"


def write_policy(*scripts: str, served: bool = False) -> str:
    """Write the content policy of a page with these parts of the script.

    A served page may contact only its own server; a page in a file may contact no server.
    """
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(_join_scripts(*scripts))}",
            f"style-src {_hash(_read_styles())}",
            *(["connect-src 'self'", "frame-ancestors 'none'"] if served else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def page_head(title: str, policy: str | None) -> Markup:
    """Make the head; without a `policy`, the server sends the policy."""
    policies = [] if policy is None else [element("meta", {"http-equiv": "Content-Security-Policy", "content": policy})]
    return element(
        "head",
        None,
        element("meta", {"charset": "utf-8"}),
        *policies,
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "generator", "content": f"context-bench {__version__}"}),
        element("title", None, title),
        element("style", None, Markup(_read_styles())),
    )


def page_script(*scripts: str) -> Markup:
    """Join the parts of a page's script."""
    return element("script", None, Markup(_join_scripts(*scripts)))


def banner(links: dict[str, str], home: str | None = None) -> Markup:
    """Make the top line: links to the parts of the page, and the theme switch."""
    shown = [element("a", {"href": address}, text) for address, text in links.items()]
    return element(
        "header",
        {"class": "banner"},
        element("a" if home else "span", {"href": home, "class": "brand"}, "context-bench"),
        element("nav", {"aria-label": "Parts"}, *shown),
        element("button", {"type": "button", "id": "theme", "aria-label": "Switch between light and dark"}, "◐"),
    )


Run = tuple[RunFacts, Iterable[Source]]  # the facts of a run known before reading its rows, and its rows


def make_page(runs: Sequence[Run], rows: int) -> Iterator[str]:
    """Make the page, piece by piece.

    The rows of each run are read once; `rows` is their approximate total.
    """
    with ExamplePack(rows) as pack:
        read = []
        for facts, sources in runs:
            pack.begin_run(facts.name, facts.baseline)
            for source in sources:
                facts.add(source)
                pack.add(source, facts.read_score(source.row), facts.threshold)
            read.append(facts)
        pack.close()
        for number, facts in enumerate(read, 1):
            facts.counts = pack.count_kinds(number)
        yield '<!doctype html>\n<html lang="en">\n'
        yield page_head(name_page(read), write_policy(*_SCRIPTS)) + "\n<body>\n"
        footer = f"Made by context-bench {__version__}. This file contacts no server."
        yield page_body(read, len(pack), footer) + "\n"
        yield _embed(pack.pack_index(), {"id": "index"})
        for part in pack.pack_columns():
            yield _embed(part, {"class": "part"})
        for block in pack.read_blocks():
            yield _embed(block, {"class": "block"})
        yield page_script(*_SCRIPTS) + "\n</body>\n</html>\n"


_SCRIPTS = ("common", "embedded", "examples")


def plain_page(title: str, parts: Mapping[str, tuple[str, Markup]], *top: Child) -> str:
    """Make a page without examples: its top, then its parts by name, each with a heading."""
    links = {f"#{name}": heading for name, (heading, _) in parts.items()}
    sections = [section(name, heading, content) for name, (heading, content) in parts.items()]
    body = element(
        "body",
        None,
        banner(links),
        element("main", {"id": "main"}, element("article", None, *top, *sections)),
        element("footer", None, f"Made by context-bench {__version__}. This file contacts no server."),
        page_script("common"),
    )
    return f'<!doctype html>\n<html lang="en">\n{page_head(title, write_policy("common"))}\n{body}\n</html>\n'


def _embed(packed: str, attributes: dict[str, str]) -> str:
    return element("script", {"type": "text/plain", **attributes}, Markup(packed)) + "\n"


def name_page(runs: Sequence[RunFacts]) -> str:
    """Make the title of a page from its systems."""
    return f"{list_names([name for facts in runs for name in facts.result.systems], 3)}: context-bench report"


def page_body(
    runs: Sequence[RunFacts],
    rows: int | None,
    footer: str,
    home: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Markup:
    """Make the visible page: the runs one after another, then the list of all examples.

    `rows` is None while they are being read; `home` is the address of the list of runs, if any; `about` has attributes
    for the page's script.
    """
    many = len(runs) > 1
    links = {f"#r{number}-run": facts.name for number, facts in enumerate(runs, 1)}
    if not many:
        links = {f"#{name}": _PARTS[name][0] for name in _list_parts(runs[0])[0]}
    return join(
        element("a", {"href": "#main", "class": "skip"}, "Skip to the report"),
        banner({**({"#side": "Side by side"} if many else {}), **links, "#examples": "Examples"}, home),
        element("main", {"id": "main", **(about or {})}, *describe_runs(runs), examples_section(rows)),
        element("footer", None, footer),
        element("div", {"id": "tip", "hidden": True}),
        fill_template("example.html"),
    )


def describe_runs(runs: Sequence[RunFacts]) -> list[Markup]:
    """Describe runs one after another; a comparison comes first if there are several."""
    if len(runs) == 1:
        return [_describe_run(runs[0], "")]
    articles = [_describe_run(facts, f"r{number}-", f"run {facts.name}") for number, facts in enumerate(runs, 1)]
    return [_put_side_by_side(runs), *articles]


def _put_side_by_side(runs: Sequence[RunFacts]) -> Markup:
    about = (
        "Systems with the same name are listed together. Each verdict compares with the baseline of the same run; to "
        "compare runs, use context-bench compare."
    )
    return section("side", "Side by side", compare_headlines(runs), element("p", {"class": "about"}, about))


def _list_parts(facts: RunFacts) -> tuple[dict[str, Markup], dict[str, str]]:
    """List the parts of a run with their content, and separately the unmeasured parts, each with the reason."""
    parts: dict[str, Markup | str] = {
        "headline": join(headline_table(facts), note_headline(facts)),
        **({"memory": describe_memory(facts)} if facts.is_memory else {}),
        **show_charts(facts),
        "errors": error_table(facts),
    }
    if facts.unread:
        parts |= dict.fromkeys(_FROM_ROWS, say_missing(facts.unread))
    parts["method"] = describe_method(facts)
    shown = {name: part for name, part in parts.items() if isinstance(part, Markup)}
    return shown, {name: part for name, part in parts.items() if not isinstance(part, Markup)}


def _describe_run(facts: RunFacts, prefix: str, of: str = "") -> Markup:
    shown, missing = _list_parts(facts)
    reasons = (element("li", None, element("b", None, _PARTS[name][1]), f": {why}") for name, why in missing.items())
    about = element("summary", None, f"Not measured ({len(missing)})")
    return element(
        "article",
        {"id": f"{prefix}run", "aria-label": f"Run {facts.name}"},
        show_answer(facts),
        element("p", {"class": "run"}, f"Run {facts.name}" + (f", {facts.created}" if facts.created else "")),
        *(section(prefix + name, _PARTS[name][1], content, of=of) for name, content in shown.items()),
        element("details", {"class": "missing"}, about, element("ul", None, *reasons)) if missing else None,
    )


_FROM_ROWS = ("curve", "needles", "depth", "times", "overhead", "errors")
"""Parts that need all rows; the others come from the summary of the run."""


_PARTS = {
    "headline": ("Headline", "Headline numbers"),
    "memory": ("Memory", "Memory: retrieval, probes and costs"),
    "pareto": ("Cost", "Quality against cost"),
    "datasets": ("Datasets", "Quality by dataset"),
    "curve": ("Curve", "Curve of a sweep"),
    "needles": ("Needles", "Depth and length"),
    "depth": ("Evidence depth", "Position of the evidence"),
    "evidence": ("Evidence", "Evidence: survived or lost, right or wrong"),
    "meters": ("Meters", "Tokens saved, by three meters"),
    "times": ("Times", "Latency"),
    "overhead": ("Overhead", "Overhead of the proxy"),
    "errors": ("Errors", "Errors by kind"),
    "method": ("Method", "How it was measured"),
}
"""The parts of a run in their order: the text of the link, and the title."""


# --- reporter and files


class HtmlReporter:
    """One self-contained page: numbers, plots and all examples.

    Args:
        store: The folder of the run's store, which has the contexts; without it, the page shows only the data of
            each row.
        wide: Whether the table with all columns is initially open.
    """

    name = "html"

    def __init__(self, store: str | None = None, wide: bool = False) -> None:
        self._store, self._wide = store, wide

    def render(self, result: EvalResult) -> str:
        """Render the page."""
        return "".join(self.write_runs([result]))

    def render_parts(self, result: EvalResult) -> Iterator[str]:
        """Render the page piece by piece; memory use hardly grows with the number of rows."""
        return self.write_runs([result])

    def write_runs(self, results: Sequence[EvalResult]) -> Iterator[str]:
        """Write several runs as one page, piece by piece, with one list of examples."""
        with ExitStack() as open_stores:
            runs = [_open_run(result, self._store, number, open_stores) for number, result in enumerate(results, 1)]
            for facts, _ in runs:
                facts.wide = self._wide
            rows = sum(_count_rows(result) for result in results)
            yield from make_page(runs, rows)


def _open_run(result: EvalResult, folder: str | None, number: int, open_stores: ExitStack) -> Run:
    """Open a run for reading: its facts, and its rows with their examples if the store has them.

    `number` is the name of a run without id and file; `open_stores` closes the store at the end.
    """
    run = result.settings.run
    if folder is not None and run is not None and Path(folder).is_dir():
        store = open_stores.enter_context(Store(folder, readonly=True, create=False))
        info = store.run(run)
        return RunFacts(result, info.id, write_time(info)), _read_sources(result, store.run_records(info))
    name = str(run if run is not None else result.settings.file or number)
    return RunFacts(result, name), (Source(row) for row in result.rows)


def _read_sources(result: EvalResult, records: Iterable[RunRecord]) -> Iterator[Source]:
    """Read the rows of a run with their examples; merged seeds use their common name."""
    seeds = result.settings.seeds
    repeats = result.settings.repeats // max(map(len, seeds.values()), default=1)
    for source in map(to_source, records):
        yield source._replace(row=merge_row(source.row, seeds, repeats)) if seeds else source


def _count_rows(result: EvalResult) -> int:
    counted = sum(int(values.get(NUM_EXAMPLES) or 0) for values in result.summary.values())
    return max(len(result.rows), counted)


def check_plots(folder: str) -> None:
    """Refuse an unwritable folder before any work."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".context-bench-"):  # the folder may exist without write permission
            pass
    except OSError as error:
        raise UsageError(f"cannot write to --plots {folder}: {error.strerror or error}") from error


def write_plots(result: EvalResult, folder: str, store: str | None = None) -> list[str]:
    """Write every plot that the run has data for, as SVG and, with the extra `plots`, as PNG.

    Args:
        result: The run.
        folder: The folder of the files; created if missing.
        store: The folder of the run's store, which has the examples.

    Returns:
        Sentences that name the written and the missing plots.
    """
    check_plots(folder)
    with ExitStack() as open_stores:
        facts, sources = _open_run(result, store, 1, open_stores)
        for source in sources:
            facts.add(source)
    plots, missing = ResultPlots(result, facts.cells, facts.latencies, facts.draw_curves()).draw_all()
    endings, told = [".svg", ".png"], []
    try:
        check_png()
    except UsageError as error:
        endings, told = [".svg"], [str(error)]
    written = [plot.save(Path(folder) / f"{plot.name}{ending}") for plot in plots for ending in endings]
    told = [f"wrote {', '.join(map(str, written))}", *told] if written else []
    if missing:
        told.append(f"this run has no data for {' and '.join(', '.join(missing).rsplit(', ', 1))}")
    return told
