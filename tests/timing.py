"""Tests that depend on how fast the machine is. Few should: wait for what happens, count the time of this process, or
set a bound that only a hang can reach. What is left is marked here, one by one, with the reason.
"""

from __future__ import annotations

import pytest

__all__ = ["depends_on_time"]


def depends_on_time(reason: str) -> pytest.MarkDecorator:
    """Mark a test that a busy machine can fail: it is tried three times at the most, and a rerun is reported.

    Args:
        reason: What takes the time, and why no event and no generous bound can stand for it.
    """
    if len(reason.split()) < 5:
        raise ValueError(f"a test that is tried again needs a reason in a sentence, not {reason!r}")
    return pytest.mark.flaky(reruns=2, reruns_delay=1)
