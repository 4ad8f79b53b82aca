"""Results to report on, made of rows, and what a page holds."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from context_bench import EvalResult
from context_bench.metrics import default_metrics
from context_bench.results import EvalRow
from context_bench.summary import describe_metric, summarize

__all__ = ["Outline", "make_result", "read_blocks", "read_index"]


def make_result(rows: list[EvalRow], **config: Any) -> EvalResult:
    """Sum rows up as a run does."""
    names = list(dict.fromkeys(row.system for row in rows))
    tags = dict.fromkeys(row.dataset for row in rows)
    metrics = default_metrics(datasets=len(tags), systems=len(names))
    described = [describe_metric(metric) for metric in metrics]
    counts = {tag: len({row.example_id for row in rows if row.dataset == tag}) for tag in tags}
    config = {"metrics": described, "score_field": "score", "threshold": 0.7, "datasets": counts, **config}
    config.setdefault("baseline", names[0] if len(names) > 1 else None)
    return EvalResult.from_summary(rows, summarize(rows, names, metrics, config), config, metrics)


def _unpack(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def read_index(page: str) -> dict[str, Any]:
    """Read what the page's script loads first, and the columns of all rows, with names in place of their numbers."""
    (found,) = re.findall(r'<script type="text/plain" id="index">([^<]*)</script>', page)
    index: dict[str, Any] = {**_unpack(found), "columns": {}}
    for text in re.findall(r'<script type="text/plain" class="part">([^<]*)</script>', page):
        part = _unpack(text)
        questions = part.pop("questions")
        part["question"] = [questions[place] for place in part["question"]]
        for name, values in part.items():
            column = index["columns"].setdefault(name, [])
            column += [_read_name(index["names"].get(name), value) for value in values]
    return index


def _read_name(names: Any, value: Any) -> Any:
    if value is None or names is None:
        return value
    return names[str(value)] if isinstance(names, dict) else names[value]


def read_blocks(page: str) -> list[dict[str, Any]]:
    """Read the details of every row."""
    blocks = re.findall(r'<script type="text/plain" class="block">([^<]*)</script>', page)
    return [row for block in blocks for row in _unpack(block)]


class Outline(HTMLParser):
    """Reads a page as a browser would: its elements, the names of their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)
