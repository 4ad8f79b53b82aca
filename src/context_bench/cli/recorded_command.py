"""Mask keys in a command line or a run file before it is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.text.masking import (
    MASK,
    find_command_secrets,
    find_secrets,
    find_url_secrets,
    mask_command,
    mask_document,
    mask_reference,
    mask_text,
)


def mask_arguments(arguments: Sequence[str]) -> list[str]:
    shown: list[str] = []
    flag = ""
    for argument in arguments:
        if argument.startswith("--"):
            flag, equals, value = argument.partition("=")
            shown.append(f"{flag}={_mask(flag, value)}" if equals else mask_text(argument))
        else:
            shown.append(_mask(flag, argument))
            flag = ""
    return shown


def _mask(flag: str, value: str) -> str:
    if flag == "--header":
        return f"{value.partition(':')[0]}:{MASK}"
    if flag == "--extra-body":
        try:
            return json.dumps(mask_document(json.loads(value)), ensure_ascii=False)
        except ValueError:
            return MASK
    if flag == "--system":
        return mask_reference(value)
    return mask_command(value) if flag == "--start" else mask_text(value)


def mask_run_file(text: str, values: Mapping[str, Any]) -> str | None:
    """Mask a run file for storage; return None if it holds a secret in a form that cannot be masked."""
    found = {secret for key, value in values.items() for secret in _find_in_flag(key.replace("_", "-"), value)}
    for secret in sorted(found, key=len, reverse=True):
        if secret not in text:  # written with escapes: rather no record than a leak
            return None
        text = text.replace(secret, MASK)
    return mask_text(text)


def _find_in_flag(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _find_in_flag(name, item)
    elif name == "header" and isinstance(value, str):
        yield value.partition(":")[2].strip() or value
    elif name == "extra-body":
        try:
            yield from find_secrets(json.loads(value) if isinstance(value, str) else value)
        except ValueError:
            yield str(value)
    elif isinstance(value, str):
        yield from find_command_secrets(value) if name in ("start", "system") else find_url_secrets(value)
