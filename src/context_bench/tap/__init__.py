"""The tap: a recording upstream in place of the model, which sees the requests that really reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import lazy_names

if TYPE_CHECKING:
    from context_bench.tap.forward import Forward
    from context_bench.tap.scripted import Scripted
    from context_bench.tap.server import Tap
    from context_bench.tap.system import Control, Launch, Tapped

__all__ = ["Control", "Forward", "Launch", "Scripted", "Tap", "Tapped"]

_HOMES = {
    "forward": ("Forward",),
    "scripted": ("Scripted",),
    "server": ("Tap",),
    "system": ("Control", "Launch", "Tapped"),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
