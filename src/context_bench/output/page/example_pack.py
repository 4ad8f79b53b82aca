"""The examples of a report, packed: columns loaded at once, and details in blocks loaded on demand.

Everything is JSON, compressed. A block that exceeds its share of the page is packed again with shorter contexts,
so the page size for each row is bounded; cut texts are marked. Rows wait in temporary files until the page is
written, so memory use does not grow with their number.
"""

from __future__ import annotations

import base64
import gzip
import tempfile
from collections.abc import Iterator
from typing import Any

from context_bench.compare.sweeps import name_briefly
from context_bench.output.page.examples import Stretch, cut_details, describe_row
from context_bench.output.page.row_index import PLACES, RowIndex
from context_bench.output.page.run_facts import OUTCOMES, RowValues, Source, clean_name, read_values
from context_bench.text import dump_json

MAX_BLOCK_ROWS = 100  # most rows whose details are loaded together
_MAX_WAITING_CHARS = 4_000_000
"""Most characters of contexts and responses that wait for their block, except for a single row."""
_PART_ROWS = 2_000  # rows whose columns are packed together
_MAX_DETAIL_BYTES, _MAX_ROW_BYTES, _MIN_ROW_BYTES = 20_000_000, 1_300, 200
"""Most bytes of all details together; one row's share has the upper and the lower bound that follow."""
_TEXT_LIMITS = ((24_000, 8_000), (8_000, 4_000), (3_000, 1_500), (1_000, 600), (300, 250), (100, 100), (0, 40))
"""Candidate lengths for a row's context and for each of its other texts; the first pair that fits is used."""


def pack_json(value: Any) -> str:
    """Write a value as compressed JSON in HTML-safe text; equal values give equal texts."""
    return base64.b64encode(gzip.compress(dump_json(value).encode(), 6, mtime=0)).decode("ascii")


class ExamplePack:
    """Takes in rows one by one, and returns the data that the page embeds.

    Args:
        rows: The approximate number of rows; more rows leave less space for each.
    """

    def __init__(self, rows: int) -> None:
        self._share = max(_MIN_ROW_BYTES, min(_MAX_ROW_BYTES, _MAX_DETAIL_BYTES // max(1, rows)))
        self._room = 0
        self._rows = 0
        self._runs: list[str] = []
        self._index = RowIndex()
        self._blocks = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._starts: list[int] = []
        self._size = 0
        self._values: list[RowValues] = []
        self._waiting: list[tuple[dict[str, Any], list[Stretch]]] = []

    def __len__(self) -> int:
        return self._rows

    def __enter__(self) -> ExamplePack:
        return self

    def __exit__(self, *_: object) -> None:
        self._index.close()
        self._blocks.close()

    def begin_run(self, name: str, baseline: str | None) -> None:
        """Begin a run; the rows that are added next belong to it."""
        self._runs.append(clean_name(name))
        self._index.set_baseline(len(self._runs), None if baseline is None else clean_name(baseline))

    def add(self, source: Source, score: float | None, threshold: float) -> None:
        """Add a row to the current run; a score of at least `threshold` counts as right."""
        run = len(self._runs)
        self._values.append(read_values(run << PLACES | self._rows, run, source, score, threshold))
        self._rows += 1
        details, stretches = describe_row(source)
        self._waiting.append((details, stretches))
        self._size += len(source.row.response) + sum(len(text) for _, pieces in stretches for _, text, _ in pieces)
        if len(self._waiting) >= MAX_BLOCK_ROWS or self._size >= _MAX_WAITING_CHARS:
            self._close_block()

    def _close_block(self) -> None:
        self._index.add(self._values)
        most = self._share * len(self._waiting)
        for level in range(max(0, self._room - 1), len(_TEXT_LIMITS)):
            room, length = _TEXT_LIMITS[level]
            packed = pack_json([cut_details(details, stretches, room, length) for details, stretches in self._waiting])
            self._room = level
            if len(packed) <= most:
                break
        self._blocks.write(packed.encode("ascii") + b"\n")
        self._starts.append(self._rows - len(self._waiting))
        self._waiting, self._values, self._size = [], [], 0

    def close(self) -> None:
        """Pack the remaining rows, after all were added."""
        if self._waiting:
            self._close_block()
        self._index.find_flips()

    def count_kinds(self, run: int) -> dict[str, dict[str, int]]:
        """Count the rows of each kind by system, for the run with this number (from 1)."""
        return self._index.count_kinds(run)

    def pack_index(self) -> str:
        """Pack the data that the page's script needs first; `starts` lists the first row of each block."""
        found = self._index.list_names(range(1, len(self._runs) + 1))
        brief = name_briefly([*found["system"].values(), *found["dataset"].values()])
        names = {**found, "run": self._runs, "outcome": OUTCOMES}
        return pack_json({"rows": self._rows, "starts": self._starts, "names": names, "brief": brief})

    def pack_columns(self) -> Iterator[str]:
        """Pack the columns of all rows, part by part; a row's run is given by its position."""
        for part in self._index.read_parts(_PART_ROWS):
            yield pack_json({**part, "run": [number - 1 for number in part["run"]]})

    def read_blocks(self) -> Iterator[str]:
        """Read the blocks of details, in order."""
        self._blocks.seek(0)
        for line in self._blocks:
            yield line.decode("ascii").rstrip()
