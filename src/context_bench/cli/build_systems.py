"""From options to the systems of a run: proxies, compressors with or without a reader, and controls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.cli.build_tap import build_tapped, name_proxies
from context_bench.cli.options import RunOptions
from context_bench.errors import UsageError
from context_bench.http import Secret, find_key
from context_bench.http.secrets import check_url, merge_headers
from context_bench.systems import WithReader, rename_system
from context_bench.systems.adapt import build_systems
from context_bench.systems.chat import build_proxy
from context_bench.text.masking import MASK, mask_text
from context_bench.wire.forms import get_form

__all__ = ["build_system_list"]

PROXY_WORKERS = 8


def build_system_list(options: RunOptions) -> list[Any]:
    """Build the proxies in their order, then the other systems in theirs, then the controls."""
    for line in options.header:
        _split_header(line)  # refused also where no server would get it
    _parse_extra_body(options.extra_body)
    if options.reader and not options.system:
        raise UsageError("--reader reads what a --system made: add --system NAME")
    if options.start_dir and not options.start:
        raise UsageError("--start-dir is where a --start runs: add --start COMMAND (a --vendor runs in a scratch one)")
    if options.sweep and not options.start:
        raise UsageError("--sweep fills in a --start: add --start COMMAND; a --system takes it itself: NAME:key=a|b")
    if options.wants_tap:
        return build_tapped(options, _build_server)
    if options.controls:
        raise UsageError("--controls asks the model behind a tap: add --tap-forward, --tap-model or --tap-reply")
    names = name_proxies(options.name, len(options.proxy))
    systems = [_build_server(url, options, name) for url, name in zip(options.proxy, names)]
    reader = _build_server(options.reader, options, None) if options.reader else None
    for text in options.system:
        built = build_systems(text, options.seed)
        systems.extend(rename_system(WithReader(each, reader), each.name) if reader else each for each in built)
    return systems


def _build_server(url: str, options: RunOptions, name: str | None, headers: Mapping[str, str] | None = None) -> Any:
    """Build a server that answers, with all request options; a --header wins over one of `headers`."""
    shared: dict[str, Any] = {
        "model": options.model,
        "name": name,
        "system_prompt": options.system_prompt,
        "timeout": options.timeout,
        "extra_body": _parse_extra_body(options.extra_body),
        "max_retries": options.max_retries,
        "temperature": options.temperature,
        "headers": merge_headers(headers or {}, _parse_headers(options.header)),
        "max_rpm": options.max_rpm,
        "max_tpm": options.max_tpm,
        "max_connections": options.max_connections,
    }
    if options.max_tokens is not None:
        shared["max_tokens"] = options.max_tokens
    fallback = get_form(options.api).key_variable
    shared["api_key"] = find_key(check_url(url), variable=options.api_key_env, fallback=fallback)
    server = build_proxy(options.api, url, stream=options.stream, **shared)
    server.max_workers = PROXY_WORKERS
    return server


def _parse_extra_body(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise UsageError(f"--extra-body must be a JSON object (got {mask_text(text)!r})")
    return body


def _parse_headers(lines: Sequence[str]) -> dict[str, Secret]:
    headers = {}
    for name, value in map(_split_header, lines):
        if value == MASK:
            raise UsageError(f"--header {name}: {MASK} stands for a hidden value: put the value back")
        headers[name] = Secret(value)
    return headers


def _split_header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip() or not value.strip():
        # Without a colon the text may be the secret alone: it is not repeated.
        raise UsageError("a --header must be NAME:VALUE" + (f" (got the name {name!r} alone)" if colon else ""))
    return name.strip(), value.strip()
