"""Run all checks in order on one proxy with a tap behind it, and render the findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_bench.conformance import reply_checks, request_checks
from context_bench.conformance.bench import Bench, Check, CheckFailed, Client, ExamOutcome, Upstream
from context_bench.errors import ConnectionFailed, UnknownName, UsageError, describe, printable
from context_bench.http.secrets import find_api_root
from context_bench.wire.form import Answer
from context_bench.wire.forms import get_form

CHECKS: tuple[Check, ...] = (
    reply_checks.plain_reply,
    reply_checks.conversation,
    reply_checks.unicode_request,
    reply_checks.unicode_reply,
    reply_checks.surrogates,
    reply_checks.long_input,
    reply_checks.long_output,
    reply_checks.stays_streaming,
    reply_checks.complete,
    reply_checks.streamed_usage,
    reply_checks.end,
    request_checks.calls_plain,
    request_checks.calls_streamed,
    request_checks.schemas,
    request_checks.pairs,
    request_checks.model,
    request_checks.settings,
    request_checks.unknown_request,
    request_checks.caller,
    request_checks.images,
    request_checks.key,
    request_checks.api_headers,
    request_checks.unknown_reply,
    request_checks.usage,
    request_checks.choices,
    request_checks.items,
    request_checks.compaction,
    *reply_checks.relayed,
    reply_checks.relayed_before_stream,
    reply_checks.concurrent,
)

_MAX_ANSWER_CHARS = 300


@dataclass(frozen=True)
class Findings:
    """The findings about one proxy, with its name, or else its URL."""

    proxy: str
    api: str
    outcomes: list[ExamOutcome]
    notes: list[str]

    def count(self, status: str) -> int:
        return sum(outcome.status == status for outcome in self.outcomes)


def choose_checks(names: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks with these names, in the checks' order; all if no name is given. Hyphens may replace spaces."""
    if not names:
        return CHECKS
    known = {_key(check.name): check for check in CHECKS}
    for name in names:
        if _key(name) not in known:
            raise UnknownName("check", name, (check.name for check in CHECKS))
    wanted = {_key(name) for name in names}
    return tuple(check for key, check in known.items() if key in wanted)


def _key(name: str) -> str:
    return name.replace("-", " ").casefold()


async def examine(
    proxy: str,
    upstream: Upstream,
    *,
    tap: str,
    api: str = "openai",
    checks: Sequence[Check] = CHECKS,
    model: str | None = None,
    timeout: float = 30.0,
    headers: Mapping[str, str] | None = None,
    on_check: Callable[[int, Check], None] | None = None,
) -> Findings:
    """Run checks on a proxy whose upstream is a tap; `upstream` answers behind it.

    Args:
        proxy: The URL of the proxy.
        upstream: The answerer behind the proxy.
        tap: The address of the tap, for the error if nothing arrives there.
        api: The API of the requests.
        checks: The checks to run.
        model: The model to request, if the proxy does not accept every name.
        timeout: Seconds for one request.
        headers: Sent to the proxy with every request.
        on_check: Called before each check, with its position.

    Raises:
        UsageError: No proxy listens at the URL, or it uses another upstream.
    """
    form = get_form(api)
    async with Client(find_api_root(proxy), timeout, headers) as client:
        bench = Bench(form, client, upstream, model or form.samples.model)
        try:
            await require_reach(bench, tap)
            outcomes = []
            for place, check in enumerate(checks):
                if on_check is not None:
                    on_check(place, check)
                outcomes.append(await _run_check(check, bench))
            await _list_models(bench)
        except ConnectionFailed as error:
            raise UsageError(str(error)) from error
    return Findings(proxy, api, outcomes, bench.list_notes())


async def require_reach(bench: Bench, tap: str) -> None:
    """Fail unless the proxy answers and has the tap as its upstream, because otherwise every check would fail."""
    try:
        arrived = (await bench.ask(Answer("ok"))).arrived
        text = printable(arrived.text())
        more = "" if len(text) <= _MAX_ANSWER_CHARS else " …"
        # A proxy that fails on its own says why in the body.
        answered = f"status {arrived.status}" + (
            f" ({text[:_MAX_ANSWER_CHARS]}{more})" if arrived.status != 200 and text else ""
        )
    except CheckFailed as error:
        answered = error.reason
    if not bench.upstream.calls:
        raise UsageError(
            f"{bench.client.url} answered with {answered}, and nothing reached the tap: "
            f"make {tap} the upstream of the proxy"
        )


async def _run_check(check: Check, bench: Bench) -> ExamOutcome:
    if check.api not in (None, bench.form.name):
        return ExamOutcome(check.name, check.asks, "skip", f"only the API of {get_form(check.api).title} supports this")
    try:
        await check.run(bench)
    except CheckFailed as error:
        return ExamOutcome(check.name, check.asks, "fail", error.reason, error.sent, error.arrived)
    except (LookupError, TypeError, AttributeError, ValueError) as error:  # whatever a proxy may make of a document
        return ExamOutcome(
            check.name, check.asks, "fail", f"the received body does not have the API's form ({describe(error)})"
        )
    return ExamOutcome(check.name, check.asks, "pass")


async def _list_models(bench: Bench) -> None:
    """Note how the proxy lists models; few clients ask for them, so this is no failure."""
    told = []
    for method in ("GET", "HEAD"):
        try:
            told.append(f"{method} {(await bench.client.send(method, '/v1/models', headers=bench.headers)).status}")
        except CheckFailed as error:
            told.append(f"{method} {error.reason}")
    bench.note(f"/v1/models: {', '.join(told)}")


_MARKS = {"pass": "✓", "fail": "✗", "skip": "–"}
_WIDTH, _BEFORE = 200, 40


def render_json(*several: Findings) -> str:
    """Render everything as JSON: an object for one proxy, a list of them for several."""
    documents = [_build_document(findings) for findings in several]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2, default=str) + "\n"


def _build_document(findings: Findings) -> dict[str, Any]:
    return {
        "proxy": findings.proxy,
        "api": findings.api,
        "passed": findings.count("pass"),
        "failed": findings.count("fail"),
        "skipped": findings.count("skip"),
        "checks": [outcome.to_dict() for outcome in findings.outcomes],
        "notes": findings.notes,
    }


def render_table(*several: Findings) -> str:
    """Render a line for each check, proxy by proxy; below a failed check, show the sent and the received value."""
    return "\n".join(_render_findings(findings) for findings in several)


def _render_findings(findings: Findings) -> str:
    width = max((len(outcome.name) for outcome in findings.outcomes), default=0)
    lines = [line for outcome in findings.outcomes for line in _render_outcome(outcome, width)]
    lines.append("")
    lines += [f"note: {printable(note)}" for note in findings.notes]
    counts = f"{findings.count('pass')} passed, {findings.count('fail')} failed, {findings.count('skip')} skipped"
    lines.append(f"{printable(findings.proxy)} ({findings.api}): {counts}")
    return "\n".join(lines) + "\n"


def _render_outcome(outcome: ExamOutcome, width: int) -> list[str]:
    lines = [f"{_MARKS[outcome.status]} {outcome.name:<{width}}  {printable(outcome.reason)}".rstrip()]
    if outcome.status == "fail":
        sent, arrived = _flatten(outcome.sent), _flatten(outcome.arrived)
        start = _find_difference(sent, arrived)
        lines += [f"    sent:    {_cut_window(sent, start)}", f"    arrived: {_cut_window(arrived, start)}"]
    return lines


def _flatten(value: Any) -> str:
    """Write a value on one line."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text.encode("utf-8", "backslashreplace").decode())


def _find_difference(one: str, other: str) -> int:
    """Return the start of the part to show of two texts: shortly before their first difference, 0 if both are short."""
    if max(len(one), len(other)) <= _WIDTH:
        return 0
    parts = next((place for place, (left, right) in enumerate(zip(one, other)) if left != right), 0)
    return max(0, parts - _BEFORE)


def _cut_window(text: str, start: int) -> str:
    shown = text[start : start + _WIDTH]
    return f"{'… ' if start else ''}{shown}{' …' if start + _WIDTH < len(text) else ''}"
