"""`result.plot`: each plot has the numbers of a real run; where there is nothing to draw, a sentence says so."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TypeVar
from xml.etree import ElementTree

import pytest

from context_bench import EvalResult, evaluate
from context_bench.compare.sweeps import name_briefly
from context_bench.errors import MissingExtra, UsageError
from context_bench.output.plots import KINDS, Plot
from context_bench.output.plots.by_system import spread_times
from context_bench.output.plots.chart import Dot, Grids, Histogram, Plane, Rows
from context_bench.results import EvalRow
from fonts import require_font
from injections import INJECTIONS
from report_pages import make_result
from rows import make_row

SYSTEMS = ["passthrough", "bm25:ratio=0.1|0.3", "truncate:ratio=0.25|0.5"]


@pytest.fixture(scope="module")
def swept() -> EvalResult:
    return evaluate(SYSTEMS, ["needle:length=400|800,n=10", "kv:length=400,n=5"], progress=False)


@pytest.fixture(scope="module")
def with_evidence() -> EvalResult:
    summary = {
        "lossy": {
            "evidence_survival": 0.5,
            "failed_anyway": 0.125,
            "lost_by_system": 0.375,
            "evidence_rows": 40.0,
            "right_without_evidence": 0.125,
            "mean_score": 0.5,
            "cost_of_pass": 3.0,
        },
        "plain": {"mean_score": 0.5},
    }
    return EvalResult([], summary)


Body = TypeVar("Body", Plane, Rows, Grids)


def body(plot: Plot, kind: type[Body]) -> Body:
    assert isinstance(plot.chart.body, kind)
    return plot.chart.body


def test_the_pareto_plot_has_the_numbers_of_the_run(swept: EvalResult) -> None:
    plane = body(swept.plot.pareto(), Plane)
    points = {point.label: point for point in plane.points}
    assert list(points) == list(name_briefly(swept.systems).values())
    for name, point in zip(swept.systems, points.values()):
        interval = swept.intervals[name]["macro_score"]
        assert point.y == swept.summary[name]["macro_score"]
        assert point.x == swept.summary[name]["mean_output_tokens"]
        assert point.limits == (interval.low, interval.high)
    front = [name for name in swept.systems if swept.summary[name]["pareto_front"]]
    brief = name_briefly(swept.systems)
    assert [point.label for point in plane.points if point.look == "filled"] == [brief[name] for name in front]


def test_the_curve_has_a_point_for_each_setting_and_the_baseline(swept: EvalResult) -> None:
    plane = body(swept.plot.curve(), Plane)
    drawn = {(point.series % 8, point.label): point for point in plane.points}
    assert list(drawn) == [(1, "0.1"), (1, "0.3"), (2, "0.25"), (2, "0.5")]  # passthrough has the first colour
    for number, curve in enumerate(swept.curves(), 1):
        for point in curve.points:
            found = drawn[number, point.setting]
            assert (found.x, found.y) == (point.tokens, point.quality.value)
            assert found.limits == (point.quality.low, point.quality.high)
    baseline, *curves = plane.lines
    assert (baseline.kind, baseline.label) == ("baseline", "passthrough (baseline)")
    assert [y for _, y in baseline.points] == [swept.summary["passthrough"]["macro_score"]] * 2
    assert [line.points for line in curves] == [
        [(point.tokens, point.quality.value) for point in curve.points] for curve in swept.curves()
    ]
    assert [key.text for key in plane.legend] == ["bm25 (ratio)", "truncate (ratio)"]


def test_the_heatmap_has_a_grid_for_each_system_and_its_difference(swept: EvalResult) -> None:
    lines = body(swept.plot.heatmap(), Grids).lines
    assert [[grid.title for grid in line] for line in lines] == [
        ["passthrough"],
        *([name, "minus passthrough"] for name in list(name_briefly(swept.systems).values())[1:]),
    ]
    by_hand: dict[tuple[str, str], list[float]] = {}
    for row in swept.rows:
        if row.system == "truncate:ratio=0.25" and row.dataset.startswith("needle"):
            length, depth = str(row.example_id).split("-")[1:3]
            place = min(4, int(float(depth[1:]) * 5))
            by_hand.setdefault((length, f"{place * 20}–{place * 20 + 20}%"), []).append(row.scores["score"])
    (grid,) = (line[0] for line in lines if line[0].title == "truncate 25%")
    drawn = {
        (column, row): cell.text
        for row, cells in zip(grid.rows, grid.cells)
        for column, cell in zip(grid.columns, cells)
        if cell.shade != "none"
    }
    assert drawn == {cell: f"{sum(scores) / len(scores):.2f}" for cell, scores in by_hand.items()}


def test_quality_by_dataset(swept: EvalResult) -> None:
    groups = body(swept.plot.datasets(), Rows).groups
    tags = {brief: tag for tag, brief in name_briefly(swept.config["datasets"]).items()}
    names = {brief: name for name, brief in name_briefly(swept.systems).items()}
    assert {(group.title, row.name) for group in groups for row in group.rows} == {
        (tag, name) for tag in tags for name in names
    }
    for group in groups:
        assert group.baseline == swept.summary["passthrough"][f"dataset:{tags[group.title]}"]
        for row in group.rows:
            assert isinstance(row.mark, Dot)
            assert row.mark.value == swept.summary[names[row.name]][f"dataset:{tags[group.title]}"]


def test_latencies_are_all_in_the_histogram(swept: EvalResult) -> None:
    (group,) = body(swept.plot.latency(), Rows).groups
    marks = {row.name: row.mark for row in group.rows}
    assert list(marks) == list(name_briefly(swept.systems).values())
    for name, mark in zip(swept.systems, marks.values()):
        assert isinstance(mark, Histogram)
        times = sorted(row.latency for row in swept.rows if row.system == name)
        assert (sum(mark.bins), mark.median) == (25, times[12])


def test_evidence_is_a_square_whose_shares_add_up(with_evidence: EvalResult) -> None:
    plot = with_evidence.plot.evidence()
    ((square,),) = body(plot, Grids).lines
    # survived 0.5, of which 0.125 failed anyway; lost 0.5, of which 0.125 were right without it
    assert [[(cell.text, *cell.more, cell.shade) for cell in row] for row in square.cells] == [
        [("37.5%", "right", "15 rows", "q3"), ("12.5%", "failed anyway", "5 rows", "even")],
        [("12.5%", "right without it", "5 rows", "even"), ("37.5%", "lost by the system", "15 rows", "down2")],
    ]
    assert plot.title == "lossy loses the evidence and the answer in 38% of examples"


def test_what_a_run_has_no_data_for_is_said(swept: EvalResult) -> None:
    plots, missing = swept.plot.draw_all()
    assert [plot.name for plot in plots] == ["pareto", "curve", "heatmap", "datasets", "latency"]
    assert list(missing) == ["evidence"]
    empty = EvalResult([], {})
    assert [list(empty.plot.draw_all()[1]), empty.plot.draw_all()[0]] == [list(KINDS), []]
    with pytest.raises(UsageError, match="there is no heatmap of this run"):
        empty.plot.heatmap()


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_is_saved_and_is_valid_xml(
    kind: str, swept: EvalResult, with_evidence: EvalResult, tmp_path: Path
) -> None:
    plot: Plot = getattr((with_evidence if kind == "evidence" else swept).plot, kind)()
    svg = plot.save(tmp_path / "plot.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "".join(plot.title.split()) in "".join(texts).replace(" ", "")  # a long title has several lines
    assert plot.to_svg() == svg  # the same chart, the same bytes
    assert "var(" not in svg
    assert "light-dark(" not in svg  # programs that know no variables show the colours too


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_is_saved_as_png(kind: str, swept: EvalResult, with_evidence: EvalResult, tmp_path: Path) -> None:
    require_font()
    plot: Plot = getattr((with_evidence if kind == "evidence" else swept).plot, kind)()
    assert plot.save(tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_other_endings_and_places_are_refused_in_one_sentence(swept: EvalResult, tmp_path: Path) -> None:
    plot = swept.plot.pareto()
    for ending in ("pdf", "json"):
        with pytest.raises(UsageError, match=rf"must be saved as \.svg or \.png \(got 'plot\.{ending}'\)"):
            plot.save(tmp_path / f"plot.{ending}")
    with pytest.raises(UsageError, match="cannot write the plot to"):
        plot.save(tmp_path / "nowhere" / "plot.svg")


def test_a_system_without_fonts_is_told_so(swept: EvalResult, monkeypatch: pytest.MonkeyPatch) -> None:
    resvg_py = pytest.importorskip("resvg_py")
    draw = functools.partial(resvg_py.svg_to_bytes, skip_system_fonts=True)
    monkeypatch.setattr(resvg_py, "svg_to_bytes", draw)
    with pytest.raises(UsageError, match="a plot as PNG needs a font, and this system has none"):
        swept.plot.pareto().to_png()


def test_a_notebook_gets_svg(swept: EvalResult) -> None:
    bundle = swept.plot.pareto()._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "text/plain"}
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"].startswith("Plot(pareto: ")


def test_without_the_extra_there_is_svg_and_png_names_it(
    swept: EvalResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    plot = swept.plot.pareto()
    with pytest.raises(MissingExtra, match="plots"):
        plot.save(tmp_path / "plot.png")
    assert plot.save(tmp_path / "plot.svg").exists()
    assert "<img" in swept._repr_html_()


def test_hostile_names_are_texts_in_every_picture() -> None:
    """All of them in few pictures: a picture takes time."""
    hostile = [name for name in INJECTIONS if len(name) < 200]
    for start in range(0, len(hostile), 40):
        names = hostile[start : start + 40]
        rows = [
            EvalRow(name, f"x-{length}-d0.50-0", {"score": 0.5}, 100, 50, {"output": "context"}, 0.1, tag)
            for tag in (names[0], "constructor", "__proto__")
            for name in names
            for length in (100, 200)
        ]
        result = make_result(rows, returns=dict.fromkeys(names, "context"))
        for plot in result.plot.draw_all()[0]:
            root = ElementTree.fromstring(plot.to_svg())
            tags = {each.tag.rpartition("}")[2] for each in root.iter()}
            assert tags <= {"svg", "g", "path", "text", "rect", "line", "title", "style"}
            attributes = {name for each in root.iter() for name in each.attrib}
            assert not {name for name in attributes if name.startswith("on") or "href" in name}


def test_a_result_in_a_notebook_is_its_table_and_a_picture(swept: EvalResult) -> None:
    page = swept._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<tr>") == 1 + len(SYSTEMS) + 2
    assert '<img alt="On the Pareto front of quality and cost: ' in page
    assert 'src="data:image/svg+xml;base64,' in page


@pytest.mark.parametrize("name", ["<script>x</script>", '"><img src=x onerror=x>', "</table>", "a\x1b[31m"])
def test_a_hostile_name_in_a_notebook_is_text(name: str) -> None:
    page = EvalResult([], {name: {"mean_score": 0.5}})._repr_html_()
    assert "<script" not in page
    assert page.count("<img") == 0
    assert page.count("</table>") == 1
    assert "\x1b" not in page


def test_median_and_p95_of_times_are_those_of_the_summary() -> None:
    """Of 1, 2, 3 and 4 seconds the median is 2.5, and 95% of the way from the first to the last is 3.85."""
    found = spread_times({"a": [4.0, 1.0, 3.0, 2.0]}, ["a"])
    assert found is not None
    assert (found[1]["a"].median, found[1]["a"].p95) == (2.5, pytest.approx(3.85))
    rows = [make_row(1.0, system="a", example_id=number, latency=float(number + 1)) for number in range(4)]
    assert make_result(rows).summary["a"]["latency_median"] == 2.5
