"""`result.plot`: each plot has the numbers of a real run; where there is nothing to draw, a sentence says so."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from context_bench import EvalResult, evaluate
from context_bench.errors import MissingExtra, UsageError
from context_bench.output.plots import KINDS, Plot
from context_bench.output.plots.times import spread_times
from context_bench.results import EvalRow
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


def list_data(spec: Any) -> Iterator[dict[str, Any]]:
    """List every row of data that a spec holds."""
    if isinstance(spec, dict):
        values = spec.get("data", {}).get("values", []) if isinstance(spec.get("data"), dict) else []
        yield from values
        for key, part in spec.items():
            if key != "data":
                yield from list_data(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from list_data(part)


def test_the_pareto_plot_has_the_numbers_of_the_run(swept: EvalResult) -> None:
    points = {row["system"]: row for row in list_data(swept.plot.pareto().spec) if "kind" in row and "cost" in row}
    assert list(points) == swept.systems
    for name, point in points.items():
        interval = swept.intervals[name]["macro_score"]
        assert point["quality"] == swept.summary[name]["macro_score"]
        assert point["cost"] == swept.summary[name]["mean_output_tokens"]
        assert (point["low"], point["high"]) == (interval.low, interval.high)


def test_the_curve_has_a_point_for_each_setting_and_the_baseline(swept: EvalResult) -> None:
    rows = list(list_data(swept.plot.curve().spec))
    found = {(row["curve"], row["setting"]): row for row in rows if "setting" in row}
    assert list(found) == [
        *(("bm25", "ratio=0.1"), ("bm25", "ratio=0.3")),
        *(("truncate", "ratio=0.25"), ("truncate", "ratio=0.5")),
    ]
    for curve in swept.curves():
        for point in curve.points:
            drawn = found[curve.name, f"ratio={point.setting}"]
            assert (drawn["tokens"], drawn["score"]) == (point.tokens, point.quality.value)
            assert (drawn["low"], drawn["high"]) == (point.quality.low, point.quality.high)
    assert any(row.get("label") == "passthrough (baseline)" for row in rows)


def test_the_heatmap_has_a_grid_for_each_system_and_its_difference(swept: EvalResult) -> None:
    spec = swept.plot.heatmap().spec
    titles = [grid["title"]["text"] for grid in spec["concat"] if "title" in grid]
    assert titles == ["passthrough"] + [text for name in swept.systems[1:] for text in (name, "minus passthrough")]
    by_hand: dict[tuple[str, str], list[float]] = {}
    for row in swept.rows:
        if row.system == "truncate:ratio=0.25" and row.dataset.startswith("needle"):
            length, depth = str(row.example_id).split("-")[1:3]
            place = min(4, int(float(depth[1:]) * 5))
            by_hand.setdefault((length, f"{place * 20}–{place * 20 + 20}%"), []).append(row.scores["score"])
    grid = next(each for each in spec["concat"] if each.get("title", {}).get("text") == "truncate:ratio=0.25")
    drawn = {(row["length"], row["depth"]): row["score"] for row in grid["data"]["values"]}
    assert drawn == {cell: pytest.approx(sum(scores) / len(scores), abs=1e-4) for cell, scores in by_hand.items()}


def test_quality_by_dataset(swept: EvalResult) -> None:
    rows = [row for row in list_data(swept.plot.datasets().spec) if "dataset" in row]
    assert {(row["dataset"], row["system"]) for row in rows} == {
        (tag, name) for tag in swept.config["datasets"] for name in swept.systems
    }
    for row in rows:
        assert row["score"] == swept.summary[row["system"]][f"dataset:{row['dataset']}"]


def test_latencies_are_all_in_the_histogram(swept: EvalResult) -> None:
    rows = list(list_data(swept.plot.latency().spec))
    for name in swept.systems:
        bars = [row["rows"] for row in rows if row.get("system") == name and "x2" in row]
        assert sum(bars) == 25
    marks = {row["system"]: row for row in rows if "p95" in row}
    times = sorted(row.latency for row in swept.rows if row.system == "passthrough")
    assert marks["passthrough"]["median"] == times[12]


def test_evidence_is_a_square_whose_shares_add_up(with_evidence: EvalResult) -> None:
    plot = with_evidence.plot.evidence()
    shares = {row["words"]: row["share"] for row in list_data(plot.spec)}
    # survived 0.5, of which 0.125 failed anyway; lost 0.5, of which 0.125 were right without it
    assert shares == {"right": 0.375, "failed anyway": 0.125, "right without it": 0.125, "lost by the system": 0.375}
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
    assert plot.title in texts
    assert plot.to_svg() == svg  # the same spec, the same bytes
    assert plot.save(tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(plot.save(tmp_path / "plot.json").read_text(encoding="utf-8")) == plot.spec


def test_other_endings_and_places_are_refused_in_one_sentence(swept: EvalResult, tmp_path: Path) -> None:
    plot = swept.plot.pareto()
    with pytest.raises(UsageError, match=r"must be saved as \.svg, \.png or \.json \(got 'plot\.pdf'\)"):
        plot.save(tmp_path / "plot.pdf")
    with pytest.raises(UsageError, match="cannot write the plot to"):
        plot.save(tmp_path / "nowhere" / "plot.json")


def test_a_spec_that_cannot_be_rendered_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="the plot odd cannot be rendered: "):
        Plot("odd", {"title": {"text": "x"}, "mark": "nothing that there is"}).to_svg()


def test_a_notebook_gets_vega_lite_and_svg(swept: EvalResult) -> None:
    bundle = swept.plot.pareto()._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["$schema"].endswith("/v5.json")
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["text/plain"].startswith("Plot(pareto: ")


def test_without_the_extra_specs_work_and_pictures_name_it(
    swept: EvalResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    plot = swept.plot.pareto()
    with pytest.raises(MissingExtra, match="plots"):
        plot.save(tmp_path / "plot.svg")
    assert plot.save(tmp_path / "plot.json").exists()
    assert set(plot._repr_mimebundle_()) == {"application/vnd.vegalite.v5+json", "text/plain"}
    assert "plots" in swept._repr_html_()
    assert "<img" not in swept._repr_html_()


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
            assert tags <= {"svg", "g", "path", "text", "rect", "line", "tspan", "clipPath", "defs"}
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
    spreads = spread_times({"a": [4.0, 1.0, 3.0, 2.0]}, ["a"])
    assert spreads is not None
    assert (spreads.systems["a"].median, spreads.systems["a"].p95) == (2.5, pytest.approx(3.85))
    rows = [make_row(1.0, system="a", example_id=number, latency=float(number + 1)) for number in range(4)]
    assert make_result(rows).summary["a"]["latency_median"] == 2.5
