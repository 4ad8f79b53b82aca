"""Replace what differs between two runs of the same code by placeholders, and keep the structure.

Replaced are times and what is computed from them, moments, identifiers of runs, digests and fingerprints, versions,
paths, ports and process ids. Floats keep twelve digits, so that sums may be added up in another order. A text that held
a time also loses its alignment. Dropped without a placeholder is nothing but the lines that `UNSTEADY_LINES` names.
"""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["Json", "clean", "clean_text", "page_texts", "parse"]

Json = Any

TIMES = re.compile(
    r"latency|timing|seconds|overhead|^(started|ended|first|finished|created|when|moment|elapsed|duration|wall|rate)$"
    r"|time_to_first_token|inter_token|queue|^waited|_at$|_time$|^time_|^pid$|^date$|^disk_bytes$|^compressor$"
)
"""Keys whose numbers are times or depend on them (or on the file system)."""
TIMED_COUNTS = {"started", "when", "pid", "disk_bytes", "asked"}
"""Keys whose whole numbers depend on time too."""
MAYBE_ZERO = {"inter_token_seconds", "waited", "proxy_overhead", "asked"}
"""Keys that are zero in one run and not in the next."""
FINGERPRINTS = {"systems", "evaluator_versions", "versions"}
"""Keys of a run's record whose dictionaries map names to fingerprints or versions."""
VERSIONS = {"version", "python", "fingerprint", "store_version"}
TIME_COLUMNS = re.compile(r"latency|^p50$|^p95$|^p99$|second|time|overhead|^when$|per s$")
UNSTEADY_LINES = re.compile(r"ResourceWarning|starts with \d+ worker")

_UNIT = r"(?:µs|us|ms|s|seconds?|min|minutes?|h|hours?)"
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
_TEXTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"20\d{6}-\d{6}-\d+"), "<run>"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[-+]\d\d:?\d\d)?"), "<when>"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "<clock>"),
    (re.compile(r"(?<![.\w])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,}\b"), "<digest>"),
    (re.compile(r"(127\.0\.0\.1|localhost|0\.0\.0\.0):\d{2,5}\b"), r"\1:<port>"),
    (re.compile(r"(?<![\w.]):\d{4,5}\b"), ":<port>"),
    (re.compile(r"context-bench \d+\.\d+\.\d+"), "context-bench <version>"),
    (re.compile(r"\bPython 3\.\d+\.\d+"), "Python <version>"),
    (re.compile(r"\b(pid|process) \d+"), r"\1 <pid>"),
    (re.compile(r"(tests/corpus/\w+\.py):\d+"), r"\1:<line>"),
    (re.compile(r"(Median (?:latency|overhead):) .*?\)(?=\. The tall line)"), r"\1 <which is fastest>"),
)
_TIME_RANGE = re.compile(rf"{_NUMBER} ?{_UNIT} \[[^\]]*\]")
_TIME = re.compile(rf"(?<![\w.]){_NUMBER} ?{_UNIT}\b(?! of\b)")
_STEADY_TIME = re.compile(r"^(?:0|5|10|30|60|120|300|600) (?:s|seconds|minutes)$")
"""Limits that a message states are written so, and stay."""


def clean(value: Json, paths: Sequence[tuple[str, str]], key: str = "", timed: bool = False) -> Json:
    """Normalise a JSON value; `paths` are texts to replace, the longest first."""
    timed = timed or bool(TIMES.search(key)) or (key == "asked" and isinstance(value, int))
    if isinstance(value, dict):
        if key in FINGERPRINTS and all(isinstance(each, str) for each in value.values()):
            return {clean_text(name, paths): "<fingerprint>" for name in value}
        return {clean_text(str(name), paths): clean(each, paths, str(name), timed) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(each, paths, "", timed) for each in value]
    if isinstance(value, str):
        return "<version>" if key in VERSIONS else clean_text(value, paths)
    if isinstance(value, bool) or value is None:
        return value
    if key in VERSIONS or (timed and (isinstance(value, float) or key in TIMED_COUNTS)):
        exact = value == 0 and key not in VERSIONS and key not in MAYBE_ZERO
        return value if exact else "<time>"
    return float(f"{value:.12g}") if isinstance(value, float) else value


def clean_text(text: str, paths: Sequence[tuple[str, str]]) -> str:
    """Normalise a text; one that held a time loses its alignment too."""
    for path, name in paths:
        text = text.replace(path, name)
    for pattern, name in _TEXTS:
        text = pattern.sub(name, text)
    if UNSTEADY_LINES.search(text):
        text = "\n".join(line for line in text.split("\n") if not UNSTEADY_LINES.search(line))
    without = _clean_times(_clean_columns(text))
    if without == text:
        return text
    lines = [re.sub(r" {2,}", " ", re.sub(r"-{3,}", "---", line)).rstrip() for line in without.split("\n")]
    return "\n".join(lines)


def _clean_times(text: str) -> str:
    text = _TIME_RANGE.sub("<time>", text)
    return _TIME.sub(lambda found: found.group() if _STEADY_TIME.match(found.group()) else "<time>", text)


def _clean_columns(text: str) -> str:
    """Replace the cells of columns of times in Markdown tables."""
    if "| " not in text:
        return text
    lines: list[str] = []
    timed: list[bool] = []
    for line in text.split("\n"):
        if not line.startswith("|"):
            timed = []
        else:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not timed:
                timed = [bool(TIME_COLUMNS.search(cell)) for cell in cells]
                if any(timed):
                    line = "| " + " | ".join(cells) + " |"
            elif any(timed) and len(cells) == len(timed):
                marked = [
                    "<time>" if late and any(map(str.isdigit, cell)) else cell
                    for cell, late in zip(cells, timed, strict=True)
                ]
                line = "| " + " | ".join(marked) + " |"
        lines.append(line)
    return "\n".join(lines)


class _Page(html.parser.HTMLParser):
    """The texts of a page in their order, a line for each block; drawings, scripts and styles are left out."""

    BLOCKS = {"p", "h1", "h2", "h3", "h4", "tr", "li", "section", "div", "summary", "table", "dt", "dd", "figcaption"}
    LEFT_OUT = {"script", "style", "svg"}

    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self.depth = 0
        self.drawings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.LEFT_OUT:
            self.depth += 1
            self.drawings += tag == "svg"
        elif tag in self.BLOCKS:
            self.lines.append("")
        else:
            self.lines[-1] += " | " if tag in ("td", "th") else " "

    def handle_endtag(self, tag: str) -> None:
        if tag in self.LEFT_OUT:
            self.depth -= 1
        elif tag in self.BLOCKS:
            self.lines.append("")
        else:
            self.lines[-1] += " "

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.lines[-1] += re.sub(r"\s+", " ", data)


def page_texts(page: str) -> Json:
    """The texts of a page, and how many drawings it has."""
    reader = _Page()
    reader.feed(page)
    reader.close()
    lines = [re.sub(r" +", " ", line).strip() for line in reader.lines]
    return {"drawings": reader.drawings, "texts": "\n".join(line for line in lines if line)}


def parse(text: str) -> Json:
    """A text as JSON where it is a JSON object or list, rows where it is CSV, else as it is."""
    if text.startswith("system,example_id,"):
        return [{key: _number(cell) for key, cell in row.items()} for row in csv.DictReader(io.StringIO(text))]
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _number(cell: str) -> Json:
    """A cell of CSV: JSON where it is an object, a float where it has a point, else its text."""
    if cell.startswith("{"):
        try:
            return json.loads(cell)
        except ValueError:  # a context that begins like JSON
            return cell
    return float(cell) if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?|\d+e-\d+", cell) else cell
