"""A JSON server: one call sends a body, retries as needed, and returns the parsed reply."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import orjson

from context_bench.errors import ConnectionFailed, LocalShortage, RequestFailed, TimedOut
from context_bench.http.gate import Gate, RetryPolicy, is_transient, retry_after
from context_bench.http.secrets import Secret, check_url, merge_headers
from context_bench.http.transport import Reply, get_shared_transport
from context_bench.text.masking import find_url_secrets, mask_text
from context_bench.wire.events import BOM

_log = logging.getLogger(__name__)

_MAX_ERROR_CHARS = 400
_BYTES_PER_TOKEN = 4
_LONG_REPLY_BYTES = 262_144  # bytes from which a reply is parsed in a thread
_MIN_LAG_SECONDS = 0.001  # seconds between a reply's last byte and its use from which on they count as our own time
_MIN_KEY_CHARS = 12  # anything shorter is not a real key, and may be a word of an answer


Request = tuple[bytes, Sequence[str]]  # a body and the lines of its headers

Parse = Callable[[Reply], Any]


@dataclass(slots=True)
class Exchange:
    """A reply with the facts of its request that a row keeps.

    `waited` is the delay in seconds that our own client caused: it waited for its turn or for a retry, or was busy when
    the reply came. `sent` is the time of the last attempt and `deadline` the time after which no attempt starts, both
    by `time.monotonic`; `raw_headers` are the headers of the reply. `tapped` is the record of a tap behind the
    endpoint, None without one.
    """

    document: Any = None
    attempts: int = 0
    timed_out: int = 0
    waited: float = 0.0
    seconds: float = 0.0
    sent: float = 0.0
    deadline: float = 0.0
    raw_headers: bytes = b""
    tapped: list[dict[str, Any]] | None = None

    def facts(self) -> dict[str, Any]:
        """Attempts, seconds that our client waited, and seconds of the attempt that succeeded.

        Timed-out attempts may have been billed, so they are counted separately.
        """
        facts = {"attempts": self.attempts, "waited": self.waited, "request_seconds": self.seconds}
        if self.timed_out:
            facts["timed_out_attempts"] = self.timed_out
        return facts


class Endpoint:
    """One server with its key, its retry policy and its gate.

    `timeout` is the seconds for one attempt, `max_tpm` the limit of tokens per minute, as the server counts them.
    `secrets` are values in the bodies that must never be shown or stored; values of `headers` may be secrets too.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str | Secret] | None = None,
        timeout: float = 30.0,
        policy: RetryPolicy | None = None,
        limit: int | None = None,
        max_rpm: float | None = None,
        max_tpm: float | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.base_url = check_url(base_url)
        self.place = urlsplit(self.base_url).netloc
        self.timeout = timeout
        self.policy = policy or RetryPolicy()
        self._headers = merge_headers({"Content-Type": "application/json", "Expect": ""}, headers or {})
        self._secrets = [value for value in self._headers.values() if isinstance(value, Secret)]
        self._secrets += [Secret(value) for value in (*find_url_secrets(self.base_url), *secrets)]
        # Made once, and kept where a dump of this object's attributes does not show them.
        self._lines = cache(lambda: tuple(f"{name}: {_reveal(value)}" for name, value in self._headers.items()))
        self._spelled = cache(lambda: tuple(_spell(self._secrets)))
        self._gate = Gate(self.place, limit, max_rpm, max_tpm)
        self._counts_tokens = self._gate.counts_tokens
        self._look: asyncio.Future[None] | None = None
        self._has_answered = False

    def __repr__(self) -> str:
        return f"Endpoint({mask_text(self.base_url)!r})"

    async def probe(self) -> None:
        """Check without a request whether the server listens. A server that did not listen is not checked again.
        Systems that share the endpoint share this check.
        """
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(self._find_out())
        await self._look

    async def _find_out(self) -> None:
        reason = ""
        for pause in (0.0, 0.2, 0.8):
            await asyncio.sleep(pause)
            try:
                await get_shared_transport().connect(self.base_url, min(self.timeout, 3.0))
            except LocalShortage:
                return  # this says nothing about the server: requests wait for connections and will find out
            except RequestFailed as error:
                reason = error.reason if isinstance(error, ConnectionFailed) else str(error)
                continue
            self._gate.reopen()
            return
        self._gate.close(f"{self.place} is down: {reason}")

    async def post(self, path: str, body: Any, parse: Parse | None = None) -> Exchange:
        """Send `body` as JSON until a usable reply arrives; raise RequestFailed when the policy allows no more retries.

        `body` may be a function that returns, for each attempt, a body (bytes if already encoded) and further header
        lines. `parse` turns a good reply into a document, instead of JSON; a ValueError means "try again". With
        `parse`, the reply has the arrival time of each chunk.
        """
        url, started = self.base_url + path, monotonic()
        exchange = Exchange(deadline=started + self.policy.deadline)
        request = None if callable(body) else (encode(body), self._lines())
        retries = refusals = 0
        while True:
            try:
                await self._attempt(exchange, url, request or partial(self._make, body), parse)
                self._has_answered = True
                return exchange
            except _Retry as again:
                short = isinstance(again.error, LocalShortage)  # our own wait, not the server's fault
                refused = short or (again.reply is not None and again.reply.status == 429)
                pause = self.policy.delay(refusals if refused else retries, again.asked)
                may_retry = short or self.policy.allows(retries, refused=refused)
                if not may_retry or monotonic() + pause >= exchange.deadline or self._gate.closed:
                    raise self._give_up(again, exchange, url, monotonic() - started) from None
                retries += not refused
                refusals += refused
                if refused:
                    self._gate.note_refusal(pause, again.error if isinstance(again.error, LocalShortage) else None)
            except RequestFailed as error:
                error.url = url
                error.metadata.update(exchange.facts())
                raise
            exchange.waited += pause
            await asyncio.sleep(pause)

    async def _attempt(
        self, exchange: Exchange, url: str, request: Request | Callable[[], Request], parse: Parse | None
    ) -> None:
        """Send once through the gate and store the reply in the exchange; raise _Retry if a later attempt may
        succeed."""
        if not self._gate.enter_at_once():
            await self._enter(exchange)
        exchange.attempts += 1
        transport = get_shared_transport()
        try:
            payload, headers = request() if callable(request) else request
            exchange.sent = monotonic()
            left = exchange.deadline - exchange.sent
            timeout = self.timeout if left > self.timeout else max(0.05, left)
            if verbose := _log.isEnabledFor(logging.DEBUG):
                _log.debug("> POST %s %s", mask_text(url), _for_log(self.hide_secrets(payload)))
            reply = await transport.request("POST", url, headers, payload, timeout, timed=parse is not None)
        except (ConnectionFailed, LocalShortage, TimedOut) as error:
            exchange.timed_out += isinstance(error, TimedOut)
            exchange.deadline += error.held
            if isinstance(error, ConnectionFailed):
                self._gate.unreachable(error.reason or str(error))
            raise _Retry(error) from None
        finally:
            self._gate.leave()
        exchange.deadline += reply.held  # the event loop was blocked
        if queued := reply.queued:
            exchange.waited += queued
            exchange.sent += queued
        self._gate.note_answer(served=reply.status != 429)
        if len(reply.body) < _LONG_REPLY_BYTES:
            exchange.document = self._accept(reply, parse, verbose)
        else:  # in a thread, so that the event loop can listen to others
            read = asyncio.get_running_loop().run_in_executor
            exchange.document = await read(None, self._accept, reply, parse, verbose)
        exchange.seconds, exchange.raw_headers = reply.seconds, reply.raw_headers
        busy = monotonic() - reply.arrived
        if busy > _MIN_LAG_SECONDS:
            exchange.waited += busy

    def _make(self, body: Callable[[], tuple[Any, Sequence[str]]]) -> Request:
        made, more = body()
        return made if isinstance(made, bytes) else encode(made), (*self._lines(), *more)

    async def _enter(self, exchange: Exchange) -> None:
        """Wait at the gate. Time spent on our own limits does not count against the deadline."""
        before, refusing = monotonic(), self._gate.refusing
        await self._gate.enter(exchange.deadline)
        seconds = monotonic() - before
        exchange.waited += seconds
        if not refusing and not self._gate.refusing:
            exchange.deadline += seconds

    def fill_in(self, placeholder: str, value: str) -> None:
        """Fill in a placeholder in the headers; the results are as secret as the headers."""
        held = {name: each for name, each in self._headers.items() if placeholder in _reveal(each)}
        filled = {name: Secret(_reveal(each).replace(placeholder, value)) for name, each in held.items()}
        self._headers = {**self._headers, **filled}
        self._lines.cache_clear()
        self.add_secrets(each.reveal() for each in filled.values())

    def add_secrets(self, values: Iterable[str]) -> None:
        """Add values that must never be shown or stored."""
        self._secrets += map(Secret, values)
        self._spelled.cache_clear()

    def hide_secrets(self, body: bytes) -> bytes:
        """Return a request body that is safe to show and store."""
        for secret in self._secrets:
            body = body.replace(orjson.dumps(secret.reveal()), b'"***"')
        for key in self._spelled():
            body = body.replace(key, b"***")
        return body

    def reveal_secrets(self) -> list[str]:
        """Return the values that must be hidden in stored requests."""
        return [value.reveal() for value in self._secrets]

    def settle(self, tokens: int | None, *texts: Any) -> None:
        """Report the tokens that a request used, for the limit of tokens per minute. Without a plausible count from the
        server they are estimated from the size of `texts`, so that no server can disable the limit.
        """
        if self._counts_tokens:
            guessed = sum(len(encode(text)) for text in texts) // _BYTES_PER_TOKEN if tokens is None else tokens
            self._gate.spend(guessed)

    def _hide_keys(self, reply: Reply) -> None:
        """Hide the key in a reply: a server that repeats it must not spread it into rows, reports and logs."""
        for key in self._spelled():
            if key in reply.body or key in reply.raw_headers:
                reply.body = reply.body.replace(key, b"***")
                reply.raw_headers = reply.raw_headers.replace(key, b"***")
                reply.chunks = [(moment, chunk.replace(key, b"***")) for moment, chunk in reply.chunks]

    def _without_keys(self, document: Any) -> Any:
        """Hide keys in a document assembled from a stream, whose pieces may have cut a key in two."""
        for key in self._spelled():
            try:
                text = orjson.dumps(document)
            except TypeError as error:
                raise ValueError(f"it cannot be serialised: {error}") from None
            if key in text:
                document = orjson.loads(text.replace(key, b"***"))
        return document

    def _accept(self, reply: Reply, parse: Parse | None, verbose: bool) -> Any:
        """Return the parsed body of a good reply; raise _Retry if another attempt may help, else RequestFailed."""
        if self._secrets:
            self._hide_keys(reply)
        if verbose:
            _log.debug("< %d in %.3f s %s", reply.status, reply.seconds, _for_log(reply.body))
        if 200 <= reply.status < 300:
            try:
                return orjson.loads(reply.body.removeprefix(BOM)) if parse is None else self._without_keys(parse(reply))
            except ValueError as broken:
                what = "a body that is not JSON" if parse is None else f"a broken stream ({broken})"
                problem = f"{self.place} answered {reply.status} with {what}: {shorten_body(reply.body)}"
                if not self._has_answered and reply.body.lstrip()[:1] == b"<":  # a web page: this is not the API
                    raise _refusal(problem, reply) from None
                raise _Retry(_refusal(problem, reply), reply) from None
        if 300 <= reply.status < 400:
            target = reply.header("location") or "nowhere"
            problem = f"a redirect to {target}, which is not followed: use the right URL"
            raise _refusal(f"{self.place} answered {reply.status}, {problem}", reply)
        error = _refusal(f"{self.place} answered {reply.status}: {shorten_body(reply.body)}", reply)
        if is_transient(reply.status):
            raise _Retry(error, reply)
        raise error

    def _give_up(self, again: _Retry, exchange: Exchange, url: str, seconds: float) -> RequestFailed:
        error = again.error
        error.url = url
        if exchange.attempts > 1:
            error.args = (f"{error} (after {exchange.attempts} attempts in {seconds:.1f} s)",)
        error.metadata.update(exchange.facts())
        return error


class _Retry(Exception):
    """An attempt failed, and a later one may succeed."""

    def __init__(self, error: RequestFailed, reply: Reply | None = None) -> None:
        super().__init__(str(error))
        self.error, self.reply = error, reply
        self.asked = retry_after(reply.header("retry-after")) if reply else None


def _refusal(problem: str, reply: Reply) -> RequestFailed:
    """Make an error with the server's message, or the target of its redirect."""
    error = RequestFailed(problem, status=reply.status)
    error.said = reply.header("location") or "" if 300 <= reply.status < 400 else shorten_body(reply.body)
    return error


def encode(body: Any) -> bytes:
    """Encode as JSON; lone surrogates, which UTF-8 cannot hold, become question marks."""
    try:
        return orjson.dumps(body)
    except TypeError:
        from context_bench.text import dump_json

        return dump_json(body).encode()


def shorten_body(body: bytes) -> str:
    """Shorten a server's answer to one line: its error message if it has the usual form, else its start."""
    try:
        document = orjson.loads(body)
        error = document.get("error", document)
        text = error.get("message") if isinstance(error, dict) else error
        text = text if isinstance(text, str) and text else body.decode("utf-8", "replace")
    except (orjson.JSONDecodeError, AttributeError):
        text = body.decode("utf-8", "replace")
    text = " ".join(text.split()) or "(empty body)"
    return text if len(text) <= _MAX_ERROR_CHARS else text[: _MAX_ERROR_CHARS - 1] + "…"


def _for_log(body: bytes) -> str:
    text = body[: 4 * _MAX_ERROR_CHARS].decode("utf-8", "replace")
    return text if len(body) <= 4 * _MAX_ERROR_CHARS else f"{text}… ({len(body):,} bytes)"


def _reveal(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _spell(secrets: Iterable[Secret]) -> Iterator[bytes]:
    """List the long words of every secret, each unchanged and in the forms in which JSON may escape it."""
    for secret in secrets:
        for word in re.split(r"[\s;,=]+", secret.reveal()):
            if len(word) >= _MIN_KEY_CHARS:
                quoted = orjson.dumps(word)[1:-1]
                yield from dict.fromkeys((word.encode(), quoted, quoted.replace(b"/", b"\\/")))
