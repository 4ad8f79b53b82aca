"""Output of results: tables, files, charts, the page and the viewer."""

from __future__ import annotations
