"""Whether this machine has a font, without which no plot is drawn as PNG: `make system` installs one."""

from __future__ import annotations

from functools import cache

import pytest

from context_bench.errors import UsageError
from context_bench.output.plots.result_plots import check_png

__all__ = ["require_font"]


@cache
def _has_font() -> bool:
    try:
        check_png()
    except UsageError:
        return False
    return True


def require_font() -> None:
    """Skip the test where no font is installed."""
    if not _has_font():
        pytest.skip("no font is installed, so plots cannot be drawn as PNG: make system")
