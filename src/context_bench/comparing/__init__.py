"""Compares runs: of the store, of JSON files, or the systems of one run.

Rows are read as streams and paired as they come, so that memory stays small whatever the length of the runs.
"""

from __future__ import annotations
