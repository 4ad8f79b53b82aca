"""Keys, headers and URLs of requests: checks, secrecy, and safe display."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from context_bench.errors import UsageError, warn
from context_bench.text.masking import mask_text

_NAME = re.compile(r"(?=.{1,40}$)(?!(?:.*[0-9]){6})[A-Za-z_][A-Za-z0-9_]*")
"""The form of an environment variable's name, which keys do not have."""


class Secret:
    """A text that only `reveal()` returns: no repr, log, exception or pickle shows it.

    `variable` is the environment variable that it came from; None if it was passed directly.
    """

    __slots__ = ("_text", "variable")

    def __init__(self, text: str, variable: str | None = None) -> None:
        self._text, self.variable = text, variable

    def reveal(self) -> str:
        """Return the text, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret does not leave its process")


def check_url(url: str) -> str:
    """Return a base URL in plain form, without a trailing slash; raise UsageError if it is invalid."""
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_ok = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok or any(c.isspace() for c in url):
        suggestion = _with_scheme(url) or "http://HOST:PORT or https://HOST"
        raise UsageError(f"{mask_text(url)!r} is not the URL of a server: write {mask_text(suggestion)}")
    if parts.query or parts.fragment:
        raise UsageError(f"{mask_text(url)!r} is not a base URL: it must end before the first ? or #")
    if parts.username or parts.password:
        raise UsageError(f"the URL for {parts.hostname} contains a password: pass the key with --api-key-env NAME")
    return url.rstrip("/")


def _with_scheme(url: str) -> str | None:
    """Guess the URL of a host given without `http://` or `https://`; None if it does not look like a host."""
    try:
        parts = urlsplit(f"//{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if "://" in url or parts.username or not re.fullmatch(r"[\w.-]+|\[?[0-9a-f:]+\]?", host):
        return None
    local = is_loopback(f"http://{parts.netloc}") or port not in (None, 443)
    return f"{'http' if local else 'https'}://{url}" if local or "." in host else None


def is_loopback(url: str) -> bool:
    """Whether a URL stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def find_key(
    url: str,
    given: str | Secret | None = None,
    variable: str | None = None,
    fallback: str = "OPENAI_API_KEY",
    environment: Mapping[str, str] | None = None,
) -> Secret | None:
    """The key for a server: given by the user, by a variable that the user names, or the fallback."""
    environment = os.environ if environment is None else environment
    if variable is not None:
        given = environment.get(variable, "")
        if not given:
            if not _NAME.fullmatch(variable):
                raise UsageError("the key must be named by an environment variable, such as MY_KEY: not the key itself")
            raise UsageError(f"the environment variable {variable}, named for the key, is not set")
    if given:
        given = _usable(given, urlsplit(url).hostname, variable)
        if urlsplit(url).scheme != "https" and not is_loopback(url):
            warn(f"the key for {urlsplit(url).hostname} is sent over plain http")
        return given
    key = environment.get(fallback, "").strip()
    allowed = urlsplit(url).scheme == "https" or is_loopback(url)
    return _usable(key, fallback, fallback) if key and allowed else None


def _usable(key: str | Secret, where: str | None, variable: str | None) -> Secret:
    """Return a key in a form valid for a header, without the line end that files and shells add."""
    text = (key.reveal() if isinstance(key, Secret) else key).strip()
    if not all("!" <= char <= "~" for char in text):
        raise UsageError(f"the key for {where} cannot be sent: it has a space, a line end or a letter beyond ASCII")
    return Secret(text, variable or (key.variable if isinstance(key, Secret) else None))


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AUTHENTICATION = {"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"}


def check_headers(headers: Mapping[str, str | Secret] | None) -> dict[str, Secret]:
    """Make each header's value a secret; UsageError, without the value, for a header that cannot be sent."""
    checked = {}
    for name, value in (headers or {}).items():
        text = value.reveal() if isinstance(value, Secret) else str(value)
        if not _HEADER_NAME.fullmatch(name):
            raise UsageError(f"{name!r} is not a valid header name")
        if not text.strip() or not all(" " <= char <= "~" for char in text):
            raise UsageError(f"the header {name!r} cannot be sent: its value is empty, or not plain ASCII text")
        checked[name] = Secret(text.strip())
    return checked


def merge_headers(*layers: Mapping[str, str | Secret]) -> dict[str, str | Secret]:
    """Merge layers of headers; names ignore case, and the last layer wins."""
    merged = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    return dict(merged.values())


def changing_headers(headers: Mapping[str, Secret]) -> dict[str, str]:
    """Select the headers that may change an answer, without those that identify the client, as plain texts."""
    named = {name.lower(): value.reveal() for name, value in headers.items()}
    return {name: value for name, value in named.items() if name not in _AUTHENTICATION}


def split_api_url(url: str, path: str) -> tuple[str, str]:
    """Split a URL into base and path; the path gets `/v1` in front unless the URL ends in `/v1`."""
    base = check_url(url)
    if base.endswith(path):
        return base.removesuffix(path), path
    return base, path if base.endswith("/v1") else f"/v1{path}"


def find_api_root(url: str) -> str:
    """Find the part before `/v1`, however much of the path the URL has."""
    base = check_url(url)
    for path in ("/chat/completions", "/messages", "/responses"):
        base = base.removesuffix(f"/v1{path}")
    return base.removesuffix("/v1").rstrip("/")


def describe_path(base_url: str, path: str) -> dict[str, str]:
    """Return the path that a fingerprint must contain in addition to the base URL, if the base does not imply it."""
    explicit = not path.startswith("/v1/") and not base_url.endswith("/v1")
    return {"path": path} if explicit else {}
