"""Token counts against published values, and what of an example counts."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from banks import each_case
from context_bench import count_tokens, evaluate, set_tokenizer
from context_bench.errors import UsageError
from context_bench.systems import Passthrough
from context_bench.utils.tokens import count_prompt, count_value, current_tokenizer, get_tokenizer

# --- published values: tiktoken's own tests and OpenAI's cookbook


@each_case(
    ("text", "tokens"),
    [
        ("hello world", 2),  # 15339, 1917
        ("rer", 1),  # 38149
        ("'rer", 2),  # 2351, 81
        ("today\n ", 3),  # 31213, 198, 220
        ("today\n \n", 2),  # 31213, 27907
        ("today\n  \n", 2),  # 31213, 14211
        (" \x850", 4),  # 220, 126, 227, 15
        ("👍", 3),  # 9468, 239, 235
        ("0", 1),
        (" ", 1),
        ("", 0),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 9),
    ],
)
def test_cl100k_base(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens
    assert count_tokens(text, "cl100k_base") == tokens
    assert count_tokens(text, tokenizer="cl100k_base") == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("tiktoken is great!", 6), ("antidisestablishmentarianism", 6), ("2 + 2 = 4", 7), ("お誕生日おめでとう", 8)],
)
def test_o200k_base(text: str, tokens: int) -> None:
    assert count_tokens(text, "o200k_base") == tokens


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 6, 7, 30])
def test_digits_go_by_threes(digits: int) -> None:
    assert count_tokens("7" * digits) == -(-digits // 3)


@pytest.mark.parametrize("token", ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|im_start|>"])
def test_the_text_of_a_special_token_is_plain_text(token: str) -> None:
    assert count_tokens(token) > 1
    # A bracket ends a run of signs, so that its parts can be counted on their own.
    name = token.removeprefix("<|").removesuffix("|>")
    assert count_tokens(token) == count_tokens("<|") + count_tokens(name) + count_tokens("|>")


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_every_special_token_is_plain_text_wherever_it_stands(name: str) -> None:
    from splintr import Tokenizer, base_vocab_size

    vocabulary = Tokenizer.from_pretrained(name)
    added = range(base_vocab_size(name), vocabulary.vocab_size)
    specials = ["<|endoftext|>", "<|endofprompt|>", *map(vocabulary.decode_token, added)]
    assert len(specials) > 50
    for text in specials:
        for given in (text, f"before {text} after", f"<{text}>"):
            assert count_tokens(given, name) == len(vocabulary.encode_ordinary(given))


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_text_without_special_tokens_counts_as_a_list_of_them_would(name: str) -> None:
    from splintr import Tokenizer

    vocabulary, random = Tokenizer.from_pretrained(name), Random(7)
    pieces = [
        "<",
        "|",
        ">",
        "< |",
        "|>",
        "endoftext",
        "é",
        "東",
        "👍",
        "\n",
        "  ",
        "\x00",
        "'s",
        "12345",
        "<s>",
        "[INST]",
    ]
    for _ in range(500):
        text = "".join(random.choices(pieces, k=random.randrange(40)))
        assert count_tokens(text, name) == len(vocabulary.encode_ordinary(text) if text else "")


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert count_tokens("\ud83d") == count_tokens("\ufffd")
    assert count_tokens("a \udc4d b") == count_tokens("a \ufffd b")


def test_two_surrogates_that_make_a_pair_are_that_character() -> None:
    assert count_tokens("\ud83d\udc4d") == count_tokens("👍") == 3


@pytest.mark.parametrize("piece", ["^", "0", "a", "'s", " ", "\n", "é", "東"])
def test_long_repeats_end(piece: str) -> None:
    assert 0 < count_tokens(piece * 100_000) <= len(piece.encode()) * 100_000


def test_counting_is_the_same_in_another_encoding_only_when_asked() -> None:
    assert count_tokens("お誕生日おめでとう", "o200k_base") == 8
    assert count_tokens("お誕生日おめでとう") == 9


# --- choosing a tokenizer


def test_set_tokenizer_by_name_by_callable_and_back() -> None:
    set_tokenizer("o200k_base")
    assert count_tokens("お誕生日おめでとう") == 8
    set_tokenizer(len)
    assert count_tokens("abcde") == 5
    set_tokenizer(None)
    assert count_tokens("お誕生日おめでとう") == 9


def test_an_explicit_tokenizer_wins_over_the_default() -> None:
    set_tokenizer(len)
    assert count_tokens("hello world", "cl100k_base") == 2


def test_a_callable_may_count_or_encode() -> None:
    assert count_tokens("one two three", lambda text: len(text.split())) == 3
    assert count_tokens("one two three", str.split) == 3
    assert count_tokens("one two three", lambda text: tuple(text.split())) == 3


def test_a_count_of_numpy_is_a_count() -> None:
    numpy = pytest.importorskip("numpy")
    count = count_tokens("one two", lambda text: numpy.int64(len(text.split())))
    assert (count, type(count)) == (2, int)
    assert count_tokens("one two", lambda text: numpy.zeros(len(text.split()))) == 2


@pytest.mark.parametrize("name", ["nope", "", "gpt-17", "../x"])
def test_an_unknown_name_is_an_error_that_names_some_known(name: str) -> None:
    with pytest.raises(UsageError, match=r"unknown tokenizer '.*cl100k_base, o200k_base"):
        set_tokenizer(name)
    assert count_tokens("hello world") == 2


def test_what_is_neither_a_name_nor_callable_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a tokenizer must be a name or a callable \(got a int\)"):
        set_tokenizer(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "result", [{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 1]}, None, "text", 1.5, SimpleNamespace(ids=[1])]
)
def test_a_callable_whose_result_is_no_count_is_refused(result: Any) -> None:
    # Taking len() of what a model's tokenizer returns would count its fields, not its tokens.
    with pytest.raises(UsageError, match="must return a number or a list of tokens"):
        set_tokenizer(lambda text: result)


def test_an_empty_text_asks_nobody() -> None:
    assert count_tokens("", lambda text: 1) == 0


def test_the_tokenizer_of_the_process_is_known_as_it_was_given() -> None:
    assert current_tokenizer() == "cl100k_base"
    for given in ("o200k_base", len):
        set_tokenizer(given)
        assert current_tokenizer() == given
    set_tokenizer(None)
    assert current_tokenizer() == "cl100k_base"


def test_a_callable_is_tried_once_and_then_called_once_for_each_text() -> None:
    calls: list[str] = []

    def count(text: str) -> int:
        calls.append(text)
        return len(text)

    set_tokenizer(count)
    calls.clear()
    assert count_tokens("abc") + count_tokens("de") == 5
    assert calls == ["abc", "de"]


def test_evaluate_takes_a_tokenizer_for_one_run() -> None:
    example = {"id": 1, "context": "お誕生日おめでとう"}
    for tokenizer, tokens in (("o200k_base", 8), (len, 9), (str.split, 1), (None, 9)):
        result = evaluate([Passthrough()], [example], [], tokenizer=tokenizer, progress=False)
        assert (result.rows[0].input_tokens, result.rows[0].output_tokens) == (tokens, tokens)
    assert count_tokens("お誕生日おめでとう") == 9


def test_evaluate_records_the_tokenizer() -> None:
    def recorded(tokenizer: str | None = None) -> Any:
        result = evaluate([Passthrough()], [{"id": 1, "context": "x"}], [], progress=False, tokenizer=tokenizer)
        return result.config["tokenizer"]

    assert recorded() == "cl100k_base"
    set_tokenizer("o200k_base")
    assert (recorded(), recorded("cl100k_base")) == ("o200k_base", "cl100k_base")


def test_nothing_is_loaded_before_the_first_count() -> None:
    code = "import sys, context_bench.utils.tokens; print('splintr' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- what of an example counts; characters as tokens make it easy to follow

GOLD = {"id": "x" * 50, "answer": "y" * 50, "answers": ["z" * 50], "dataset": "d" * 50, "meta": {"k": "v" * 50}}


def _prompt(**example: Any) -> int:
    return count_prompt({**GOLD, **example}, len)


def test_context_and_question_count_and_gold_never_does() -> None:
    assert _prompt() == 0
    assert _prompt(context="12345") == 5
    assert _prompt(context="12345", question="123") == 8
    assert _prompt(evidence=["abc"], documents=[{"id": 1, "text": "abc"}], correct_letter="A", test="abc") == 0


def test_turns_stand_in_for_the_context() -> None:
    turns = [{"role": "user", "content": "1234"}, {"role": "assistant", "content": "12"}]
    assert _prompt(context="12345", turns=turns) == 6
    assert _prompt(context="12345", turns=turns, question="1") == 7
    assert _prompt(context="12345", turns=[]) == 5


def test_choices_count_by_their_texts() -> None:
    assert _prompt(context="1", choices=["ab", "cde"]) == 6


def test_tools_count_as_compact_json() -> None:
    tools = [{"name": "f", "args": {"x": "é"}}]
    assert _prompt(tools=tools) == len('{"name":"f","args":{"x":"é"}}')


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"role": "user", "content": "12345"}, 5),
        ({"role": "user", "content": None}, 0),
        ({"role": "user"}, 0),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "123"}, {"type": "image_url", "image_url": "x" * 99}],
            },
            3,
        ),
        ({"role": "user", "content": []}, 0),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, len('{"id":"1"}')),
        ({"role": "tool", "tool_call_id": "call_1", "content": "12"}, 2),
    ],
)
def test_a_message_counts_by_its_content(message: dict[str, Any], tokens: int) -> None:
    assert count_value(message, len) == tokens


@pytest.mark.parametrize(
    ("value", "tokens"), [(None, 0), ("", 0), ("ab", 2), (["a", ["bc"]], 3), (12, 2), ({"a": 1}, 7)]
)
def test_other_values(value: Any, tokens: int) -> None:
    assert count_value(value, len) == tokens


def test_a_list_of_fields_is_taken_at_its_word() -> None:
    example = {**GOLD, "context": "12345", "question": "123", "turns": [{"role": "user", "content": "1"}]}
    assert count_prompt(example, len, ["context"]) == 5
    assert count_prompt(example, len, ["answer", "turns"]) == 51
    assert count_prompt(example, len, ["nothing"]) == 0
    assert count_prompt(example, len, []) == 0


def test_get_tokenizer_resolves_names_and_callables() -> None:
    assert get_tokenizer()("hello world") == 2
    assert get_tokenizer("cl100k_base")("hello world") == 2
    assert get_tokenizer(len)("hello") == 5


# --- long texts


def _other_threads_wait(work: Callable[[], object]) -> float:
    """The longest time for which another Python thread could not run meanwhile."""
    done, gaps = threading.Event(), [0.0]

    def beat() -> None:
        last = time.perf_counter()
        while not done.wait(0.001):
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    work()
    done.set()
    thread.join()
    return max(gaps)


@pytest.mark.parametrize(
    "text",
    [
        "the quick brown fox, 17 times; ",
        "the <|quick brown fox, 17 times|>; ",
        '{"id":17,"name":"fox"}\n',  # no letter with a space and a letter after it: it was one piece
        "东京是日本的首都，",
    ],
)
def test_a_long_text_is_counted_while_other_threads_run(text: str) -> None:
    long = text * (20_000_000 // len(text))
    alone = time.perf_counter()
    tokens = count_tokens(long)
    alone = time.perf_counter() - alone
    assert tokens > 1_000_000
    waits = [_other_threads_wait(lambda: count_tokens(long)) for _ in range(3)]
    assert min(waits) < max(0.1, alone / 3)  # the best of three: other programs take their time of the processor too


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_a_long_text_is_counted_exactly_however_it_is_cut(name: str) -> None:
    from splintr import Tokenizer

    vocabulary, random = Tokenizer.from_pretrained(name), Random(7)
    parts = [
        "don't",
        "WE'LL",
        " a b",
        "  x",
        "\n y",
        "1234",
        "é",
        "<|endoftext|>",
        "<|",
        "naïve",
        " z",
        ";",
        "\t",
        "语",
    ]
    for _ in range(5):
        text = "".join(random.choices(parts, k=60_000))
        assert count_tokens(text, name) == len(vocabulary.encode_ordinary(text))


def test_a_tokenizer_of_ones_own_is_never_called_by_two_threads_at_once() -> None:
    inside, most = 0, 0

    def slow(text: str) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.005)
        inside -= 1
        return len(text)

    count = get_tokenizer(slow)
    threads = [threading.Thread(target=count, args=("text",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@cache
def _open_vocabulary(name: str) -> Any:
    from splintr import Tokenizer

    return Tokenizer.from_pretrained(name)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize(
    "parts",
    [
        ["don't ", "we'll", " a b", "  x", "\n y", "1234", "é", "语", "; ", "<", "|"],
        ["东京都", "。", "，", "\n"],
        ["x1", "23", ",", ":", '"', "; ", "'s", "\n", "{"],
    ],
)
def test_a_text_that_is_encoded_in_pieces_is_counted_exactly(name: str, parts: list[str]) -> None:
    text = "".join(Random(11).choices(parts, k=700_000)).replace("<|", "< |")
    assert len(text) > 1_000_000
    assert count_tokens(text, name) == len(_open_vocabulary(name).encode_ordinary(text))


@each_case("before", ["", "plain words, ", "a < b, ", "<a>", "<" * 63, "<b" * 64, "<" * 500, "| <"])
@each_case("end", ["<|endoftext|>", "<|", "<", "|", "| endoftext |"])
def test_marks_are_found_wherever_they_are(before: str, end: str) -> None:
    for text in (before + end, before * 300 + end + before):
        assert count_tokens(text) == len(_open_vocabulary("cl100k_base").encode_ordinary(text))


_COUNT_IN_A_THREAD = """
import ctypes, gc, threading
from context_bench import count_tokens

def measure_memory():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def work():
    count_tokens(text)
    counted.set()
    over.wait()

text = "Line 3.4 says nothing of use. " * 400_000
count_tokens("warm up " * 5_000)
before, counted, over = measure_memory(), threading.Event(), threading.Event()
thread = threading.Thread(target=work)
thread.start()
counted.wait()
print(measure_memory() - before)
over.set()
thread.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc, and given back by glibc")
def test_a_thread_that_counted_a_huge_text_keeps_no_room_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", _COUNT_IN_A_THREAD], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 25_000_000, "twice the text: it took six times as much"
