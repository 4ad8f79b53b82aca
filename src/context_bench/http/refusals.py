"""Whether a failed request means that every other one will fail too, and what to do about it.

A wrong key, an unknown model or a wrong path fails for every example; a timeout, a rate limit, a server error or too
long a prompt may affect only one example. The first request of a run is sent alone to distinguish the two cases.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from context_bench.errors import BadOutput, ConnectionFailed, RequestFailed
from context_bench.http.secrets import Secret, is_loopback

_LASTING = {401, 402, 403, 404, 405, 407, 410, 415, 426}
_BAD_REQUEST = {400, 422}

_ABOUT_CONTENT = re.compile(
    r"(?i)context.{0,20}(?:length|window)|too (?:long|large|big|many)|maximum.{0,40}tokens|moderat|flagged"
    r"|content.{0,10}(?:policy|filter)|safety"
)
_ABOUT_MODEL = re.compile(
    r"(?i)model_not_found|invalid_model"
    r"|\bmodels?\b(?:[^.]|\.\b){0,100}?(?:not found|not exist|n't exist|unknown|not supported|unsupported|not available"
    r"|unavailable|invalid|not valid|not a valid|not allowed|not loaded|deprecated|decommissioned)"
    r"|(?:unknown|invalid|unsupported|no such|not a valid|unrecogni[sz]ed)\b.{0,20}\bmodel\b"
)
_ABOUT_SETTING = re.compile(
    r"(?i)(?:unsupported|unknown|unrecogni[sz]ed|unexpected)\b.{0,20}\b(?:parameter|argument|field|value)"
    r"|extra (?:inputs|fields) (?:are )?not permitted"
)
_LOOKS_LIKE_JSON = ("{", "[", "data:", "event:", ":")


@dataclass(frozen=True)
class Asked:
    """The credentials and the model of a client's requests, for error messages."""

    model: str | None
    key: Secret | None
    variable: str  # where a key is looked for by default
    headers: Sequence[str] = ()  # names of headers that the user added


def explain_refusal(failure: BaseException | None, asked: Asked) -> str | None:
    """Explain a failure that every request would meet: URL, status, server message, advice; None for other failures."""
    if isinstance(failure, BadOutput):
        return f"{failure}: check the URL of the server" if getattr(failure, "wrong_form", False) else None
    if not isinstance(failure, RequestFailed):
        return None
    if isinstance(failure, ConnectionFailed):
        return f"{failure}: {_mend_connection(str(failure))}" if failure.never_connected else None
    status, url = failure.status or 0, failure.url or ""
    advice = _advise(status, url, failure.said, asked)
    if advice is None:
        return None
    words = f"a redirect to {failure.said or 'nowhere'}" if 300 <= status < 400 else failure.said
    return f"{url} answered {status}: {words.rstrip('.')}: {advice}"


def is_about_content(failure: BaseException) -> bool:
    """Whether a server refused the content of this one example, for example because it is too long."""
    refused = isinstance(failure, RequestFailed) and failure.status in (*_BAD_REQUEST, 413)
    return refused and _ABOUT_CONTENT.search(str(failure)) is not None


def _advise(status: int, url: str, said: str, asked: Asked) -> str | None:
    """Return advice on a refusal; None if other examples may succeed."""
    if 300 <= status < 400:
        return "redirects are not followed, so use the URL that it leads to"
    if 200 <= status < 300:
        is_other = not said.startswith(_LOOKS_LIKE_JSON)
        return "that is not JSON, so check that this is the URL of the API" if is_other else None
    if _ABOUT_CONTENT.search(said) or status not in _LASTING | _BAD_REQUEST:
        return None
    if _ABOUT_MODEL.search(said):
        return f"the request asked for {asked.model!r}, so choose a model of this server with --model"
    if status in _BAD_REQUEST:
        return "change the request (--temperature none, --extra-body)" if _ABOUT_SETTING.search(said) else None
    if status in (401, 403, 407):
        return _mend_key(url, asked)
    if status == 402:
        return "check the account that the key belongs to"
    return f"nothing answers at {urlsplit(url).path}, so check the URL: a URL that ends in /v1 is used unchanged"


def _mend_key(url: str, asked: Asked) -> str:
    if asked.key is not None:
        which = f"the key in {asked.key.variable}" if asked.key.variable else "the given key"
        return f"{which} is not accepted, so set the right one, or name its variable with --api-key-env"
    own = [name for name in asked.headers if name.lower() in ("authorization", "x-api-key", "api-key")]
    if own:
        return f"the header {own[0]} is not accepted, so pass the right one"
    if os.environ.get(asked.variable) and urlsplit(url).scheme != "https" and not is_loopback(url):
        return f"no key was sent, because {asked.variable} needs https: --api-key-env {asked.variable} sends it here"
    return f"no key was sent, so set {asked.variable}, or name the variable that has the key with --api-key-env"


def _mend_connection(problem: str) -> str:
    if re.search(r"certificate|SSL|TLS", problem, re.IGNORECASE):
        return "check the certificate, and whether the server speaks https at all"
    return "check that the server runs, and its host and port"
