"""Finds the text that a reply marks as its answer: in tags, or in a field of a JSON object."""

from __future__ import annotations

import json
import re

__all__ = ["find_wrapped", "read_diff"]

_TAGS = re.compile(
    r"(?is)(?:<(?P<tag>(?:final_?)?answer|solution|completion)>|\[BEGIN\]|\[(?P<mark>ANSWER|SOLUTION)\])(?P<inner>.*?)"
    r"(?:</(?P=tag)>|\[DONE\]|\[/(?P=mark)\]|\Z)"
)
_UNOPENED = re.compile(r"(?s)\A(?P<inner>(?:(?!\[BEGIN\]).)*?)\[DONE\]")
_JSON = re.compile(r"(?m)^[ \t]*(?:```(?:json)?[ \t]*\n\s*)?(?=\{\s*\")")
_CODE_FIELDS = ("code", "solution", "program", "python", "implementation", "source", "completion", "answer")


def find_wrapped(reply: str) -> list[str]:
    """Find the texts that are marked as the answer, the last first."""
    tagged = [found["inner"] for found in _TAGS.finditer(reply)] or [
        found["inner"] for found in _UNOPENED.finditer(reply)
    ]
    return [text.strip("\n") + "\n" for text in [*_read_json(reply), *tagged[::-1]] if text.strip()]


def _read_json(reply: str) -> list[str]:
    """Read the fields of the last JSON object that hold code; line ends within its texts are let pass."""
    for found in reversed(list(_JSON.finditer(reply))[-5:]):
        try:
            content, _ = json.JSONDecoder(strict=False).raw_decode(reply, found.end())
        except (ValueError, RecursionError):
            continue
        nested = [pair for value in content.values() if isinstance(value, dict) for pair in value.items()]
        fields = {key.lower(): value for key, value in [*nested, *content.items()] if isinstance(value, str)}
        if code := [fields[key] for key in _CODE_FIELDS if key in fields]:
            return code
    return []


def read_diff(lines: list[str]) -> list[str]:
    """Read the new version in a diff: its added and its unchanged lines."""
    return [line[1:] for line in lines if line[:1] in ("+", " ", "") and not line.startswith("+++")]
