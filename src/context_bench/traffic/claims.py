"""Claims of a proxy about itself in the headers of a reply: tokens that it saved, answers from its cache.

It is kept apart from what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite

__all__ = ["claim_headers", "read_claimed_tokens", "says_cache_hit"]

_SAVED = ("x-kompact-tokens-saved", "x-headroom-tokens-saved", "x-tokens-saved")
_CLAIM = re.compile(r"\b(?:tokens|saved|savings|compress\w*|transforms)\b")
_LIMIT = re.compile(r"rate-?limit")
_SUM = re.compile(r"\b(?:session|total|cumulative|lifetime|overall|aggregate|global|all|day|daily|today|month\w*)\b")
"""A claim about more than one request."""


def claim_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Find the reply headers in which a proxy speaks of tokens, savings or compression, by lower-case name."""
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lower.items() if _CLAIM.search(name) and not _LIMIT.search(name)}


def says_cache_hit(headers: Mapping[str, str]) -> bool:
    """Tell whether a proxy says that it answered from a cache of its own, as in `x-cache: HIT` or `age: 30`."""
    lower = {name.lower(): value.strip().lower() for name, value in headers.items()}
    told = any(re.search(r"\bhit\b|^(?:true|1|yes)$", value) for name, value in lower.items() if "cache" in name)
    return told or bool(lower.get("age", "").strip("0"))


def read_claimed_tokens(headers: Mapping[str, str]) -> float | None:
    """Read the tokens that a proxy says it saved on this request; None when it says nothing of it, or no number.

    Sums over a session or a day are left out. Of several others a known name comes first, then the shortest: more words
    in a name narrow down what it counts. The order of the headers does not matter.
    """
    claims = claim_headers(headers)
    names = [name for name in claims if name.endswith("tokens-saved") and not _SUM.search(name)]
    known = {name: place for place, name in enumerate(_SAVED)}
    for name in sorted(names, key=lambda name: (known.get(name, len(known)), len(name), name)):
        try:
            number = float(claims[name])
        except ValueError:
            continue
        if isfinite(number):
            return number
    return None
