"""A proxy under test with a tap behind it, which shows what really reached the model."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from context_bench.errors import BadOutput, RequestFailed, UsageError
from context_bench.http.loop import run_sync
from context_bench.http.refusals import is_about_content
from context_bench.processes.started_proxy import StartedProxy
from context_bench.systems.prompts import Message, ask, merge
from context_bench.systems.reference import ClosedBook, Oracle, Passthrough
from context_bench.tap.answering import Answerer, Incoming, Outgoing, build_reply, describe_answerer
from context_bench.tap.matching import Matcher
from context_bench.tap.server import Tap
from context_bench.tap.watched_endpoint import WatchedEndpoint, gather_exchanges
from context_bench.text.masking import mask_command
from context_bench.traffic.calls import Call, link_calls
from context_bench.traffic.row_facts import bill_call
from context_bench.traits import SystemTraits, find_label, find_model, find_secrets, system_traits
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.form import Answer

_MAX_ERROR_CHARS = 200


@dataclass(frozen=True)
class Launch:
    """How to start the proxy under test: a command that contains {port} and {tap}.

    `facts` are further facts about the proxy, such as its package and version. `directory` is its working directory: by
    default the current directory; "scratch" creates a new one.
    """

    command: str
    port: int
    env: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    directory: str | None = None

    def describe(self) -> dict[str, Any]:
        """Describe the measured program for the record of a run, without possible secrets."""
        where = {"directory": self.directory} if self.directory else {}
        return {"command": mask_command(self.command), **where, **self.facts}

    @property
    def known_as(self) -> str:
        """The command with the content of its files, so that a changed proxy has another identity."""
        files = [path for word in shlex.split(self.command)[1:] if (path := Path(word)).is_file()]
        digests = [blake2b(path.read_bytes(), digest_size=8).hexdigest() for path in files]
        return " ".join([self.command, *digests, *([f"in {self.directory}"] if self.directory else [])])


class Tapped:
    """A proxy whose upstream is our tap; its rows show the requests that reached the model.

    The tap, and the proxy if we start it, run from the first example to the last. Set `local` if the answers are
    computed on this machine: such systems take turns, so that their times are comparable.

    Args:
        system: An OpenAIProxy or AnthropicProxy for the proxy under test.
        answerer: What answers behind the tap: `Forward`, `LocalModel` or `Scripted`.
        port: The port of the tap; 0 takes a free one, which requires that the proxy is started here.
        host: The address of the tap; loopback by default.
        launch: Start the proxy, and stop it at the end.
        known_as: Identifies the proxy if its address does not; the start command by default.
        hosts: Host names that the proxy may use for the tap, in addition to addresses and localhost.
    """

    sends_elsewhere = True

    def __init__(
        self,
        system: Any,
        answerer: Answerer,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        launch: Launch | None = None,
        known_as: str | None = None,
        hosts: Sequence[str] = (),
    ) -> None:
        if isinstance(system.endpoint, WatchedEndpoint):
            raise UsageError(f"{system.name!r} has a tap already: create a separate system for this one")
        self.system, self.answerer, self.launch = system, answerer, launch
        self._matcher = Matcher()
        # A proxy that we start is the same one at any port.
        known_as = known_as or (launch.known_as if launch else None)
        system.endpoint.add_secrets(find_secrets(answerer))
        self._secrets = secrets = system.endpoint.reveal_secrets()
        self._watched = system.endpoint = WatchedEndpoint(system.endpoint, self._matcher, known_as)
        self.tap = Tap(
            _AnswersProbe(answerer, self._matcher),
            host=host,
            port=port,
            on_call=self._matcher.take,
            on_end=self._matcher.end,
            secrets=secrets,
            hosts=hosts,
        )
        self.max_workers: int | None = system_traits(system).max_workers
        self.local = False
        self._proxy: StartedProxy | None = None

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(
            own_client=True,
            parts=[self.system],
            max_workers=self.max_workers,
            takes_turns=self.local,
            sees_upstream=True,
            asks_model=True,
            request_body=self.request_body,
            stop_reason=self.stop_reason,
            report=self.report,
            list_unmatched=lambda: self.unmatched,
        )

    def __repr__(self) -> str:
        return f"Tapped({self.system!r})"

    @property
    def name(self) -> str:
        return str(self.system.name)

    @property
    def model(self) -> str | None:
        return find_model(self.system)

    @property
    def label(self) -> str | None:
        """The answerer's note on every result."""
        return find_label(self.answerer)

    @property
    def fingerprint(self) -> str | None:
        """The proxy, its start, and its answerer."""
        own, behind = self.system.fingerprint, self.answerer.fingerprint
        return None if own is None or behind is None else f"{own}, tap: {behind}"

    def report(self, count: Tokenizer) -> dict[str, Any]:
        """Report facts of the run that no row contains; `count` counts the tokens.

        `late_tokens` are the prompt tokens of calls that arrived after their request was answered, so no row contains
        them. With these tokens, `prompt_savings` has a worst case; with `late_usage`, dollars have one too.
        """
        report: dict[str, Any] = {
            "answered_by": describe_answerer(self.answerer),
            "unmatched": self._matcher.unmatched_count,
        }
        if len(self.unmatched) < self._matcher.unmatched_count:
            report["unmatched_kept"] = len(self.unmatched)
        if self.launch is not None:
            report["proxy"] = {"name": self.name, **self.launch.describe()}
        if self._matcher.uncounted:
            report["uncounted"] = dict(self._matcher.uncounted)
        link_calls(self._matcher.late)
        late = [call for call in self._matcher.late if call.asks_model and call.status < 300]
        uncounted = self._matcher.late_count - len(self._matcher.late)
        if late or uncounted:
            tokens = [call.prompt.tokens(count) for call in late if call.prompt is not None]
            # A token is at least one byte, so the size of dropped calls bounds their tokens.
            more = [{"prompt_tokens": self._matcher.late_bytes, "completion_tokens": 0}] if uncounted else []
            report |= {
                "late_calls": len(late) + uncounted,
                "late_tokens": sum(tokens) + self._matcher.late_bytes,
                "late_usage": [*(bill_call(call, count) for call in late), *more],
            }
        return {**report, "label": self.label} if self.label else report

    @property
    def unmatched(self) -> Sequence[Call]:
        """The calls at the tap that match no single example."""
        return self._matcher.unmatched

    def stop_reason(self, failure: BaseException | None, answer: Mapping[str, Any]) -> str | None:
        """Return the reason to send no further examples: the proxy fails, or its calls do not reach the tap."""
        reason: str | None = self.system.stop_reason(failure, answer)
        if reason is not None or self._matcher.seen or self._watched.last_was_cached:
            return reason
        if failure is not None and (not isinstance(failure, RequestFailed | BadOutput) or is_about_content(failure)):
            return None
        said = str(failure or answer.get("response") or "")[:_MAX_ERROR_CHARS]
        return (
            f"nothing has reached the tap at {self.tap.url}: set the upstream of the proxy to that address "
            f"(the proxy answered {said!r})"
        )

    async def prepare(self) -> None:
        """Open the tap, start the proxy if we have its command, and check that it can be reached."""
        await self.tap.start()
        if hasattr(self.system, "fill_in_tap"):
            self.system.fill_in_tap(self.tap.url)
            self.tap.add_secrets(self._watched.reveal_secrets())
        if self.launch is not None:
            launch = self.launch
            self._proxy = StartedProxy(
                launch.command,
                port=launch.port,
                tap_url=self.tap.url,
                env=launch.env,
                secrets=self._secrets,
                directory=launch.directory,
            )
            await self._proxy.start()
        await self.system.prepare()

    async def finish(self) -> None:
        """Stop the proxy if we started it, and close the tap."""
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.stop()
        await self.tap.stop()

    async def aprocess(self, example: Example) -> Example:
        """Send one example through the proxy; `tapped` has the tap's record of it."""
        result: Example = await _keep_what_was_seen(self.system.aprocess(example))
        if self.launch is not None and (vendor := self.launch.facts.get("package")):
            result = {**result, "metadata": {**(result.get("metadata") or {}), "vendor": vendor}}
        return result

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop: the tap is open for this one example."""

        async def once() -> Example:
            try:
                await self.prepare()
                return await self.aprocess(example)
            finally:
                await self.finish()

        return run_sync(once())

    def request_body(self, example: Example) -> dict[str, Any]:
        """Build the body that is sent for an example."""
        body: dict[str, Any] = self.system.request_body(example)
        return body

    async def aprocess_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the open turns of a conversation one after the other."""
        replies: list[Message] = await _keep_what_was_seen(self.system.aprocess_conversation(turns))
        return replies


class _AnswersProbe:
    """An answerer that answers our own probe without the model."""

    def __init__(self, answerer: Answerer, matcher: Matcher) -> None:
        self._answerer, self._matcher = answerer, matcher
        self.open, self.close = answerer.open, answerer.close

    @property
    def fingerprint(self) -> str | None:
        return self._answerer.fingerprint

    async def answer(self, request: Incoming) -> Outgoing:
        """Answer the probe here, and pass all other requests on."""
        if self._matcher.answers_probe(request):
            return build_reply(Answer("It is the tap."), request)
        return await self._answerer.answer(request)


async def _keep_what_was_seen(answer: Awaitable[Any]) -> Any:
    """Await an answer; add the tap's records to an error, since those requests were paid for."""
    with gather_exchanges() as seen:
        try:
            return await answer
        except (Exception, asyncio.CancelledError) as error:
            failed: Any = error
            own = getattr(error, "tapped", None) or []
            failed.tapped = [{**exchange, "failed": True} for exchange in (*seen, *own)]
            raise


CONTROLS: dict[str, Any] = {"floor": ClosedBook, "ceiling": Oracle, "direct": Passthrough}
"""The systems that make the prompts of the controls: no context, the evidence alone, the full context."""


class Control:
    """A control that asks the model without the proxy.

    Args:
        name: One of CONTROLS.
        reader: A server with the address of its own tap.
    """

    sends_elsewhere = True
    reads_gold = True  # the ceiling needs the evidence

    def __init__(self, name: str, reader: Tapped) -> None:
        self.name, self.reader, self.tap = name, reader, reader.tap
        self._maker = CONTROLS[name]()
        self.model, self.max_workers, self.local = reader.model, reader.max_workers, reader.local
        self.prepare, self.finish = reader.prepare, reader.finish

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(
            system_traits(self.reader),
            parts=[self._maker, self.reader],
            max_workers=self.max_workers,
            takes_turns=self.local,
            competes=False,
            request_body=self._request_body,
        )

    def _request_body(self, example: Example) -> Mapping[str, Any] | None:
        make_body = system_traits(self.reader).request_body
        return None if make_body is None else make_body(self._make_prompt(example))

    def _make_prompt(self, example: Example) -> Example:
        return merge(example, self._maker.process(dict(example)))

    async def aprocess(self, example: Example) -> Example:
        result: Example = await ask(self.reader, self._make_prompt(example))
        return result

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop."""
        return run_sync(self.aprocess(example))
