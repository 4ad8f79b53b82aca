"""The memory systems that ship, by name."""

from __future__ import annotations

__all__ = ["SYSTEMS"]

SYSTEMS: dict[str, str] = {}
"""From names to `module:Class`."""
