"""The synthetic generators: exact lengths and spans, unique answers, the same bytes everywhere."""

from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.datasets import synthetic
from context_bench.datasets.synthetic import aggregate, json_logs, kv, multi_needle, needle, rerank, tracking
from context_bench.datasets.synthetic.building import ADJECTIVES, LABELS, NOUNS, THINGS, Draw
from context_bench.datasets.synthetic.haystacks import WORDS
from context_bench.datasets.synthetic.prose import ASIDES, TOPICS, Prose
from context_bench.errors import UsageError
from context_bench.utils.tokens import count_tokens, set_tokenizer

Example = dict[str, Any]
Generator = Callable[..., Iterator[Example]]

GENERATORS: dict[str, tuple[Generator, dict[str, Any]]] = {
    "needle": (needle, {}),
    "multi-needle": (multi_needle, {"needles": 2}),
    "kv": (kv, {}),
    "tracking": (tracking, {"hops": 1, "chains": 1}),
    "aggregate": (aggregate, {"top": 2}),
    "json": (json_logs, {"kind": "json"}),
    "logs": (json_logs, {"kind": "logs"}),
    "code": (json_logs, {"kind": "code"}),
    "rerank": (rerank, {"documents": 1}),
}
WITH_DEPTH = ["needle", "kv", "json", "logs", "code"]
LENGTHS = [100, 101, 107, 113, 131, 167, 250, 500, 1000, 4000]

DIGESTS = {
    "needle": "1c78e4380791926f",
    "multi-needle": "67e80ecd72930b9e",
    "kv": "a2dff5533dcc8e47",
    "tracking": "49e9ac6fb7028ff8",
    "aggregate": "fcd07e210ede1a78",
    "json": "96ad531db0cf64a8",
    "logs": "c1850a3a5937f5a6",
    "code": "d5daff91629d6ecb",
    "rerank": "c3053bfba6904084",
}


def make(name: str, **parameters: Any) -> list[Example]:
    generator, defaults = GENERATORS[name]
    return list(generator(**{**defaults, **parameters}))


def digest(name: str) -> str:
    """Hash what a generator makes at two lengths; also run by the second process."""
    examples = [example for length in (300, 2000) for example in make(name, length=length, n=3, seed=7)]
    return hashlib.sha256(json.dumps(examples, sort_keys=True).encode()).hexdigest()[:16]


def occurrences(text: str, word: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))


every_generator = pytest.mark.parametrize("name", GENERATORS)


# --- length and depth ---


@every_generator
@pytest.mark.parametrize("length", LENGTHS)
def test_length_is_within_two_percent_and_never_above(name: str, length: int) -> None:
    for example in make(name, length=length, n=4, seed=3):
        assert 0.98 * length <= count_tokens(example["context"], "cl100k_base") <= length


@every_generator
def test_very_long_context(name: str) -> None:
    (example,) = make(name, length=128_000, n=1)
    assert 0.98 * 128_000 <= count_tokens(example["context"], "cl100k_base") <= 128_000


@pytest.mark.parametrize(
    ("generator", "floor", "parameters"),
    [
        (needle, 60, {}),
        (kv, 90, {}),
        (json_logs, 100, {}),
        (multi_needle, 150, {"needles": 4}),
        (tracking, 230, {"hops": 4, "chains": 2}),
        (aggregate, 630, {"top": 20}),
        (rerank, 375, {"documents": 5, "relevant": 5}),
    ],
)
def test_shortest_length_works_and_one_less_is_refused(generator: Generator, floor: int, parameters: Any) -> None:
    for example in generator(length=floor, n=12, seed=5, **parameters):
        assert 0.98 * floor <= count_tokens(example["context"], "cl100k_base") <= floor
    with pytest.raises(UsageError, match=rf"length={floor - 1} is too short .*use at least {floor} tokens"):
        generator(length=floor - 1, **parameters)


def test_length_does_not_follow_the_default_tokenizer() -> None:
    expected = make("needle", length=300, n=1)
    set_tokenizer(lambda text: len(text))
    try:
        assert make("needle", length=300, n=1) == expected
    finally:
        set_tokenizer(None)


@each_case("name", WITH_DEPTH)
@each_case("length", [500, 1500, 4000])
def test_depth_is_met(name: str, length: int) -> None:
    for depth in (0, 0.1, 0.25, 0.5, 0.77, 0.9, 1):
        for example in make(name, length=length, depth=depth, n=6, seed=2):
            context, (span,) = example["context"], example["evidence"]
            rest = count_tokens(context, "cl100k_base") - count_tokens(span["text"], "cl100k_base")
            achieved = count_tokens(context[: span["start"]], "cl100k_base") / rest
            assert achieved == pytest.approx(depth, abs=0.05)
            assert example["meta"]["depth"] == pytest.approx(achieved, abs=0.01)
            by_characters = span["start"] / (len(context) - len(span["text"]))
            assert by_characters == pytest.approx(depth, abs=0.06)


def test_depth_none_spreads_evenly() -> None:
    assert [e["meta"]["asked_depth"] for e in needle(length=200, n=5)] == [0, 0.25, 0.5, 0.75, 1]
    assert [e["meta"]["asked_depth"] for e in needle(length=200, n=1)] == [0.5]


def test_needle_at_the_ends_is_the_first_and_the_last_sentence() -> None:
    for first in needle(length=300, depth=0, n=10):
        assert first["evidence"][0]["start"] == 0
    for last in needle(length=300, depth=1, n=10):
        assert last["evidence"][0]["end"] == len(last["context"])


# --- what an example holds ---


@every_generator
def test_fields(name: str) -> None:
    for example in make(name, length=400, n=4):
        assert example["dataset"] == ("json-logs" if name in ("json", "logs", "code") else name)
        assert example["question"].endswith(("?", "all."))
        parts = example["answers"][0]
        assert example["answer"] == (parts if isinstance(parts, str) else ", ".join(parts))
        assert example["meta"]["length"] == 400
        assert example["meta"]["seed"] == 0
        assert example.get("framing") == ("tool" if example["dataset"] == "json-logs" else None)
        json.dumps(example, allow_nan=False)


@every_generator
def test_evidence_spans_are_exact_and_hold_the_answer(name: str) -> None:
    for example in make(name, length=600, n=6, seed=4):
        if name == "aggregate":
            assert "evidence" not in example
            continue
        context = example["context"]
        assert example["evidence"]
        for span in example["evidence"]:
            assert context[span["start"] : span["end"]] == span["text"]
        parts = example["answers"][0]
        for part, span in zip([parts] if isinstance(parts, str) else parts, example["evidence"], strict=True):
            assert occurrences(span["text"], part) == 1


@each_case("name", [name for name in GENERATORS if name not in ("aggregate", "tracking")])
@each_case("length", [500, 20_000])
def test_the_answer_occurs_once(name: str, length: int) -> None:
    for example in make(name, length=length, n=3, seed=4):
        parts = example["answers"][0]
        for part in [parts] if isinstance(parts, str) else parts:
            assert occurrences(example["context"], part) == 1


@pytest.mark.parametrize("name", ["needle", "multi-needle", "kv", "json", "logs", "code"])
def test_words_of_the_question_find_the_evidence(name: str) -> None:
    """Of all sentences (or lines) the one that shares the rarest words with the question is the evidence."""
    for example in make(name, length=3000, n=5, seed=6):
        pieces = re.split(r"(?<=\.)\s+|\n|\},", example["context"])
        bags = [set(re.findall(r"\w+", piece.lower())) for piece in pieces]
        seen = Counter(itertools.chain.from_iterable(bags))
        asked = set(re.findall(r"\w+", example["question"].lower()))
        weight = [sum(1 / seen[word] for word in bag & asked) for bag in bags]
        best = sorted(range(len(pieces)), key=lambda place: -weight[place])[: len(example["evidence"])]
        assert all(any(span["text"] in pieces[place] for place in best) for span in example["evidence"])


def test_ids_are_unique_over_chained_cells() -> None:
    cells = [
        *(needle(length=n, depth=d, n=4, seed=s) for n in (100, 200) for d in (None, 0, 0.5, 0.504) for s in (0, 1)),
        *(needle(length=100, n=n) for n in (5, 7)),
        *(multi_needle(length=300, needles=k, n=3) for k in (2, 3)),
        *(kv(length=200, depth=d, n=3) for d in (0.1, 0.9)),
        *(tracking(length=300, hops=h, chains=c, n=3) for h in (1, 2) for c in (1, 2)),
        *(aggregate(length=300, top=t, n=3) for t in (1, 2)),
        *(json_logs(length=200, kind=k, n=3) for k in ("json", "logs", "code", "mixed")),
        *(rerank(documents=d, relevant=r, length=n, n=3) for d in (3, 4) for r in (1, 2) for n in (None, 600)),
    ]
    ids = [example["id"] for example in itertools.chain(*cells)]
    assert len(set(ids)) == len(ids)
    assert next(needle(depth=0.5))["id"] == "needle-4000-d0.50-s0-000"


# --- each generator's own promise ---


def test_needle_context_has_no_other_digits() -> None:
    for example in needle(length=2000, n=5):
        assert re.findall(r"\d+", example["context"]) == [example["answer"]]


def test_multi_needle_asks_for_every_needle() -> None:
    for example in multi_needle(length=1000, needles=5, n=4):
        values = example["answers"][0]
        assert sorted(re.findall(r"\d+", example["context"])) == sorted(values)
        assert len(set(values)) == 5
    orders = {tuple(e["meta"]["depths"]) == tuple(sorted(e["meta"]["depths"])) for e in multi_needle(length=300, n=9)}
    assert False in orders  # the question does not follow the text


def test_kv_is_json_and_looks_up() -> None:
    for example in kv(length=1000, n=5):
        table = json.loads(example["context"])
        key = re.findall(r'"(.*?)"', example["question"])[0]
        assert table[key] == example["answer"]
        assert len(table) > 15


def test_tracking_answer_is_what_following_the_assignments_gives() -> None:
    for example in tracking(length=2000, hops=3, chains=3, n=5):
        held: dict[str, str] = {}
        for name, source in re.findall(r"variable (\w+) is set to (?:the value of )?(\w+)\.", example["context"]):
            held[name] = source if source.isdigit() else held[source]  # a chain never refers forwards
        (value,) = re.findall(r"\d+", example["question"])
        assert [name for name in held if held[name] == value] == example["answers"][0]
        assert len(held) == 12
        assert len(set(held.values())) == 3
        changes = sum(one != two for one, two in itertools.pairwise(held.values()))
        assert changes > 2  # the chains are interleaved, not one after the other


@pytest.mark.parametrize(("length", "top"), [(100, 1), (120, 3), (630, 20), (4000, 3), (30_000, 10)])
def test_aggregate_margin(length: int, top: int) -> None:
    for example in aggregate(length=length, top=top, n=3):
        counts = Counter(example["context"].split()).most_common()
        assert {word for word, _ in counts[:top]} == set(example["answers"][0])
        assert counts[top - 1][1] >= 2 * counts[top][1]
        assert [count for _, count in counts[:top]] == example["meta"]["counts"]


def test_aggregate_words_are_single_tokens() -> None:
    assert len(set(WORDS)) == len(WORDS)
    for word in WORDS:
        assert count_tokens(word, "cl100k_base") == count_tokens(" " + word, "cl100k_base") == 1


@pytest.mark.parametrize("length", [100, 700, 5000])
def test_json_parses_in_every_layout(length: int) -> None:
    examples = make("json", length=length, n=6)
    assert {example["meta"]["layout"] for example in examples} == {"pretty", "lines", "compact"}
    for example in examples:
        payload = json.loads(example["context"])
        records = payload if isinstance(payload, list) else next(iter(payload.values()))
        assert [r for r in records if example["evidence"][0]["text"] == r.get("note")]
        assert isinstance(payload, list) or payload["count"] == len(records)


def test_code_parses_and_its_constant_has_the_value() -> None:
    for example in make("code", length=3000, n=4):
        names: dict[str, Any] = {}
        exec(compile(ast.parse(example["context"]), "source.py", "exec"), names)
        (name,) = re.findall(r"\b[A-Z_]{6,}\b", example["question"])
        assert str(names[name]) == example["answer"]


def test_log_times_only_go_forward() -> None:
    for example in make("logs", length=3000, n=4):
        stamps = re.findall(r"^\d{4}-\S+Z", example["context"], re.M)
        assert len(stamps) > 50
        assert stamps == sorted(set(stamps))


def test_json_logs_mixed_rotates_kinds() -> None:
    kinds = [example["meta"]["kind"] for example in json_logs(length=200, n=5)]
    assert kinds == ["json", "logs", "code", "json", "logs"]


@pytest.mark.parametrize(("documents", "relevant", "length"), [(20, 1, None), (6, 3, 900), (1, 1, 80), (60, 2, 5000)])
def test_rerank_documents(documents: int, relevant: int, length: int | None) -> None:
    for example in rerank(documents=documents, relevant=relevant, length=length, n=3):
        listed = example["documents"]
        assert example["context"] == "\n\n".join(document["text"] for document in listed)
        assert len({document["id"] for document in listed}) == documents
        assert len({document["title"] for document in listed}) == documents
        texts = {document["id"]: document["text"] for document in listed}
        assert len(example["relevant_ids"]) == relevant
        parts = example["answers"][0] if relevant > 1 else example["answers"]
        for part, identifier, span in zip(parts, example["relevant_ids"], example["evidence"], strict=True):
            assert occurrences(texts[identifier], part) == 1
            assert span["text"] in texts[identifier]


def test_rerank_has_topical_distractors_and_moves_the_relevant_one() -> None:
    examples = list(rerank(n=10))
    assert len({example["relevant_ids"][0] for example in examples}) > 4
    for example in examples:
        sight, place = re.findall(r"is the (.+) of (\w+) entered", example["question"])[0]
        texts = [document["text"] for document in example["documents"]]
        assert sum(place in text and sight in text for text in texts) == 1
        assert sum((place in text) != (sight in text) for text in texts) >= 5


# --- prose ---


def test_prose_is_varied_and_well_formed() -> None:
    prose = Prose(Draw("test"))
    sentences = [prose.unit() for _ in range(8000)]
    texts = [sentence.strip() for sentence in sentences]
    assert len(set(texts)) == len(texts)
    assert all(re.fullmatch(r"[A-Z][^.?!\d]*\.", text) for text in texts)
    assert all("  " not in text and "{" not in text for text in texts)
    paragraphs = sum(sentence.startswith("\n\n") for sentence in sentences)
    assert 1000 < paragraphs < 2500


def test_prose_never_uses_the_words_that_name_a_needle() -> None:
    phrases = itertools.chain(ASIDES, *itertools.chain(*TOPICS))
    used = set(re.findall(r"\w+", " ".join(phrases).lower()))
    names = {word for words in (ADJECTIVES, NOUNS, THINGS) for word in words}
    assert not used & names
    assert not any(label in " ".join(ASIDES) for label in LABELS)


# --- determinism ---


@every_generator
def test_pinned_digest(name: str) -> None:
    assert digest(name) == DIGESTS[name]


def test_same_bytes_in_another_process_with_another_hash_seed() -> None:
    script = "import test_synthetic as t; print({name: t.digest(name) for name in t.GENERATORS})"
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    for hash_seed in ("1", "271828"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        output = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout
        assert ast.literal_eval(output) == {name: digest(name) for name in GENERATORS}


@every_generator
def test_seed_and_index_change_the_example(name: str) -> None:
    contexts = [e["context"] for seed in (0, 1) for e in make(name, length=300, n=3, seed=seed)]
    assert len(set(contexts)) == 6


@every_generator
def test_examples_do_not_depend_on_n(name: str) -> None:
    parameters = {"depth": 0.4} if name in WITH_DEPTH else {}
    assert make(name, length=300, n=5, **parameters)[:2] == make(name, length=300, n=2, **parameters)


# --- parameters ---


@each_case("generator", [getattr(synthetic, name) for name in synthetic.__all__])
@each_case("wrong", [{"n": -1}, {"n": 2.5}, {"length": 0}, {"length": -5}, {"length": "x"}, {"seed": "x"}])
def test_bad_common_parameters(generator: Generator, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=rf"^{next(iter(wrong))}\b"):
        generator(**wrong)


@each_case(
    ("generator", "wrong", "message"),
    [
        *((g, {"depth": 1.5}, "depth .*from 0 .*to 1") for g in (needle, kv, json_logs)),
        *((g, {"depth": float("nan")}, "depth") for g in (needle, kv, json_logs)),
        (needle, {"depth": "deep"}, "depth"),
        (multi_needle, {"needles": 0}, "needles .*from 1 to 64"),
        (tracking, {"hops": -1}, "hops .*from 0"),
        (tracking, {"chains": 0}, "chains .*from 1"),
        (aggregate, {"top": 21}, "top .*from 1 to 20"),
        (json_logs, {"kind": "xml"}, "kind must be one of json, logs, code, mixed"),
        (rerank, {"documents": 0}, "documents"),
        (rerank, {"documents": 3, "relevant": 4}, "relevant .*from 1 to 3"),
    ],
)
def test_bad_own_parameters(generator: Generator, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        generator(**wrong)


@pytest.mark.parametrize("name", synthetic.__all__)
def test_generators_are_lazy_and_keyword_only(name: str) -> None:
    generator = getattr(synthetic, name)
    kinds = {parameter.kind for parameter in inspect.signature(generator).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}
    assert next(generator(n=10**9))["id"].endswith("-000")
    assert list(generator(n=0)) == []
