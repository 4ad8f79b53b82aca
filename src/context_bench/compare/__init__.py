"""Comparison: systems of one run, runs against runs, curves, gates and plans.

Rows are read as streams and paired as they come, so memory stays small however long the runs are.
"""

from __future__ import annotations
