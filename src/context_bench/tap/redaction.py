"""Secrets in a request, and how they are taken out before anything is kept.

A header, a query parameter or a field of a body is secret by its name, other values because we know them to be.
Such a value is kept nowhere: not in the headers, and not in a body or a reply that repeats it.
"""

from __future__ import annotations

import codecs
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from urllib.parse import parse_qsl

import orjson

from context_bench.text.masking import MASK, PROMPT_FIELDS, find_secrets, is_secret_name, may_name_secret

__all__ = ["Redactor"]

_FIELD = re.compile(r'"([\w.-]{2,60})"(\s*:\s*)"([^"\\]{8,})"')
"""A field of a JSON body with a text that may be a key."""

_NAME = re.compile(r'"([\w.-]{2,60})"\s*:\s*"')
"""The name of such a field. It begins with a quotation mark, which few letters are: a long text is passed over fast."""

_PIECE = 256 * 1024

_LEAST = 8
"""Anything shorter is no real key, and may well be a word of an answer."""


class Redactor:
    """Masks the secrets of one request in whatever is kept of it."""

    __slots__ = ("_known", "_values")

    def __init__(self, headers: Mapping[str, str], query: str = "", known: Sequence[str] = ()) -> None:
        pairs = [*headers.items(), *(parse_qsl(query) if query else ())]
        forms = {form for name, value in pairs if may_name_secret(name) for form in _list_forms(value)}
        forms.update(form for value in known for form in _list_forms(value))
        self._known = frozenset(known)
        # The longest first: one may hold another.
        self._values = sorted(_add_escaped(form for form in forms if len(form) >= _LEAST), key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Redactor({len(self._values)} secrets)"

    def text(self, data: bytes | bytearray) -> str:
        """Mask the secrets in a body."""
        text = self.line(_decode(data))
        if not any(is_secret_name(found[1]) for found in _NAME.finditer(text)):
            return text
        return _mask_fields(text)

    def line(self, text: str) -> str:
        """Mask the secrets in a path, or in the value of a header."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Mask the secrets in headers."""
        return {
            name: MASK if may_name_secret(name) or value in self._known else self.line(value)
            for name, value in headers.items()
        }


def _decode(data: bytes | bytearray) -> str:
    """Decode a body; one that is not UTF-8 piece by piece, as one call would stop every other thread for long."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pieces = (bytes(data[place : place + _PIECE]) for place in range(0, len(data), _PIECE))
        return "".join(codecs.iterdecode(pieces, "utf-8", "replace"))


def _mask_fields(text: str) -> str:
    """Mask the values of key-like fields in a body, but not in what a model reads: there such a field is data."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:  # a stream, whose tokens have names too
        return _FIELD.sub(lambda found: found[0] if found[1].lower() in ("key", "token") else _mask_field(found), text)
    secrets = {each for each in find_secrets(document, (*PROMPT_FIELDS, "logprobs")) if len(each) >= _LEAST}
    text = _FIELD.sub(lambda found: _mask_field(found) if found[3] in secrets else found[0], text)
    for quoted in {json.dumps(each, ensure_ascii=ascii) for each in secrets for ascii in (True, False)}:
        if "\\" in quoted:  # the pattern passes it over
            text = text.replace(quoted, f'"{MASK}"')
    return text


def _mask_field(found: re.Match[str]) -> str:
    return f'"{found[1]}"{found[2]}"{MASK}"' if is_secret_name(found[1]) else found[0]


def _list_forms(value: str) -> Iterator[str]:
    """List the forms of a secret that may come back: whole, without its scheme (`Bearer KEY`), one of the cookies."""
    yield value
    for part in re.split("[;,]", value):
        part = part.strip()
        credentials = part.partition(" ")[2].strip()
        yield credentials
        yield part.partition("=")[2]
        if part.lower().startswith("basic "):
            with suppress(ValueError):
                yield b64decode(credentials, validate=True).decode("utf-8", "replace").partition(":")[2]


def _add_escaped(forms: Iterable[str]) -> set[str]:
    """Return the texts, and each as JSON escapes it."""
    return {each for form in forms for each in (form, json.dumps(form)[1:-1], form.replace("/", "\\/"))}
