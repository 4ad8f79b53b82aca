"""The SVG renderer: pictures stand for themselves, pages have a drawing for each width, and nothing else is styled."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from context_bench.output.plots.chart import (
    Axis,
    Bar,
    Cell,
    Chart,
    Dot,
    Grid,
    Grids,
    Group,
    Histogram,
    Key,
    Line,
    Plane,
    Point,
    Row,
    Rows,
    Scale,
)
from context_bench.output.plots.svg import draw_figure, draw_file

PLANE = Plane(
    Axis("tokens", Scale(0, 100)),
    Axis("score", Scale(0, 1)),
    [
        Point(20, 0.5, "cheap", "cheap: 0.5", 0, limits=(0.4, 0.6)),
        Point(80, 0.75, "dear", "dear: 0.75", 9, "hollow"),
        Point(50, 1.0, "oracle", "oracle: 1", 2, "control"),
    ],
    [Line("front", [(20, 0), (20, 0.5), (100, 0.5)]), Line("baseline", [(0, 0.9), (100, 0.9)], label="the baseline")],
    [Key("on the front"), Key("off it", "hollow")],
)


def make_chart(body: Plane | Rows | Grids) -> Chart:
    return Chart("odd", "odd things", "What is seen", ["How to read it.", "More."], body, ["a"], [["b"]])


def list_texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_file_has_title_notes_axes_legend_and_labels() -> None:
    texts = list_texts(draw_file(make_chart(PLANE)))
    assert texts[:2] == ["What is seen", "How to read it. More."]
    assert {"score", "tokens", "cheap", "dear", "oracle", "the baseline", "on the front", "off it"} <= set(texts)


def test_marks_stand_by_their_values_and_show_how_they_compete() -> None:
    page = draw_figure(make_chart(PLANE)).partition('<div class="phone">')[0]
    marks = re.findall(r'translate\(([\d.]+) ([\d.]+)\)" class="([\w ]+)" data-tip="(\w+):', page)
    places = {name: (float(x), float(y)) for x, y, _, name in marks}
    assert places["cheap"][0] < places["oracle"][0] < places["dear"][0]
    assert places["oracle"][1] < places["dear"][1] < places["cheap"][1]
    kinds = {name: kind for _, _, kind, name in marks}
    # The tenth series has the look of the second again.
    assert kinds == {"cheap": "mark s0", "dear": "mark s1 hollow", "oracle": "mark s2 control"}
    whisker = re.search(r'y1="([\d.]+)" x2="[\d.]+" y2="([\d.]+)" class="whisker"', page)
    assert whisker is not None
    assert float(whisker[1]) < places["cheap"][1] < float(whisker[2])


def test_a_page_has_a_drawing_for_windows_and_one_for_phones() -> None:
    page = draw_figure(make_chart(PLANE))
    widths = [int(width) for width in re.findall(r'viewBox="0 0 (\d+)', page)]
    assert len(widths) == 2
    assert widths[1] < 390 < widths[0] < 1280
    assert "<style" not in page  # the page has the style sheet


def test_values_are_shown_by_titles_in_a_file_and_by_the_script_on_a_page() -> None:
    chart = make_chart(PLANE)
    assert "<title>cheap: 0.5</title>" in draw_file(chart)
    assert "data-tip" not in draw_file(chart)
    assert "<title>" not in draw_figure(chart)


def test_the_style_of_a_file_touches_nothing_around_it() -> None:
    """A notebook may put the picture into its own page."""
    style = draw_file(make_chart(PLANE)).partition("<style>")[2].partition("</style>")[0]
    selectors = [each.strip() for rule in re.findall(r"([^{}]+)\{", style) for each in rule.split(",")]
    assert len(selectors) > 40
    assert [each for each in selectors if not each.startswith(".chart ")] == []


def test_rows_have_names_marks_and_values() -> None:
    rows = [
        Row("first", Dot(0.5, (0.25, 0.75)), "0.500", "tip one", 0),
        Row("second", Bar(None), "no claim", "tip two", 1),
        Row("third", Bar(0.25), "0.250", "tip three", 2),
        Row("fourth", Histogram([0, 3, 1], 0.4, 0.8), "0.4 s", "tip four", 3),
    ]
    svg = draw_file(make_chart(Rows(Axis("seconds", Scale(0, 1)), [Group("a group", rows, baseline=0.5)])))
    texts = list_texts(svg)
    assert {"a group", *(row.name for row in rows), *(row.value for row in rows), "seconds"} <= set(texts)
    assert svg.count("<title>") == 3  # a bar that is not there has nothing to point at
    for kind in ("whisker", "base", "median", "late"):
        assert svg.count(f'class="{kind}"') == 1


def test_grids_flow_and_a_missing_cell_is_empty() -> None:
    cells = [[Cell("0.50", "q5", "half"), Cell("", "none", "nothing")]]
    grids = [Grid(f"grid {number}", f"about {number}", ["left", "right"], ["only"], cells) for number in range(4)]
    chart = make_chart(Grids([grids[:1], grids[1:]], 62, 30))
    moves = re.findall(
        r"<g transform=\"translate\(([\d.]+) ([\d.]+)\)\"><text[^>]*class=\"group\">(grid \d)", draw_file(chart)
    )
    places = {name: (float(x), float(y)) for x, y, name in moves}
    assert places["grid 0"][1] < places["grid 1"][1] == places["grid 2"][1] < places["grid 3"][1]
    assert places["grid 0"][0] == places["grid 1"][0] == places["grid 3"][0] < places["grid 2"][0]
    assert draw_file(chart).count('class="q none"') == 4
    page = draw_figure(chart)
    assert re.findall(r'aria-label="([^"]+)"', page) == [f"about {number}" for number in range(4)]
    assert page.count('class="pair alone"') == 1
