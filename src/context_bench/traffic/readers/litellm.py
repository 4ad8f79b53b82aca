"""LiteLLM's records: rows of its spend logs, payloads of its callbacks, and the `kwargs` of a callback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.readers.api_logs import build_logged, read_object, read_time
from context_bench.traffic.readers.grouping import Logged, group_requests
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Thread, Usage

_NO_PROMPT = "its prompt was not stored (general_settings.store_prompts_in_spend_logs)"
_NO_CALL = "no request to a model"
_ROUTES = {"anthropic_messages": "/v1/messages", "responses": "/v1/responses", "aresponses": "/v1/responses"}


class LiteLLM:
    """Reader of logs from LiteLLM's proxy and library."""

    name = "litellm"
    title = "LiteLLM log"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda record: _is_logged(_unwrap(record)))

    def read(self, source: Source) -> Iterator[Thread]:
        return group_requests(source, self.name, _parse)


def _unwrap(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the payload in a callback's `kwargs`."""
    kwargs = record.get("kwargs")
    held = kwargs if isinstance(kwargs, Mapping) else record
    payload = held.get("standard_logging_object")
    return payload if isinstance(payload, Mapping) else held


def _is_logged(record: Mapping[str, Any]) -> bool:
    return "call_type" in record and not record.keys().isdisjoint(
        ("litellm_call_id", "startTime", "model_parameters", "litellm_params", "spend", "request_id")
    )


def _parse(record: Any) -> Logged | str:
    if not isinstance(record, Mapping) or not _is_logged(row := _unwrap(record)):
        return _NO_CALL
    if str(row.get("status") or "success") != "success":
        return f"failed request (status {row['status']})"
    if str(row.get("cache_hit")).lower() == "true":
        return "answered from LiteLLM's own cache"
    body, kind = _read_body(row), str(row.get("call_type") or "").removeprefix("a")
    if "embedding" in kind:
        return _NO_CALL
    if not body.get("messages") and not body.get("input"):
        return _NO_PROMPT
    session = str(row.get("session_id") or row.get("trace_id") or "")
    route = _ROUTES.get(str(row.get("call_type")), "")
    given = row.get("response") or record.get("response_obj") or row.get("original_response")
    given = dump_json(given) if isinstance(given, Mapping) else given
    logged = build_logged(body, given, route, session, read_time(row, ("startTime", "start_time")))
    if isinstance(logged, str):
        return logged
    logged.request.model = str(row.get("model") or "").rpartition("/")[2] or logged.request.model
    logged.request.id = logged.request.id or str(row.get("request_id") or row.get("id") or "")
    metadata = read_object(row.get("metadata")) or {}
    told = metadata.get("usage_object") or {name: row.get(name) for name in ("prompt_tokens", "completion_tokens")}
    logged.request.usage = logged.request.usage or Usage.read(told)
    return logged


def _read_body(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read the body that the proxy received, else the one in the payload."""
    asked = read_object(row.get("proxy_server_request")) or {}
    asked = read_object(asked.get("body")) or asked
    if "messages" in asked or "input" in asked:
        return dict(asked)
    messages = row.get("messages")
    if isinstance(messages, str):
        messages = (read_object(f'{{"messages": {messages}}}') or {}).get("messages")
    settings = read_object(row.get("model_parameters")) or read_object(row.get("optional_params")) or {}
    return {**settings, "model": row.get("model"), "messages": messages if isinstance(messages, list) else []}
