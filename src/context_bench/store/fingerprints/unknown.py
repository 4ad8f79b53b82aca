"""The exception for a component of which no key can be made."""

from __future__ import annotations

__all__ = ["Unknown"]


class Unknown(Exception):
    """Something that results may depend on cannot be described."""
