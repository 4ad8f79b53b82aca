"""Embeddings of a scripted tap, asked for over HTTP as client libraries do."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from typing import Any

import aiohttp
import pytest

from context_bench import count_tokens
from context_bench.tap.forward import Forward
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from context_bench.tap.services import embed_words
from servers import Server, reply


def ask(*bodies: Any, path: str = "/v1/embeddings") -> list[tuple[int, Any]]:
    """The replies of a tap with a script behind it, over one connection that stays open."""

    async def run() -> list[tuple[int, Any]]:
        tap = Tap(Scripted.from_text("echo"))
        await tap.start()
        try:
            async with aiohttp.ClientSession() as session:
                found = []
                for body in bodies:
                    async with session.post(f"{tap.url}{path}", json=body) as answered:
                        found.append((answered.status, await answered.json()))
                return found
        finally:
            await tap.stop()

    return asyncio.run(run())


def dot(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two))


def test_texts_that_share_words_are_near_to_each_other() -> None:
    ((status, document),) = ask({"model": "e", "input": ["a red car", "the red car drives", "boats at sea"]})
    assert status == 200
    vectors = [each["embedding"] for each in document["data"]]
    assert [each["index"] for each in document["data"]] == [0, 1, 2]
    assert {len(vector) for vector in vectors} == {256}
    assert all(dot(vector, vector) == pytest.approx(1) for vector in vectors)
    assert dot(vectors[0], vectors[1]) > 0.5 > dot(vectors[0], vectors[2])
    assert (
        document["usage"]["prompt_tokens"]
        == document["usage"]["total_tokens"]
        == sum(map(count_tokens, ("a red car", "the red car drives", "boats at sea")))
    )


def test_base64_holds_the_same_numbers() -> None:
    plain, packed = ask(
        {"input": "red car", "dimensions": 8}, {"input": "red car", "dimensions": 8, "encoding_format": "base64"}
    )
    numbers = plain[1]["data"][0]["embedding"]
    raw = base64.b64decode(packed[1]["data"][0]["embedding"])
    assert list(struct.unpack("<8f", raw)) == pytest.approx(numbers)


def test_tokens_and_paths_without_a_version() -> None:
    ((status, document),) = ask({"input": [[1, 2, 3], [4]]}, path="/embeddings")
    assert status == 200
    assert len(document["data"]) == 2
    assert document["usage"]["prompt_tokens"] == 4


@pytest.mark.parametrize("body", [{}, {"input": []}, {"input": [None]}, {"input": "a", "dimensions": 0}])
def test_what_cannot_be_embedded_is_refused(body: Any) -> None:
    ((status, document),) = ask(body)
    assert status == 400
    assert document["error"]["message"]


def test_no_words_give_zeros() -> None:
    assert embed_words([], 4) == [0.0] * 4


def test_a_forwarding_tap_passes_embeddings_on() -> None:
    async def run(url: str) -> tuple[int, Any]:
        tap = Tap(Forward(url))
        await tap.start()
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(
                    f"{tap.url}/v1/embeddings", json={"input": "red"}, headers={"Authorization": "Bearer key"}
                ) as answered,
            ):
                return answered.status, json.loads(await answered.read())
        finally:
            await tap.stop()

    with Server(reply(200, {"data": [{"embedding": [1.0]}]})) as server:
        assert asyncio.run(run(server.url)) == (200, {"data": [{"embedding": [1.0]}]})
        (seen,) = server.requests
    assert seen.path == "/v1/embeddings"
    assert json.loads(seen.body) == {"input": "red"}
    assert {name.lower(): value for name, value in seen.headers.items()}["authorization"] == "Bearer key"
