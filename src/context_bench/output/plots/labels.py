"""Names in a picture: one line each, distinct, and placed so that none covers another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from context_bench.compare.sweeps import name_briefly, name_family
from context_bench.errors import printable

_LINE = 13.0  # pixels that a line takes down, at the size of a label
_NARROW, _WIDE = " .,:;|!'()[]ijltfr", "mwMW%@"


class LabelPlace(NamedTuple):
    """The place of a label: an anchor in pixels, and the part of the text at the anchor (`left`, `right`, `center`)."""

    x: float
    y: float
    align: str


def shorten_name(name: str, length: int = 30) -> str:
    """Write a name on one line without control characters, and without its middle if it is long."""
    name = printable(name) or "(no name)"
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


STYLES = 8  # colours and shapes that distinguish marks


def number_series(names: Iterable[str]) -> dict[str, int]:
    """Number the marks of systems: a family has one colour, a setting one shape; up to 64 marks all differ.

    The number is the place of the colour plus eight times the place of the shape. Systems without settings differ in
    shape too. A family with more settings than shapes continues in a colour of no other family, if there is one.
    """
    families = {name: name_family(name) for name in names}
    colours = list(dict.fromkeys(families.values()))
    settings: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for name, family in families.items():
        colour, setting = colours.index(family) % STYLES, name.removeprefix(family)
        shape = settings.setdefault(setting, len(settings)) if setting else colour
        others = [*range(len(colours), STYLES), *range(STYLES)]
        marks = [(shape + step) % STYLES * STYLES + each for each in (colour, *others) for step in range(STYLES)]
        numbers[name] = next((mark for mark in marks if mark not in numbers.values()), marks[0])
    return numbers


def label_systems(names: Iterable[str], length: int = 30) -> dict[str, str]:
    """Write names briefly, shorten long ones, and number those that would be equal."""
    labels: dict[str, str] = {}
    taken: set[str] = set()
    for name, brief in name_briefly(names).items():
        label, number = shorten_name(brief, length), 1
        while label in taken:
            number += 1
            label = f"{shorten_name(brief, length)} ~{number}"
        labels[name] = label
        taken.add(label)
    return labels


def label_system(name: str, length: int = 30) -> str:
    """Write one name briefly."""
    return label_systems([name], length)[name]


Box = tuple[float, float, float, float]  # left, top, right and bottom


def measure_text(text: str) -> float:
    """Measure a text in pixels, in one of the wider fonts that a reader may have."""
    return sum(4.9 if letter in _NARROW else 12.0 if letter in _WIDE else 8.0 for letter in text)


@dataclass(frozen=True)
class Lettering:
    """The size of labels in the unit of the plot: pixels, or columns and rows of a terminal."""

    line: float = _LINE  # the height of a line
    gap: float = _LINE * 0.75  # the distance of a label from its point
    # distances by which a label may be moved up or down next to its point; the third is above and below it
    steps: tuple[float, float, float, float] = (0.75 * _LINE, 1.6 * _LINE, 1.1 * _LINE, 2.4 * _LINE)
    measure: Callable[[str], float] = measure_text  # the length of a text
    reach: int = 0  # further lines by which a label may be moved to a free place, with a line to its point


_PIXELS = Lettering()
_CROWDED = 20.0  # square pixels that a label next to its point may share with others before it is moved away


def place_labels(
    points: Sequence[tuple[float, float, str]],
    width: float,
    height: float,
    avoid: Sequence[Box] = (),
    lettering: Lettering = _PIXELS,
) -> list[LabelPlace]:
    """Place a label next to each point, where it covers least of the other labels and points. If possible, no label
    leaves the plot or covers boxes to `avoid`, such as whiskers.
    """
    line, gap = lettering.line, lettering.gap
    small, large, over, far = lettering.steps
    near, taken = line * (0.5 if lettering.reach else 0.4), list(avoid)
    places = []
    for x, y, text in points:
        long = lettering.measure(text)
        tries = [LabelPlace(x + gap, y + shift, "left") for shift in (0, -small, small)]
        tries += [LabelPlace(x - gap, y + shift, "right") for shift in (0, -small, small)]
        tries += [LabelPlace(x, y - over, "center"), LabelPlace(x, y + over, "center")]
        tries += [LabelPlace(x + gap, y + shift, "left") for shift in (-large, large, -far, far)]
        tries += [LabelPlace(x - gap, y + shift, "right") for shift in (-large, large, -far, far)]
        others = [(x2, y2) for x2, y2, _ in points if (x2, y2) != (x, y)]
        costs = []
        for place in tries:
            box = _box(place, long, line)
            costs.append(_cost(box, taken, width, height) + _mistake(box, (x, y), others, near))
        if min(costs) > _CROWDED:
            away = [
                LabelPlace(x + across * line, y + down * (3 + lines) * line, "center")
                for lines in range(lettering.reach)
                for down in (-1, 1)
                for across in (0, -3, 3, -6, 6)
            ]
            tries += away
            for place in away:
                box = _box(place, long, line)
                touched = sum(_find_distance(box, other) < near for other in others)
                costs.append(_cost(box, taken, width, height) + 500 * touched + abs(place.y - y) / line)
        best = tries[costs.index(min(costs))]
        places.append(best)
        taken.append(_box(best, long, line))
    return places


def cover_line(points: Sequence[tuple[float, float]]) -> list[Box]:
    """Cover a line through points with small boxes, so that labels can avoid it."""
    boxes = []
    for (x1, y1), (x2, y2) in pairwise(points):
        for step in range(1, 20):
            x, y = x1 + (x2 - x1) * step / 20, y1 + (y2 - y1) * step / 20
            boxes.append((x - 4, y - 3, x + 4, y + 3))
    return boxes


def _box(place: LabelPlace, long: float, line: float) -> Box:
    left = place.x - {"left": 0.0, "right": long, "center": long / 2}[place.align]
    return left, place.y - line / 2, left + long, place.y + line / 2


def _cost(box: Box, taken: Sequence[Box], width: float, height: float) -> float:
    """Sum the area that a box shares with others, and its area outside the plot."""
    left, top, right, bottom = box
    shared = sum(
        max(0.0, min(right, other[2]) - max(left, other[0])) * max(0.0, min(bottom, other[3]) - max(top, other[1]))
        for other in taken
    )
    outside = max(0.0, -left) + max(0.0, right - width) + max(0.0, -top) + max(0.0, bottom - height)
    return shared + 1000 * outside


def _mistake(box: Box, own: tuple[float, float], others: Sequence[tuple[float, float]], near: float) -> float:
    """Count the other points that a label could seem to name: points that the label touches, or nearer points."""
    distance = _find_distance(box, own)
    away = [_find_distance(box, other) for other in others]
    return sum(500.0 if each < near else 100.0 if each < distance else 0.0 for each in away)


def _find_distance(box: Box, point: tuple[float, float]) -> float:
    across = max(box[0] - point[0], 0.0, point[0] - box[2])
    down = max(box[1] - point[1], 0.0, point[1] - box[3])
    return math.hypot(across, down)
