"""Types of flags: each reads a text, and says in one sentence what it must be."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = [
    *("amount", "condition", "count", "error_limit", "integer", "number", "page", "port_number", "positive"),
    *("resources", "temperature"),
]


def _number(text: str, least: float, kind: type[int] | type[float], what: str) -> Any:
    try:
        value = kind(text)
        if not least <= value < float("inf"):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {what} (got {text!r})") from None
    return value


def integer(text: str) -> int:
    """Read any integer."""
    return int(_number(text, -1e300, int, "an integer"))


def count(text: str) -> int:
    """Read an integer of at least 0."""
    return int(_number(text, 0, int, "an integer of at least 0"))


def positive(text: str) -> int:
    """Read an integer of at least 1."""
    return int(_number(text, 1, int, "an integer of at least 1"))


def port_number(text: str) -> int:
    """Read the number of a port; 0 stands for a free one."""
    value = int(_number(text, 0, int, "a port from 0 to 65535"))
    if value > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535 (got {text})")
    return value


def amount(text: str) -> float:
    """Read a number above 0."""
    return float(_number(text, 1e-12, float, "a number above 0"))


def number(text: str) -> float:
    """Read any number."""
    return float(_number(text, -1e300, float, "a number"))


def temperature(text: str) -> float | None:
    """Read a number of at least 0, or `none` to leave it to the server."""
    return None if text.lower() == "none" else float(_number(text, 0, float, "a number of at least 0, or none"))


def resources(text: str) -> dict[str, float]:
    """Read `NAME=N,...`, what a worker of a cluster needs."""
    found: dict[str, float] = {}
    for item in text.split(","):
        key, equals, value = item.partition("=")
        if not key.strip() or not equals:
            raise argparse.ArgumentTypeError(f"must be NAME=N,... such as num_gpus=1,num_cpus=2 (got {text!r})")
        found[key.strip()] = float(_number(value, 0, float, "NAME=N,... with numbers of at least 0"))
    return found


def error_limit(text: str) -> str:
    """Read `N` or `P%`."""
    _number(text.removesuffix("%"), 0, float, "a number of errors or a percentage")
    return text


def page(text: str) -> str:
    """Read the name of an HTML file."""
    if not text.lower().endswith((".html", ".htm")):
        raise argparse.ArgumentTypeError(f"must end in .html, as it is written as an HTML page (got {text!r})")
    return text


def condition(text: str) -> Any:
    """Read a condition of a gate; UsageError says what may be written."""
    from context_bench.compare.conditions import parse_condition

    return parse_condition(text)
