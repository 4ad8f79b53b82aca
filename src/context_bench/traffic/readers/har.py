"""HTTP archives (HAR 1.2) from browsers and `mitmdump --set hardump=FILE`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from context_bench.traffic.readers.api_logs import NO_REQUEST, build_logged, parse_date, read_object
from context_bench.traffic.readers.grouping import Logged, find_session, group_requests
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Thread
from context_bench.wire.forms import find_form


class Har:
    """Reader of the model requests in an HTTP archive."""

    name = "har"
    title = "HTTP archive"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda record: isinstance(record.get("log"), Mapping) and "entries" in record["log"])

    def read(self, source: Source) -> Iterator[Thread]:
        return group_requests(source, self.name, _parse, source.records(_list_entries))


def _list_entries(record: Any) -> list[Any]:
    log = record.get("log") if isinstance(record, Mapping) else None
    entries = log.get("entries") if isinstance(log, Mapping) else [record]
    return entries if isinstance(entries, list) else []


def _parse(entry: Any) -> Logged | str:
    request = entry.get("request") if isinstance(entry, Mapping) else None
    response = entry.get("response") if isinstance(entry, Mapping) else None
    if not isinstance(request, Mapping) or not isinstance(response, Mapping):
        return "not an archive entry"
    path = urlsplit(str(request.get("url") or "")).path
    posted = request.get("postData")
    body = read_object(posted.get("text")) if isinstance(posted, Mapping) else None
    if body is None or (find_form(path) is None and "messages" not in body and "input" not in body):
        return NO_REQUEST
    status = response.get("status")
    if type(status) is int and status >= 400:
        return f"failed request (status {status})"
    pairs = (each for each in request.get("headers") or () if isinstance(each, Mapping))
    headers = {str(each.get("name")): each.get("value") for each in pairs}
    started = parse_date(str(entry.get("startedDateTime") or ""))
    return build_logged(body, _read_content(response), path, find_session({"headers": headers}, body), started)


def _read_content(response: Mapping[str, Any]) -> str | None:
    content = response.get("content")
    text = content.get("text") if isinstance(content, Mapping) else None
    if not isinstance(text, str):
        return None
    if isinstance(content, Mapping) and content.get("encoding") == "base64":
        try:
            return base64.b64decode(text).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return None
    return text
