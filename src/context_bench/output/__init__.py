"""What a user sees of a result: tables, files, charts, the page and the viewer."""

from __future__ import annotations
