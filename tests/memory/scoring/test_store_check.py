"""What is left in a store: memories and files, real ones, also where a text lies across two blocks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from context_bench.memory.datasets.synthetic_memory import make_conversation
from context_bench.memory.probes import find_leftovers, list_hidden_texts
from context_bench.memory.systems.search import BM25Memory
from memory.histories import make_turns


def test_memories_are_searched_by_whole_words() -> None:
    system = BM25Memory()
    system.ingest(make_turns("The code is 123456.", "The other is 9876543."))
    assert find_leftovers(["123456", "987654"], system.memories()) == {"memories": ["123456"], "disk": None}
    assert find_leftovers(["a b"], [{"text": "A  b!"}])["memories"] == ["a b"]


def test_files_are_searched_through_a_real_database(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "memory.db")
    base.execute("create table memories (text)")
    base.execute("insert into memories values ('the code is 123456')")
    base.commit()
    assert find_leftovers(["123456", "999999"], folder=tmp_path) == {"memories": None, "disk": ["123456"]}
    base.execute("pragma secure_delete = on")
    base.execute("delete from memories")
    base.commit()
    base.close()
    assert find_leftovers(["123456"], folder=tmp_path)["disk"] == []


def test_a_text_across_two_blocks_is_found(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "log").write_bytes(b"x" * ((1 << 20) - 3) + b"123456" + b"x" * 100)
    (tmp_path / "wide").write_text("98765", encoding="utf-16")
    assert find_leftovers(["123456", "98765", "55555"], folder=tmp_path)["disk"] == ["123456", "98765"]


def test_the_questions_say_what_must_not_be_kept() -> None:
    conversation = make_conversation(4_000, 0, 0)
    texts = list_hidden_texts(conversation["questions"])
    assert len(texts) == 4  # two deletions, two passwords
    assert sum(text.startswith("sk-") for text in texts) == 2
