"""Runs all checks in their order: one after the other, on one proxy, with one tap behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_bench.conformance import (
    concurrency_check,
    error_checks,
    field_checks,
    stream_checks,
    text_checks,
    tool_checks,
)
from context_bench.conformance.anthropic_form import Anthropic
from context_bench.conformance.bench import Bench
from context_bench.conformance.check_definition import Check, CheckFailed, Outcome
from context_bench.conformance.check_upstream import Upstream
from context_bench.conformance.client import Client
from context_bench.conformance.forms import Form
from context_bench.conformance.openai_form import OpenAI
from context_bench.errors import ConnectionFailed, UnknownName, UsageError, describe, printable
from context_bench.http.paths import find_api_root
from context_bench.wire.dialects import Dialect
from context_bench.wire.replies import Answer

__all__ = ["CHECKS", "Findings", "choose_checks", "examine"]

CHECKS: tuple[Check, ...] = (
    text_checks.plain_reply,
    text_checks.conversation,
    text_checks.unicode_request,
    text_checks.unicode_reply,
    text_checks.surrogates,
    text_checks.long_input,
    text_checks.long_output,
    stream_checks.stays_streaming,
    stream_checks.complete,
    stream_checks.usage,
    stream_checks.end,
    tool_checks.calls_plain,
    tool_checks.calls_streamed,
    tool_checks.schemas,
    tool_checks.pairs,
    field_checks.model,
    field_checks.settings,
    field_checks.unknown_request,
    field_checks.caller,
    field_checks.images,
    field_checks.key,
    field_checks.api_headers,
    field_checks.unknown_reply,
    field_checks.usage,
    field_checks.choices,
    *error_checks.relayed,
    error_checks.relayed_before_stream,
    concurrency_check.concurrent,
)

_FORMS: dict[Dialect, type[OpenAI] | type[Anthropic]] = {"openai": OpenAI, "anthropic": Anthropic}
_SHOWN = 300
_APIS = {"openai": "OpenAI", "anthropic": "Anthropic"}


@dataclass(frozen=True)
class Findings:
    """The findings about one proxy: by its name, or its URL where it has none."""

    proxy: str
    api: Dialect
    outcomes: list[Outcome]
    notes: list[str]

    def count(self, status: str) -> int:
        """Count the checks with that status."""
        return sum(outcome.status == status for outcome in self.outcomes)


def choose_checks(names: Sequence[str]) -> tuple[Check, ...]:
    """Choose checks by their names, in their order; all without any. Hyphens may stand for spaces."""
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
    api: Dialect = "openai",
    checks: Sequence[Check] = CHECKS,
    model: str | None = None,
    timeout: float = 30.0,
    headers: Mapping[str, str] | None = None,
    on_check: Callable[[int, Check], None] | None = None,
) -> Findings:
    """Run checks on a proxy whose upstream is a tap that `upstream` answers for.

    Args:
        proxy: Its URL.
        upstream: What answers behind the proxy.
        tap: Where that is reached, to name it when nothing arrives there.
        api: What is spoken.
        checks: Which ones.
        model: The model asked for, where the proxy does not take any.
        timeout: Seconds for one request.
        headers: Sent to the proxy with every request.
        on_check: Told of each check before it runs, with its place.

    Raises:
        UsageError: No proxy listens at the URL, or it uses another upstream.
    """
    form: Form = _FORMS[api]()
    form.model = model or form.model
    async with Client(find_api_root(proxy), timeout, headers) as client:
        bench = Bench(form, client, upstream)
        try:
            await _require_reach(bench, tap)
            outcomes = []
            for place, check in enumerate(checks):
                if on_check is not None:
                    on_check(place, check)
                outcomes.append(await _run_check(check, bench))
            await _list_models(bench)
        except ConnectionFailed as error:
            raise UsageError(str(error)) from error
    return Findings(proxy, api, outcomes, bench.list_notes())


async def _require_reach(bench: Bench, tap: str) -> None:
    """Fail unless the proxy answers and has the tap as its upstream: else every check would fail alike."""
    try:
        arrived = (await bench.ask(Answer("ok"))).arrived
        text = printable(arrived.text())
        more = "" if len(text) <= _SHOWN else " …"
        # A proxy that fails on its own says why in the body.
        answered = f"status {arrived.status}" + (f" ({text[:_SHOWN]}{more})" if arrived.status != 200 and text else "")
    except CheckFailed as error:
        answered = error.reason
    if not bench.upstream.calls:
        raise UsageError(
            f"{bench.client.url} answered with {answered}, and nothing reached the tap: "
            f"make {tap} the upstream of the proxy"
        )


async def _run_check(check: Check, bench: Bench) -> Outcome:
    if bench.form.api not in check.apis:
        return Outcome(check.name, check.asks, "skip", f"only the API of {_APIS[check.apis[0]]} has it")
    try:
        await check.run(bench)
    except CheckFailed as error:
        return Outcome(check.name, check.asks, "fail", error.reason, error.sent, error.arrived)
    except (LookupError, TypeError, AttributeError, ValueError) as error:  # whatever a proxy may make of a document
        return Outcome(check.name, check.asks, "fail", f"what arrived does not have the API's form ({describe(error)})")
    return Outcome(check.name, check.asks, "pass")


async def _list_models(bench: Bench) -> None:
    """Note how the proxy lists models: not a failure, as few clients ask for them."""
    name, key = bench.form.key
    headers: dict[str, Any] = {name: key, **bench.form.headers}
    told = []
    for method in ("GET", "HEAD"):
        try:
            told.append(f"{method} {(await bench.client.send(method, '/v1/models', headers=headers)).status}")
        except CheckFailed as error:
            told.append(f"{method} {error.reason}")
    bench.note(f"/v1/models: {', '.join(told)}")
