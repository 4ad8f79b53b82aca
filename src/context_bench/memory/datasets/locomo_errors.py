"""Golds of LoCoMo that are known to be wrong, by sample and place in `qa`.

From the audit dial481/locomo-audit (commit 9493fb4, CC BY-NC 4.0), made by a model with human review, categories 1
to 4: 99 golds that cost or give points wrongly, so that no honest system can pass 93.57%, and 57 whose answer is right
but whose evidence is not.
"""

from __future__ import annotations

from functools import cache

__all__ = ["KINDS", "find_known_error"]

KINDS = {
    "H": "the gold is not in the conversation",
    "T": "the gold has a wrong date",
    "A": "the gold is about the other speaker",
    "M": "the question is ambiguous",
    "I": "the gold is incomplete",
    "W": "the evidence is wrong",
}
"""The letters of the list; W concerns retrieval alone."""

_ERRORS = """
conv-26: H 2 23 26 56 149; T 5 135; A 94 138 144; M 43 66 77; I 32 137; W 1 4 37 38 48 70 72 106 107 111 132 139
conv-30: T 31; A 57; M 47 63; W 24 43 44
conv-41: T 48 68 69; A 129; M 63; W 5 10 16 32 44 49 116
conv-42: H 4 34 52 58 61 66 81 91; T 24 43 73; A 119; M 68; I 5; W 50 51 54 55 67 69 88 184
conv-43: H 9 128; T 6 16 56 60; A 74 86 135 136 164 165 166; W 11 17 26 59
conv-44: H 2; T 5 37 57; M 4 18 41; W 8 51 103
conv-47: H 2 17; T 11 31 61 88; A 37; M 65; W 19 24 38 53 93 113 115
conv-48: H 0 75 87; A 116 123 174 179; W 78 105 117 152 155 188
conv-49: H 4 18 33 36 37 43 54 106; T 74 80 102 103; A 24 144; W 7 28
conv-50: H 1 19 60 63; T 50 62; A 88 137 147 151; M 29 72; W 11 58 69 105 111
"""


@cache
def _read_errors() -> dict[tuple[str, int], str]:
    errors: dict[tuple[str, int], str] = {}
    for line in _ERRORS.strip().splitlines():
        sample, _, kinds = line.partition(": ")
        for group in kinds.split("; "):
            kind, *places = group.split()
            errors.update({(sample, int(place)): kind for place in places})
    return errors


def find_known_error(sample: str, index: int) -> str | None:
    """Find the letter of the error that a question is known to have; None for most."""
    return _read_errors().get((sample, index))
