"""Names in pictures: one line, told apart, beside their own point."""

from __future__ import annotations

import pytest

from context_bench.output.plots.labels import Lettering, label_systems, measure_text, place_labels, shorten_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bm25", "bm25"),
        ("a\nb\x1b[31m", "a b [31m"),
        ("", "(no name)"),
        ("0123456789abcdef", "01234…cdef"),
        ("\u202ex", "x"),
    ],
)
def test_a_name_is_one_short_line(name: str, shown: str) -> None:
    assert shorten_name(name, 10) == shown


def test_names_that_look_alike_are_numbered() -> None:
    labels = label_systems(["a" * 40 + "1", "a" * 40 + "1 ", "b"], 10)
    assert len(set(labels.values())) == 3
    assert labels["b"] == "b"


def test_labels_cover_neither_each_other_nor_other_points() -> None:
    points = [(300.0, 100.0, "first"), (304.0, 100.0, "second"), (300.0, 110.0, "third")]
    places = place_labels(points, 600, 300)
    boxes = []
    for place, (_, _, text) in zip(places, points):
        left = place.x - {"left": 0.0, "right": 6.2 * len(text), "center": 3.1 * len(text)}[place.align]
        boxes.append((left, place.y - 6.5, left + 6.2 * len(text), place.y + 6.5))
    for number, one in enumerate(boxes):
        for two in boxes[number + 1 :]:
            assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]


def test_a_crowded_line_of_24_points_has_labels_that_do_not_touch() -> None:
    points = [(60.0 + 33 * number, 100.0, f"system {number}") for number in range(24)]
    places = place_labels(points, 960, 346, [(0, 98, 960, 102)], Lettering(line=14.0, reach=5))
    boxes = []
    for place, (_, _, text) in zip(places, points):
        left = place.x - {"left": 0.0, "right": 1.0, "center": 0.5}[place.align] * measure_text(text)
        boxes.append((left, place.y - 5, left + measure_text(text), place.y + 5))
    for number, one in enumerate(boxes):
        for two in boxes[number + 1 :]:
            assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]


def test_of_two_neighbours_the_right_one_has_its_name_at_the_right() -> None:
    left, right = place_labels([(300.0, 100.0, "left"), (305.0, 100.0, "right")], 600, 300)
    assert left.x < right.x


def test_a_label_stays_within_the_plot() -> None:
    (place,) = place_labels([(595.0, 100.0, "a name of some length")], 600, 300)
    assert place.align == "right"
