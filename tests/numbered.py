"""Examples that carry their number to the server, so that its log tells which of them was asked how often."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from servers import Reply, Request, Server, completion

__all__ = ["asked", "expected", "facts", "number_of", "numbered", "right", "write"]


def numbered(*numbers: int, **fields: Any) -> list[dict[str, Any]]:
    """One example for each number; further keywords are fields of all of them."""
    return [
        {"id": n, "context": f"Item {n} has the code c{n}.", "question": f"code of item {n}?", "answer": f"c{n}"}
        | fields
        for n in numbers
    ]


def number_of(request: Request) -> int:
    """The number of the example that a request asks about."""
    found = re.search(r"code of item (\d+)\?", request.body.decode())
    assert found, request.body
    return int(found[1])


def right(request: Request) -> Reply:
    """The right answer, with its usage."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return completion(f"c{number_of(request)}", usage=usage)


def asked(server: Server) -> Counter[int]:
    """How often each example was asked."""
    return Counter(map(number_of, server.chats))


def expected(*numbers: int) -> list[tuple[int, str, float]]:
    """What rows look like when all was answered."""
    return [(n, f"c{n}", 1.0) for n in numbers]


def facts(rows: Any) -> list[tuple[Any, str, float | None]]:
    """What a row says: which example, which answer, which score."""
    return [(row.example_id, row.response, row.scores.get("exact_match")) for row in rows]


def write(path: Path, *numbers: int, **fields: Any) -> str:
    """The examples as a file."""
    path.write_text("".join(json.dumps(each) + "\n" for each in numbered(*numbers, **fields)))
    return str(path)
