"""An API's list of records as JSON: pretty-printed, a record on each line, or all on one line.

One record's note states the fact; other notes state similar facts about other names, so that neither the field nor the
wording gives the fact away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Any, NamedTuple

from context_bench.datasets.synthetic.building import Draw, Names, Stock, ToolOutput, phrases

LAYOUTS = ("pretty", "lines", "compact")
MIN_FULL_RECORD_TOKENS = 4000  # in a shorter context the record has few fields, so that its depth can be met


class Theme(NamedTuple):
    """The subject of the records; `fields` has the optional fields and their values."""

    noun: str
    label: str
    prefix: str
    statuses: tuple[str, ...]
    fields: tuple[tuple[str, Callable[[Draw], Any]], ...]


def _pick_among(*choices: str) -> Callable[[Draw], str]:
    return lambda draw: draw.pick(choices)


def _draw_day(draw: Draw) -> str:
    month, day, hour, minute = (draw.between(1, top) for top in (12, 28, 23, 59))
    return f"2026-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:00Z"


def _draw_number(low: int, high: int) -> Callable[[Draw], int]:
    return lambda draw: draw.between(low, high)


def _draw_tags(draw: Draw) -> list[str]:
    return draw.sample(("urgent", "internal", "vip", "retry", "export", "audited", "trial"), draw.between(0, 3))


CITIES = _pick_among("Lisbon", "Oslo", "Nairobi", "Lima", "Osaka", "Turin", "Quito", "Perth", "Dakar", "Riga", "Hanoi")
PEOPLE = _pick_among("a.okafor", "m.lindqvist", "j.tanaka", "r.silva", "p.novak", "s.haddad", "l.moreau", "k.adeyemi")

THEMES: tuple[Theme, ...] = (
    Theme(
        "shipment",
        "release code",
        "shp",
        ("in_transit", "delivered", "held", "returned", "booked"),
        (
            ("origin", CITIES),
            ("destination", CITIES),
            ("carrier", _pick_among("northway", "bluefreight", "parcelo", "haulix")),
            ("weight_kg", _draw_number(1, 980)),
            ("fragile", lambda draw: draw.chance(0.3)),
            ("tags", _draw_tags),
            ("updated_at", _draw_day),
        ),
    ),
    Theme(
        "account",
        "recovery number",
        "acc",
        ("active", "suspended", "invited", "closed"),
        (
            ("owner", PEOPLE),
            ("plan", _pick_among("free", "team", "business", "enterprise")),
            ("seats", _draw_number(1, 400)),
            ("region", _pick_among("eu-west", "eu-north", "us-east", "ap-south")),
            ("billing", lambda draw: {"cycle": draw.pick(("monthly", "yearly")), "overdue": draw.chance(0.2)}),
            ("created_at", _draw_day),
        ),
    ),
    Theme(
        "sensor",
        "pairing code",
        "sns",
        ("online", "offline", "degraded", "maintenance"),
        (
            ("site", CITIES),
            ("model", _pick_among("TH-Mini", "FlowSense", "AirQ-Pro", "Vibra")),
            ("battery", _draw_number(1, 100)),
            ("firmware", lambda draw: f"{draw.between(1, 4)}.{draw.between(0, 12)}.{draw.between(0, 9)}"),
            ("reading", lambda draw: {"value": draw.between(1, 990) / 10, "unit": draw.pick(("C", "kPa", "ppm"))}),
            ("tags", _draw_tags),
            ("seen_at", _draw_day),
        ),
    ),
)

REMARKS = phrases(
    """Checked by the night shift, nothing to report.; Customer asked for a call before any change.; Waiting for the
    signed form.; Duplicate entry, merge later.; Address confirmed by phone.; Do not contact before noon.;
    Escalated to the regional team, no answer so far.; Label was damaged and has been replaced.; Imported from
    the old system without history.; Second reminder sent.; Approved.; Photo attached to the original request."""
)


def tool_json(draw: Draw, length: int, variant: int) -> ToolOutput:
    """Make JSON filler and a fact; `variant` chooses the layout."""
    layout = LAYOUTS[variant % len(LAYOUTS)]
    theme = draw.pick(THEMES)
    names = Names(draw)
    name, value = names.name(), names.value()
    fact = _write_statement(theme, name, value)

    def filler() -> str:
        roll = draw.fraction()
        note: str | None = None
        if roll < 0.3:
            note = _write_statement(theme, names.other(name), names.value())
        elif roll < 0.8:
            note = draw.pick(REMARKS)
        return _write_record(_make_record(draw, theme, note, bare=draw.chance(0.2)), layout)

    def tombstone() -> str:
        return _write_record(_make_tombstone(draw, theme), layout)

    return ToolOutput(
        stock=Stock(
            filler, tombstone, '"},' if layout == "compact" else "\n", lambda units: _render(units, theme, layout)
        ),
        unit=_write_record(_make_record(draw, theme, fact, bare=length < MIN_FULL_RECORD_TOKENS), layout),
        evidence=fact,
        question=f"What is the {theme.label} for {theme.noun} {'-'.join(name)}?",
        answer=value,
        layout=layout,
    )


def _write_statement(theme: Theme, name: tuple[str, str], value: str) -> str:
    return f"The {theme.label} for {theme.noun} {'-'.join(name)} is {value}."


def _make_record(draw: Draw, theme: Theme, note: str | None, *, bare: bool = False) -> dict[str, Any]:
    record: dict[str, Any] = {"id": _make_identifier(draw, theme)}
    if not bare:
        record["status"] = draw.pick(theme.statuses)
    if note is not None:
        record["note"] = note
    share = 0.0 if bare else 0.2 + 0.8 * draw.fraction()
    for key, make in theme.fields:
        if draw.chance(share):
            record[key] = make(draw)
    return record


def _make_tombstone(draw: Draw, theme: Theme) -> dict[str, Any]:
    """Return what an API shows for a deleted record."""
    record: dict[str, Any] = {"id": _make_identifier(draw, theme)}
    if draw.chance(0.7):
        record["deleted"] = True
    if draw.chance(0.3):
        record["by"] = PEOPLE(draw)
    return record


def _make_identifier(draw: Draw, theme: Theme) -> str:
    return f"{theme.prefix}_{draw.hexadecimal(8)}"


def _write_record(record: dict[str, Any], layout: str) -> str:
    """Write a record, the comma after it, and a line break if the layout has one."""
    if layout == "pretty":
        return indent(json.dumps(record, indent=2), "  ") + ",\n"
    text = json.dumps(record, separators=(",", ":"))
    return text + ",\n" if layout == "lines" else text + ","


def _render(units: Sequence[str], theme: Theme, layout: str) -> str:
    end = "" if layout == "compact" else "\n"
    records = end + "".join(units).rstrip(",\n") + end
    if layout == "pretty":
        return f"[{records}]"
    return f'{{"{theme.noun}s":[{records}],"count":{len(units)}}}'
