"""The server of the viewer: only for this machine, with a token, and closed to other sites in the same browser.

Every request is checked before anything is read: its `Host`, its origin (`Origin`, `Sec-Fetch-Site`), and the token,
which is the first part of its path. The server is read-only.
"""

from __future__ import annotations

import errno
import hmac
import io
import json
import secrets
import socket
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from context_bench._version import __version__
from context_bench.errors import ContextBenchError, StoreError, UsageError, describe
from context_bench.output.elements import Markup, element, fill_template, join
from context_bench.output.page.html_page import banner, name_page, page_body, page_head, page_script, write_policy
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.viewer.answers import Answers
from context_bench.output.viewer.followed_run import LiveStore
from context_bench.text import dump_json

_LIST = ("common", "runs")
_RUN = ("common", "served", "examples")
LIST_POLICY = write_policy(*_LIST, served=True)
RUN_POLICY = write_policy(*_RUN, served=True)
_FOOTER = f"Served by context-bench {__version__}, to this machine only."


def _whole_page(title: str, body: Markup, scripts: Sequence[str]) -> str:
    head = page_head(title, None)
    return f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{body}\n{page_script(*scripts)}\n</body>\n</html>\n'


def run_page(runs: Sequence[RunFacts], version: str) -> str:
    """Make the page of a run, or of several runs."""
    about = {"data-runs": "+".join(facts.name for facts in runs), "data-version": version}
    body = page_body(runs, None, _FOOTER, home="../", about=about)
    trouble = element("p", {"id": "trouble", "role": "alert", "hidden": True})
    return _whole_page(name_page(runs), join(trouble, body), _RUN)


def list_page(folder: str) -> str:
    """Make the page of the list of runs, which its script fills."""
    body = fill_template("runs.html", banner=banner({}), folder=folder, footer=_FOOTER)
    return _whole_page("Runs: context-bench", body, _LIST)


_IDLE_TIMEOUT = 75.0  # seconds after which an idle connection or an unfinished request is closed
_MAX_FIELDS = 50
_NOTHING_ELSE = "default-src 'none'; frame-ancestors 'none'"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Refused(Exception):
    """A refused request, with the reason."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class ViewServer:
    """Serves a store until it is closed.

    Raises:
        StoreError: The store cannot be read.
        UsageError: The port is not available.
    """

    def __init__(self, directory: str | Path, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.store = LiveStore(Path(directory))
        try:
            self._http = _Server(("127.0.0.1", port), _Handler)
        except OSError as error:
            self.store.close()
            taken = error.errno == errno.EADDRINUSE
            why = "another program uses it; omit --port to use a free one" if taken else error.strerror
            raise UsageError(f"port {port} is not available: {why}") from error
        self._http.owner = self
        self.answers = Answers(self.store)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        """The address of the list of runs, with the token."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def __enter__(self) -> ViewServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.answers.close()
        self.store.close()

    def check(self, path: str, headers: Any) -> str:
        """Check a request; return its path without the token."""
        hosts = [f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        given = headers.get_all("Host") or []
        if len(given) != 1 or given[0].lower() not in hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, "this server answers only to 127.0.0.1 and localhost")
        origins = headers.get_all("Origin") or []
        if any(origin != f"http://{given[0].lower()}" for origin in origins):
            raise _Refused(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        site, mode = headers.get("Sec-Fetch-Site", "none"), headers.get("Sec-Fetch-Mode", "navigate")
        if site not in ("none", "same-origin") and mode != "navigate":
            raise _Refused(HTTPStatus.FORBIDDEN, "requests from other sites are refused")
        token, slash, rest = path.lstrip("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()) or not slash:
            raise _Refused(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that was printed")
        return rest

    def answer(self, path: str, query: str) -> tuple[str, str, str]:
        """Answer a checked request: content, type and policy."""
        kind, _, name = path.partition("/")
        if path == "":
            return list_page(str(self.store.directory)), "text/html", LIST_POLICY
        if kind == "run" and name:
            names = [each for each in unquote(name).split("+") if each]
            return self.answers.describe(names, run_page), "text/html", RUN_POLICY
        if kind == "api" and name in self.answers.by_name:
            values = _read_fields(query)
            return dump_json(self.answers.by_name[name](values)), "application/json", _NOTHING_ELSE
        raise _Refused(HTTPStatus.NOT_FOUND, "there is no such page")


def _split_address(path: str) -> SplitResult:
    try:
        return urlsplit(path)
    except ValueError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "the address cannot be read") from None


def _read_fields(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise _Refused(HTTPStatus.BAD_REQUEST, f"the address has more than {_MAX_FIELDS} fields") from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: ViewServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that disconnected."""


class _TimedReader(socket.SocketIO):
    """Reads a request within a time limit, even one that arrives byte by byte."""

    end_by = 0.0

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, "r")
        self._connection = connection

    def readinto(self, buffer: Any) -> int | None:
        """Read the available bytes; TimeoutError at the limit."""
        self._connection.settimeout(max(0.001, self.end_by - monotonic()))
        try:
            return super().readinto(buffer)
        finally:
            self._connection.settimeout(_IDLE_TIMEOUT)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "context-bench", ""
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        """Open the connection."""
        super().setup()
        self._reader = _TimedReader(self.connection)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        """Read one request, and answer it."""
        self._reader.end_by = monotonic() + _IDLE_TIMEOUT
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer a request."""
        served = "/api/" not in self.path
        try:
            address = _split_address(self.path)
            rest = self.server.owner.check(address.path, self.headers)
            content, kind, policy = self.server.owner.answer(rest, address.query)
            self._send(HTTPStatus.OK, content, kind, policy)
        except _Refused as refused:
            self._explain(refused.status, str(refused), served=served)
        except StoreError as error:
            self._explain(HTTPStatus.SERVICE_UNAVAILABLE, str(error), served=served)
        except ContextBenchError as error:
            self._explain(HTTPStatus.NOT_FOUND, str(error), served=served)
        except ConnectionError:  # the browser disconnected
            self.close_connection = True
        except Exception as error:  # noqa: BLE001 - an unexpected record must not leave a page empty
            why = f"this cannot be shown: {describe(error)}"
            self._explain(HTTPStatus.INTERNAL_SERVER_ERROR, why, served=served)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Refuse requests that would change something."""
        self.close_connection = True  # the request body is not read
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n", "text/plain", _NOTHING_ELSE)

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = do_POST

    def _explain(self, status: HTTPStatus, why: str, *, served: bool) -> None:
        if served and status is not HTTPStatus.FORBIDDEN:
            page = element("html", {"lang": "en"}, element("title", None, "context-bench"), element("p", None, why))
            self._send(status, f"<!doctype html>\n{page}\n", "text/html", _NOTHING_ELSE)
        else:
            self._send(status, json.dumps({"error": why}), "application/json", _NOTHING_ELSE)

    def _send(self, status: HTTPStatus, content: str, kind: str, policy: str) -> None:
        body = content.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer an invalid HTTP request in plain text."""
        self.close_connection = True
        self._send(HTTPStatus(code), f"{message or explain or HTTPStatus(code).phrase}\n", "text/plain", _NOTHING_ELSE)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, as every address contains the token."""
