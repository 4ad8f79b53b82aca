"""Output of decided claims: a table, JSON, Markdown, and an SVG badge for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from context_bench._version import __version__
from context_bench.claims.judging import BAD, Decision
from context_bench.output.layout import fit_listing

_COLORS = {"good": "#1a7f37", "bad": "#b3261e", "open": "#5f6368"}


def render_table(decisions: Sequence[Decision], width: int | None) -> str:
    """Return a table, and a line with the measurement of each claim."""
    lines = [["claim", "kind", "claimed", "verdict", "validity"]]
    for each in decisions:
        claimed = each.claim.show(each.claim.number) if each.claim.kind != "always" else f"every {each.claim.metric}"
        lines.append([each.claim.id, each.claim.kind, claimed, each.verdict, each.validity])
    told = [f"{each.claim.id}: {each.reason} (set {each.claim.decided} as {each.claim.terms})" for each in decisions]
    return "\n".join([fit_listing(lines, width), "", *told, ""])


def describe(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Return the decisions as JSON values."""
    shown = []
    for each in decisions:
        claim, found = each.claim, each.measured
        kept = ("id", "sentence", "by", "source", "published", "kind", "unit", "direction", "decided", "settings")
        shown.append(
            {
                **{name: getattr(claim, name) for name in kept},
                "number": None if math.isnan(claim.number) else claim.number,
                "tolerance": None if math.isnan(claim.tolerance) else claim.tolerance,
                "terms": claim.terms,
                "verdict": each.verdict,
                "reason": each.reason,
                "validity": each.validity,
                "measured": None if math.isnan(found.value) else found.value,
                "n": found.n,
                "data": found.data or claim.data,
                "from": found.how,
                "note": claim.note,
            }
        )
    return shown


def render_markdown(decisions: Sequence[Decision], reply: str = "") -> str:
    """Return a table row for each claim, with the hash of its terms; `reply` is the address for replies."""
    lines = [
        "| claim | published | kind | verdict | validity | measurement, or reason for none |",
        "|---|---|---|---|---|---|",
    ]
    for each in decisions:
        claim = each.claim
        where = f"[{claim.by or 'source'}]({claim.source})" if "://" in claim.source else claim.source
        where = where if not claim.by or "://" in claim.source else f"{claim.by}, {where}"
        cells = [
            f'<a id="{claim.id}"></a>{claim.sentence}',
            f"{where}, {claim.published}" + (f" ([reply]({reply}))" if reply else ""),
            f"{claim.kind}, set {claim.decided} as `{claim.terms}`",
            f"**{each.verdict}**",
            each.validity,
            each.reason + (f"; {claim.settings}" if claim.settings else "") + (f". {claim.note}" if claim.note else ""),
        ]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def render_badge(decision: Decision, date: str) -> str:
    """Return an SVG badge with kind, verdict, validity, version and date; green only if the data could show losses."""
    color = _COLORS["good" if decision.green else "bad" if decision.word in BAD else "open"]
    left = f"{decision.claim.kind}: {decision.verdict}"
    right = f"validity {decision.validity} · context-bench {__version__} · {date}"
    first, second = (12 + round(6.6 * len(text)) for text in (left, right))
    text = "fill='#fff' font-family='Verdana,sans-serif' font-size='11'"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{first + second}' height='20' role='img' "
        f"aria-label='{escape(decision.claim.id)}: {escape(left)}; {escape(right)}'>"
        f"<rect width='{first}' height='20' fill='{color}'/>"
        f"<rect x='{first}' width='{second}' height='20' fill='#3c4043'/>"
        f"<text x='6' y='14' {text}>{escape(left)}</text>"
        f"<text x='{first + 6}' y='14' {text}>{escape(right)}</text></svg>\n"
    )
