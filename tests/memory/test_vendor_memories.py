"""Vendors' real memory systems, each in an environment of its own, against a model that shares no code with the tap.

`make memory-vendors` installs them. With CONTEXT_BENCH_REQUIRE_VENDORS set, as CI does, a missing one is a failure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import shell
from context_bench.errors import UsageError
from context_bench.memory.inspection import PROBE_PREFIX
from context_bench.memory.vendor_memories import (
    Graphiti,
    LangMem,
    ListingVendorMemory,
    Mem0,
    VendorFailed,
    VendorMemory,
    read_vendor_config,
)
from context_bench.processes.started_proxy import find_program
from servers import Reply, Request, Server, free_port, hang, reply
from vendor_relay import answer, embed, relay

TURNS = [
    {"id": "D1:1", "role": "user", "speaker": "Ana", "content": "I drink green tea at seven.", "session": "1"},
    {"id": "D1:2", "role": "assistant", "speaker": "Bob", "content": "I keep bees behind the barn.", "session": "1"},
    {"id": "D2:1", "role": "user", "speaker": "Ana", "content": "My dog is called Rex.", "session": "2"},
]
DATED = [{**turn, "timestamp": f"2023-05-0{place}T13:56:00"} for place, turn in enumerate(TURNS, 1)]

CALLS = {"mem0": 1, "langmem": 1}
"""How often the model is asked for one turn, where that does not depend on what it extracts."""


VENDORS: dict[str, type[VendorMemory]] = {"mem0": Mem0, "graphiti": Graphiti, "langmem": LangMem}
"""Those that CI runs; cognee is too large."""


def test_a_vendor_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_bench.processes.started_proxy._list_homes", list)
    with pytest.raises(UsageError, match="make memory-vendors"):
        Mem0("http://127.0.0.1:9")


@pytest.fixture(scope="module", params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    """The name of a vendor that is installed."""
    name: str = request.param
    if find_program("python", home=f"memory-{name}") is None:
        assert not os.environ.get("CONTEXT_BENCH_REQUIRE_VENDORS"), f"{name} is not installed: make memory-vendors"
        pytest.skip(f"{name} is not installed: make memory-vendors")
    return name


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with relay() as server:
        yield server


@pytest.fixture(scope="module")
def memory(vendor: str, server: Server) -> Iterator[VendorMemory]:
    memory = VENDORS[vendor](server.url)
    yield memory
    memory.finish()


def count_asked(server: Server, path: str) -> int:
    return sum(request.path.endswith(path) for request in server.requests)


@pytest.mark.memory_vendors
def test_it_remembers_what_it_was_told(vendor: str, memory: VendorMemory, server: Server) -> None:
    memory.reset()
    for turn in DATED:
        before = count_asked(server, "/chat/completions")
        memory.ingest([turn])
        asked = count_asked(server, "/chat/completions") - before
        assert asked >= 1
        assert asked == CALLS.get(vendor, asked)
    before = count_asked(server, "/chat/completions")
    found = memory.retrieve("What is the dog of Ana called?", k=3)
    assert count_asked(server, "/chat/completions") == before, "a search asks no model"
    assert any("Rex" in each["text"] for each in found)
    if vendor != "langmem":  # whose memories do not say where they come from
        (ids,) = [each["ids"] for each in found if "Rex" in each["text"]][:1]
        assert ids == ["D2:1"]
    assert memory.query("What is the dog of Ana called?") == "Noted."
    assert memory.version is not None
    assert memory.version in memory.fingerprint
    assert isinstance(memory, ListingVendorMemory)
    listed = memory.memories()
    assert any("bees" in text for text in listed)


@pytest.mark.memory_vendors
def test_one_user_s_memory_is_not_another_s(memory: VendorMemory) -> None:
    memory.reset()
    memory.ingest(DATED[:1], user="a")
    memory.ingest(DATED[2:], user="b")
    assert not any("Rex" in each["text"] for each in memory.retrieve("What is the dog called?", user="a"))
    assert any("Rex" in each["text"] for each in memory.retrieve("What is the dog called?", user="b"))


@pytest.mark.memory_vendors
def test_after_a_reset_nothing_is_left(memory: VendorMemory) -> None:
    memory.reset()
    memory.ingest(DATED[2:])
    memory.reset()
    assert memory.retrieve("What is the dog called?") == []


@pytest.mark.memory_vendors
def test_a_dead_model_is_the_vendor_s_error(vendor: str) -> None:
    memory = VENDORS[vendor](f"http://127.0.0.1:{free_port()}")
    try:
        with pytest.raises(VendorFailed, match=vendor):
            memory.ingest(DATED[:1])
    finally:
        memory.finish()


@pytest.mark.memory_vendors
def test_a_call_that_takes_too_long_ends_it(vendor: str) -> None:
    with Server(hang(30)) as slow:
        memory = VENDORS[vendor](slow.url, dimensions=256)
        memory.reset()  # started: the limit is for the call alone
        memory.timeout = 3.0
        try:
            with pytest.raises(VendorFailed, match="within 3 s"):
                memory.ingest(DATED[:1])
        finally:
            memory.finish()


@pytest.mark.memory_vendors
def test_it_gets_the_dimension_of_the_model_that_is_named(vendor: str) -> None:
    sizes = {"text-embedding-3-small": 1536, "bge-small": 384}

    def answer_by_model(request: Request) -> Reply:
        if not request.path.endswith("/embeddings"):
            return answer(request)
        if "dimensions" in request.json:  # as models do that cannot shorten their vectors
            return reply(400, {"error": {"message": "dimensions is not supported"}})
        return embed({**request.json, "dimensions": sizes[request.json["model"]]})

    for model, size in sizes.items():
        with Server(answer_by_model) as server:
            memory = VENDORS[vendor](server.url, embedding_model=model)
            try:
                memory.reset()
                memory.ingest(DATED[2:])
                assert any("Rex" in each["text"] for each in memory.retrieve("What is the dog of Ana called?"))
                if vendor == "mem0":  # its store says how long its vectors are
                    assert memory.storage is not None
                    meta = json.loads((memory.storage / "qdrant" / "meta.json").read_text())
                    assert f'"size": {size}' in json.dumps(meta)
            finally:
                memory.finish()


@pytest.mark.memory_vendors
def test_a_setting_of_the_user_s_reaches_the_vendor(vendor: str, tmp_path: Path) -> None:
    path = tmp_path / "vendors.toml"
    path.write_text(
        """
        mem0 = {k = 1, config = {custom_instructions = "Keep only what dogs are called."}}
        graphiti = {k = 1, episode = {custom_extraction_instructions = "Keep only what dogs are called."}}
        langmem = {k = 1, manager = {instructions = "Keep only what dogs are called."}}
        """.strip()
    )
    settings = read_vendor_config(path)[vendor]
    with relay() as server:
        memory, ours = VENDORS[vendor](server.url, **settings), VENDORS[vendor](server.url)
        try:
            memory.reset()
            memory.ingest(DATED[:2])
            memory.ingest(DATED[2:])
            asked = [json.dumps(each.json) for each in server.requests if "chat" in each.path]
            assert any("Keep only what dogs are called." in text for text in asked)
            assert len(memory.retrieve("What is the dog of Ana called?")) == 1
            assert memory.fingerprint != ours.fingerprint
        finally:
            memory.finish()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[memo]", "'memo' is not the table of a vendor: choose from mem0, graphiti"),
        ("[mem0]\ntop_k = 3", "mem0 has no setting 'top_k'; it has model"),
        ("[mem0]\nconfig = 3", "mem0 has no setting 'config'"),
        ("[mem0", "cannot be read as TOML"),
    ],
)
def test_a_wrong_setting_is_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "vendors.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_vendor_config(tmp_path / "vendors.toml")


@pytest.mark.memory_vendors
def test_what_a_dead_process_was_told_is_lost_until_it_is_emptied(vendor: str) -> None:
    with relay() as server:
        memory = VENDORS[vendor](server.url)
        try:
            memory.reset()
            memory.ingest(DATED[2:])
            process = memory._process
            assert process is not None
            process._child.kill()
            process._child.wait()
            for _ in range(2):
                with pytest.raises(VendorFailed, match="its memory is lost"):
                    memory.retrieve("What is the dog of Ana called?")
            memory.reset()
            assert memory.retrieve("What is the dog of Ana called?") == []
        finally:
            memory.finish()


@pytest.mark.memory_vendors
def test_the_tap_counts_what_an_independent_recorder_counts(vendor: str, tmp_path: Path) -> None:
    question = "What is the dog of Ana called?"
    asked = {"id": "q", "question": question, "answer": "Rex", "type": "single", "evidence_ids": ["D2:1"]}
    (tmp_path / "talk.jsonl").write_text(json.dumps({"id": "c", "turns": DATED, "questions": [asked]}))
    with relay() as recorder:
        done = shell(
            *("memory", "--system", vendor, "--dataset", "talk.jsonl", "--granularity", "turn", "--budget", "500"),
            *(
                "--tap-forward",
                recorder.url,
                "--answers",
                "reader",
                "--no-bm25",
                "--output",
                "json",
                "--flush-quiet",
                "1",
            ),
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["error"] is None
    spent = row["metadata"]["memory"]["ingest"]["spent"]
    chats, embeddings = [], []
    for request in recorder.requests:
        if request.path.endswith("/embeddings"):
            texts = json.dumps(request.json["input"])
            embeddings += [] if question in texts or PROBE_PREFIX in texts else [request]
        elif question not in json.dumps(request.json["messages"]):  # the reader's
            chats.append(request)
    assert (spent["calls"], spent["embed_calls"]) == (len(chats), len(embeddings))
    assert spent["prompt_tokens"] == 7 * len(chats)  # as the recorder billed them
    assert spent["embed_tokens"] == 5 * len(embeddings)
