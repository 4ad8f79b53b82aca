"""Code in replies, over hand-made replies in the ways that models write."""

from __future__ import annotations

import time

import pytest

from context_bench.sandbox.extract import MAX_CUTS, MAX_REPLY, code_blocks

CODE = "def f():\n    return 1\n"


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{CODE}```",
        f"```\n{CODE}```",
        f"```py\n{CODE}```\n",
        f"```Python\n{CODE}```",
        f"```python3 title=x\n{CODE}```",
        f"~~~python\n{CODE}~~~",
        f"````python\n{CODE}````",
        f"Sure!\n\n```python\n{CODE}```\n\nIt returns 1.",
        f"```python\n{CODE}",
        f"```python\r\n{CODE}```".replace("\n", "\r\n").replace("\r\r", "\r"),
        "1. Here:\n\n   ```python\n   def f():\n       return 1\n   ```\n",
        f"```bash\npip install x\n```\n```python\n{CODE}```",
        f"```python\n{CODE}```\n```text\nout\n```",
        f"```python\n\n```\n```python\n{CODE}```",
    ],
)
def test_one_fence(reply: str) -> None:
    assert code_blocks(reply) == [CODE]


def test_of_several_fences_the_last_comes_first() -> None:
    assert code_blocks("```python\na = 1\n```\nthen\n```python\nb = 2\n```") == ["b = 2\n", "a = 1\n"]


def test_fences_of_other_languages_count_when_there_is_no_python() -> None:
    assert code_blocks(f"```javascript\n{CODE}```") == [CODE]


def test_a_fence_within_a_longer_fence_is_text() -> None:
    assert code_blocks("````python\ns = '''\n```\n'''\n````") == ["s = '''\n```\n'''\n"]


@pytest.mark.parametrize("reply", ["", " \n\t ", "x" * (MAX_REPLY + 1)])
def test_nothing_to_look_at(reply: str) -> None:
    assert code_blocks(reply) == []


def test_bare_code_is_kept_whole_with_its_indentation() -> None:
    assert code_blocks("    return 1\n")[0] == "    return 1\n"
    assert code_blocks("\n\n    return 1")[0] == "    return 1\n"


def test_talk_around_bare_code_is_cut_off() -> None:
    blocks = code_blocks(f"Here is the code:\n\n{CODE}\nIt returns 1.\n\nEnjoy!\n")
    assert CODE in blocks
    assert blocks[0].startswith("Here is")


def test_the_number_of_cuts_is_bounded() -> None:
    started = time.perf_counter()
    assert len(code_blocks("word\n\n" * 20_000)) <= 2 * (MAX_CUTS + 1)
    assert time.perf_counter() - started < 2.0


def test_many_marks_take_no_long_time() -> None:
    started = time.perf_counter()
    code_blocks("`" * 400_000)
    code_blocks("```\n" * 100_000)
    assert time.perf_counter() - started < 2.0
