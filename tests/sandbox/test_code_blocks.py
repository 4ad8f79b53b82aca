"""Code in replies, over hand-made replies in the ways that models write."""

from __future__ import annotations

import time

import pytest

from context_bench.sandbox.code_blocks import MAX_CUTS, MAX_REPLY, find_code_blocks

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
        # marks that are not on lines of their own
        f"```python\n{CODE.rstrip()}```",
        f"```python\n{CODE.rstrip()}``` \n\nIt returns 1.",
        f"Here: ```python\n{CODE}```",
        f"```def f():\n{CODE.partition(chr(10))[2]}```",
        # tags in the place of fences
        f"[PYTHON]\n{CODE}[/PYTHON]\nDone.",
        f"<code>\n{CODE}</code>",
        # what the code wears
        "```pycon\n>>> def f():\n...     return 1\n```",
        "```python\n1  def f():\n2      return 1\n```",
        "```python\n 1 | def f():\n 2 |     return 1\n```",
    ],
)
def test_one_fence(reply: str) -> None:
    assert find_code_blocks(reply) == [CODE]


def test_of_several_fences_the_last_comes_first() -> None:
    assert find_code_blocks("```python\na = 1\n```\nthen\n```python\nb = 2\n```") == ["b = 2\n", "a = 1\n"]


def test_fences_of_other_languages_count_when_there_is_no_python() -> None:
    assert find_code_blocks(f"```javascript\n{CODE}```") == [CODE]


def test_a_fence_within_a_longer_fence_is_text() -> None:
    assert find_code_blocks("````python\ns = '''\n```\n'''\n````") == ["s = '''\n```\n'''\n"]


@pytest.mark.parametrize("reply", ["", " \n\t ", "x" * (MAX_REPLY + 1)])
def test_nothing_to_look_at(reply: str) -> None:
    assert find_code_blocks(reply) == []


def test_bare_code_is_kept_whole_with_its_indentation() -> None:
    assert find_code_blocks("    return 1\n")[0] == "    return 1\n"
    assert find_code_blocks("\n\n    return 1")[0] == "    return 1\n"


def test_talk_around_bare_code_is_cut_off() -> None:
    blocks = find_code_blocks(f"Here is the code:\n\n{CODE}\nIt returns 1.\n\nEnjoy!\n")
    assert CODE in blocks
    assert blocks[0].startswith("Here is")


def test_the_number_of_cuts_is_bounded() -> None:
    started = time.process_time()
    assert len(find_code_blocks("word\n\n" * 20_000)) <= 2 * (MAX_CUTS + 1)
    assert time.process_time() - started < 2.0


def test_many_marks_take_no_long_time() -> None:
    started = time.process_time()
    find_code_blocks("`" * 400_000)
    find_code_blocks("```\n" * 100_000)
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize(
    ("reply", "block"),
    [
        ("```def f(): return 1```", "def f(): return 1\n"),
        ("Sure! ```python def f(): return 1```", "def f(): return 1\n"),
        ("```return 1```", "return 1\n"),
    ],
)
def test_a_fence_on_one_line(reply: str, block: str) -> None:
    assert find_code_blocks(reply) == [block]


def test_words_between_marks_are_no_code() -> None:
    assert find_code_blocks(f"Use ```sorted``` here.\n\n```python\n{CODE}```") == [CODE]


def test_a_fence_within_a_docstring_is_text() -> None:
    code = 'def f():\n    """Doc.\n\n    ```\n    f()\n    ```\n    """\n    return 1\n'
    assert find_code_blocks(f"```python\n{code}```") == [code]
    assert find_code_blocks("```python\n    return 1\n    ```\nDone.")[0] == "    return 1\n"


def test_marks_in_pairs_within_a_line_do_not_close() -> None:
    code = 'def f():\n    """Like ```g```"""\n    # see ```g```\n    return 1\n'
    assert find_code_blocks(f"```python\n{code}```") == [code]


def test_talk_after_a_fence_that_never_closes_is_cut_off() -> None:
    blocks = find_code_blocks(f"```python\n{CODE}\nThis returns 1, as asked.\n\nEnjoy!")
    assert CODE in blocks
    assert blocks[0].startswith("def f")


def test_constants_before_the_first_function_belong_to_it() -> None:
    code = "ONE = [\n    1,\n]\n# the only one\n\ndef f():\n    return ONE[0]\n"
    assert code in find_code_blocks(f"Here is the solution:\n\n{code}\nIt returns 1.")


def test_code_that_is_only_indented() -> None:
    assert CODE in find_code_blocks("Like this:\n\n    def f():\n        return 1\n\nThat's all.")


def test_a_mark_that_only_closes() -> None:
    assert find_code_blocks("    return 1\n```\n\nIt is 1.")[0] == "It is 1.\n"
    assert "    return 1\n" in find_code_blocks("    return 1\n```\n\nIt is 1.")
    assert find_code_blocks("    return 1\n```")[0] == "    return 1\n"


def test_a_session_without_a_fence() -> None:
    blocks = find_code_blocks(">>> def f():\n...     return 1\n...\n>>> f()\n1\n")
    assert blocks[0] == "def f():\n    return 1\n\nf()\n"


@pytest.mark.parametrize(
    ("before", "first"),
    [
        ("This version is wrong. Please do not use it:", "good\n"),
        ("**What I rejected:** the following incorrect attempt.", "good\n"),
        ("Yours is wrong. Here is the fixed version:", "last\n"),
        ("A shorter version:", "last\n"),
    ],
)
def test_code_that_is_called_wrong_comes_after_the_rest(before: str, first: str) -> None:
    assert find_code_blocks(f"```python\ngood\n```\n\n{before}\n\n```python\nlast\n```")[0] == first


@pytest.mark.long
@pytest.mark.parametrize(
    "piece", ["`", "x```\n", "~~~\n", "[PYTHON]", ">>> a\n", "1 x\n", "    def f\n", "x = 1\n", "``` a``` b\n"]
)
def test_a_reply_of_repetition_takes_no_long_time(piece: str) -> None:
    started = time.process_time()
    find_code_blocks(piece * (400_000 // len(piece)))
    assert time.process_time() - started < 5.0
