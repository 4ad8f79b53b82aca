"""Finds and masks keys in request bodies, URLs and commands.

A value counts as secret by its name, by its place in a URL, or by its form (`sk-...`).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

MASK = "***"

PROMPT_FIELDS = ("messages", "system", "tools", "prompt", "input", "instructions", "contents")
"""Fields of a request that a model reads: their content is data and stays unchanged."""

_ENDINGS = (
    *("apikey", "accesskey", "secretkey", "privatekey", "authkey", "subscriptionkey", "signingkey"),
    *("token", "bearer", "secret", "password", "passwd", "passphrase", "authorization", "credential", "credentials"),
    *("cookie", "xapikey"),
)
_NO_SECRETS = ("eostoken", "bostoken", "padtoken", "stoptoken", "unktoken", "masktoken", "pertoken")
"""Names that end like the name of a secret, but mean tokens of a model."""

MIN_KEY_CHARS = 4  # shorter values are not keys

_PASSWORD = re.compile(r"(://)[^/\s@\"']+@")
_URL_PASSWORD = re.compile(r"(://[^/\s@\"':]*:)([^/\s@\"']+)@")
_KEY_SHAPED = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghu|ghs|ghr|github_pat|glpat|pat|key|xox[abeoprs]|npm|pypi|whsec|dop_v1|shpat)"
    r"[-_][A-Za-z0-9_-]{12,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{10,600}\.[\w-]+(?:\.[\w-]+)?)"
)
_NAMED = re.compile(
    r"(?i)(?<![\w.-])([\w.-]*\w)((?:[\"']?\s?=\s?|[\"']\s?:\s?|:\s)[\"']?(?:Bearer\s+|Basic\s+)?)([^\s\"'&,;{}()\[\]]+)"
)
_FLAGGED = re.compile(r"(--?[\w-]+)(\s+)((?:Bearer\s+|Basic\s+)?[^\s{-]\S*)", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]{16,}")


_HEADER_MARKS = ("key", "token", "secret", "auth", "cookie", "password", "credential")


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a name in a body, a query or a command means a secret."""
    bare = re.sub(r"[\W_]", "", name).lower()
    return bare == "key" or (bare.endswith(_ENDINGS) and not bare.endswith(_NO_SECRETS))


def may_name_secret(name: str) -> bool:
    """Whether a name in a header or in the environment may mean a secret."""
    name = name.lower()
    return any(mark in name for mark in _HEADER_MARKS)


def find_secrets(value: Any, skipped: Iterable[str] = ()) -> Iterator[str]:
    """Find each text under a secret's name in a JSON value, at any depth but not below the `skipped` names."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name in skipped:
                continue
            if isinstance(item, str) and is_secret_name(str(name)):
                yield from (part for part in (item, item.partition(" ")[2]) if len(part) >= MIN_KEY_CHARS)
            else:
                yield from find_secrets(item, skipped)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from find_secrets(item, skipped)


def find_url_secrets(url: str) -> Iterator[str]:
    """Find the password, the parts of the path that look like keys, and the secret parameters of a URL."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        yield from {password, unquote(password)}
    yield from (part for part in parts.path.split("/") if _looks_like_a_key(part))
    yield from (value for name, value in parse_qsl(parts.query) if is_secret_name(name) and len(value) >= MIN_KEY_CHARS)


def _looks_like_a_key(part: str) -> bool:
    if _KEY_SHAPED.fullmatch(part) or _UUID.fullmatch(part):
        return True
    return any(any(map(str.isdigit, run)) and any(map(str.isalpha, run)) for run in _RUN.findall(part))


def mask_text(text: str, *, flags: bool = False) -> str:
    """Mask passwords in URLs, `name=value` of a secret, and texts that look like a key. With `flags`, also mask the
    value after the flag of a secret, as in `--api-key VALUE`.
    """
    text = _PASSWORD.sub(rf"\1{MASK}@", text)
    text = _NAMED.sub(_mask_named, text)
    if flags:
        text = _FLAGGED.sub(_mask_named, text)
    text = _KEY_SHAPED.sub(MASK, text)
    return re.sub(r"https?://[^\s\"']+", lambda found: _mask_path(found[0]), text)


def _mask_named(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{MASK}" if is_secret_name(found[1]) else found[0]


def _mask_path(url: str) -> str:
    for secret in find_url_secrets(url):
        url = url.replace(secret, MASK)
    return url


def mask_document(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: MASK if isinstance(item, str) and is_secret_name(str(name)) else mask_document(item)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_document(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_command(command: str) -> str:
    """Mask the secrets in the arguments of a command."""
    for secret in find_command_secrets(command):
        command = command.replace(secret, MASK)
    return mask_text(command, flags=True)


def mask_reference(text: str) -> str:
    """Mask the secrets in a system's reference; the part after `command:` is masked as a command."""
    return mask_command(text) if text.startswith("command:") else mask_text(text)


def find_command_secrets(command: str) -> list[str]:
    """Find the values in a command that `mask_command` would hide, so that the program's output can be masked too."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found: list[str] = []
    for before, word in zip(["", *words], words):
        name, equals, value = word.partition("=")
        if equals and is_secret_name(name.lstrip("-")):
            found += [value, value.partition(" ")[2]]
        elif before.startswith("-") and is_secret_name(before.lstrip("-")):
            found += [word, word.partition(" ")[2]]
        found += _KEY_SHAPED.findall(word)
        if "://" in word:
            found += find_url_secrets(value if "://" in value else word)
    return sorted({each for each in found if len(each) >= MIN_KEY_CHARS and "{" not in each}, key=len, reverse=True)


# --- texts of recordings

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?")
_LOOKS_SECRET = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w+/=.~-]{8,}")


class Placeholders:
    """Masks keys, passwords and tokens in recorded texts: the same secret gets the same placeholder.

    A value under a secret's name counts only if it looks like a key, so that code stays unchanged.
    """

    def __init__(self, *, emails: bool = False) -> None:
        self._emails = emails
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self.found = 0  # places that were masked

    def mask(self, text: str) -> str:
        """Mask a text."""
        if "PRIVATE KEY-" in text:
            text = _PRIVATE_KEY.sub(lambda found: self._name("secret", found[0]), text)
        text = _KEY_SHAPED.sub(self._mask_key, text)
        if "://" in text:
            text = _URL_PASSWORD.sub(lambda found: f"{found[1]}{self._name('secret', found[2])}@", text)
        text = _NAMED.sub(self._mask_value, text)
        if self._emails:
            text = _EMAIL.sub(lambda found: self._name("email", found[0]), text)
        return text

    def mask_all(self, value: Any) -> Any:
        """Mask every text in a JSON value, including the names of fields."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, Mapping):
            return {
                self.mask(name) if isinstance(name, str) else name: self._name("secret", item)
                if isinstance(item, str) and is_secret_name(str(name)) and _LOOKS_SECRET.fullmatch(item)
                else self.mask_all(item)
                for name, item in value.items()
            }
        return [self.mask_all(item) for item in value] if isinstance(value, list | tuple) else value

    def _mask_key(self, found: re.Match[str]) -> str:
        """Mask a text that looks like a key, but not a name such as `key-value-store`."""
        is_name = not any(each.isdigit() or each.isupper() for each in found[0])
        return found[0] if is_name else self._name("secret", found[0])

    def _mask_value(self, found: re.Match[str]) -> str:
        if not is_secret_name(found[1]) or not _LOOKS_SECRET.fullmatch(found[3]):
            return found[0]
        return f"{found[1]}{found[2]}{self._name('secret', found[3])}"

    def _name(self, kind: str, secret: str) -> str:
        self.found += 1
        if secret not in self._names:
            self._counts[kind] += 1
            self._names[secret] = f"[{kind} {self._counts[kind]}]"
        return self._names[secret]
