"""Numbers as flags take them: each with one sentence for what is not one."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["amount", "count", "error_limit", "number", "positive", "temperature"]


def _number(text: str, least: float, kind: type[int] | type[float], what: str) -> Any:
    try:
        value = kind(text)
        if not least <= value < float("inf"):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
    return value


def count(text: str) -> int:
    """A whole number from 0 on."""
    return int(_number(text, 0, int, "a whole number from 0 on"))


def positive(text: str) -> int:
    """A whole number from 1 on."""
    return int(_number(text, 1, int, "a whole number from 1 on"))


def amount(text: str) -> float:
    """A number above 0."""
    return float(_number(text, 1e-12, float, "a number above 0"))


def number(text: str) -> float:
    """Any number."""
    return float(_number(text, -1e300, float, "a number"))


def temperature(text: str) -> float | None:
    """A number from 0 on, or `none` to leave it to the server."""
    return None if text.lower() == "none" else float(_number(text, 0, float, "a number from 0 on, or none"))


def error_limit(text: str) -> str:
    """`N` or `P%`."""
    _number(text.removesuffix("%"), 0, float, "a number of errors or a percentage")
    return text
