"""Keys: where they come from, where they may go, and that they are never shown.

`OPENAI_API_KEY` as a fallback goes only over https or to this machine. A key that the user names goes
where the user says.
"""

from __future__ import annotations

import ipaddress
import os
import re
import warnings
from collections.abc import Mapping
from urllib.parse import urlsplit

from context_bench.errors import UsageError
from context_bench.text.masking import mask_text

__all__ = ["Secret", "check_url", "find_key", "is_loopback"]


_NAME = re.compile(r"(?=.{1,40}$)(?!(?:.*[0-9]){6})[A-Za-z_][A-Za-z0-9_]*")
"""What the name of an environment variable looks like, and a key does not."""


class Secret:
    """A text that shows itself only to `reveal()`: not in a repr, a log, an exception or a pickle.

    `variable` is the environment variable that it came from, None where it was given as it is.
    """

    __slots__ = ("_text", "variable")

    def __init__(self, text: str, variable: str | None = None) -> None:
        self._text, self.variable = text, variable

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret does not leave its process")


def check_url(url: str) -> str:
    """A base URL in its plain form, without a trailing slash; UsageError when it is none."""
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
        raise UsageError(f"the URL for {parts.hostname} holds a password: give the key by --api-key-env NAME")
    return url.rstrip("/")


def _with_scheme(url: str) -> str | None:
    """Guess the URL of a host given without `http://` or `https://`; None where it does not look like a host."""
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
            warnings.warn(f"the key for {urlsplit(url).hostname} travels over plain http", stacklevel=2)
        return given
    key = environment.get(fallback, "").strip()
    allowed = urlsplit(url).scheme == "https" or is_loopback(url)
    return _usable(key, fallback, fallback) if key and allowed else None


def _usable(key: str | Secret, where: str | None, variable: str | None) -> Secret:
    """A key as it can stand in a header; the line end that files and shells leave behind is no part of it."""
    text = (key.reveal() if isinstance(key, Secret) else key).strip()
    if not all("!" <= char <= "~" for char in text):
        raise UsageError(f"the key for {where} cannot be sent: it holds a space, a line end or a letter beyond ASCII")
    return Secret(text, variable or (key.variable if isinstance(key, Secret) else None))
