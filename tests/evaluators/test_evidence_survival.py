"""EvidenceSurvival: what the model got to read, and whether the evidence was in it, in which form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from banks import each_case
from context_bench.datasets.synthetic.haystacks import needle
from context_bench.datasets.synthetic.json_logs import json_logs
from context_bench.evaluators import EvidenceSurvival
from context_bench.systems.prompts import build_messages

SPAN = "Bob lives in Rome."
KEPT, LOST = ({"evidence_survived": value, "evidence_verbatim": value} for value in (1.0, 0.0))
FOUND = {"verbatim": 1, "recoverable": 0, "lost": 0}


def _body(*contents: Any, **fields: Any) -> str:
    return json.dumps({"messages": [{"role": "user", "content": content} for content in contents], **fields})


def _call(*contents: Any, status: int = 200, **fields: Any) -> dict[str, Any]:
    return {"path": "/v1/chat/completions", "status": status, "body": _body(*contents, **fields), "reply": ""}


def _answered(text: str, *contents: Any) -> dict[str, Any]:
    """A call with its reply."""
    reply = {"id": f"id of {text}", "choices": [{"message": {"role": "assistant", "content": text}}]}
    return {**_call(*contents), "reply": json.dumps(reply)}


ROME: dict[str, Any] = {"returned": {"id": "id of Rome", "text": "Rome", "calls": []}}
"""What came back to the client."""


def _exchange(*calls: dict[str, Any], **facts: Any) -> dict[str, Any]:
    return {"sent": "", "calls": list(calls), "unmatched": 0, **facts}


def _score(evidence: Any, *, question: str = "Where?", **processed: Any) -> Any:
    example = {"context": "", "question": question, "evidence": evidence if isinstance(evidence, list) else [evidence]}
    return EvidenceSurvival().score(example, processed)


def _details(evidence: Any, context: str, **facts: Any) -> dict[str, Any]:
    return _score(evidence, context=context, **facts).details


# --- where it is looked for


def test_the_texts_of_the_upstream_calls() -> None:
    scores = _score(SPAN, tapped=[_exchange(_call(f"Alice. {SPAN} Carol.", "Where?"))])
    assert scores == KEPT
    assert scores.details == FOUND
    lost = _score(SPAN, tapped=[_exchange(_call("Alice. Carol.", "Where?"))])
    assert lost == LOST
    assert lost.details == {"verbatim": 0, "recoverable": 0, "lost": 1, "lost_spans": [SPAN], "rewritten": False}


def test_what_the_tap_saw_counts_and_not_what_the_system_says() -> None:
    tapped = [_exchange(_call("nothing"))]
    assert _score(SPAN, tapped=tapped, context=SPAN) == LOST


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [], "system": SPAN},
        {"messages": [], "system": [{"type": "text", "text": SPAN}]},
        {"messages": [{"role": "tool", "tool_call_id": "1", "content": SPAN}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"text": SPAN}]}]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": SPAN}, {"type": "image_url"}]}]},
    ],
)
def test_every_place_of_a_request_in_which_a_model_reads(body: dict[str, Any]) -> None:
    tapped = [_exchange({"path": "/v1/chat/completions", "status": 200, "body": json.dumps(body)})]
    assert _score(SPAN, tapped=tapped) == KEPT


def test_what_only_a_side_call_read_did_not_reach_the_answer() -> None:
    summarised = [_exchange(_call(f"Sum up: {SPAN}"), _answered("Rome", "A summary that lost it. Where?"), **ROME)]
    assert _score(SPAN, tapped=summarised) == LOST


def test_a_side_call_after_the_answer_takes_nothing_away() -> None:
    tapped = [_exchange(_answered("Rome", SPAN), _answered("Yes", "Is it safe?"), **ROME)]
    assert _score(SPAN, tapped=tapped) == KEPT


def test_of_several_parts_any_may_hold_it() -> None:
    calls = _answered("Rome", SPAN), _answered("Nothing here.", "Alice.")
    tapped = [_exchange(*calls, returned={"id": "", "text": "Rome\n\nNothing here.", "calls": []})]
    assert _score([SPAN, "Alice."], tapped=tapped) == KEPT


def test_of_which_call_gave_the_answer_nothing_is_guessed() -> None:
    returned = {"id": "x", "text": "That I will not tell.", "calls": []}
    scores = _score(SPAN, tapped=[_exchange(_answered("Rome", SPAN), _answered("Yes", "Safe?"), returned=returned)])
    assert (scores, scores.reason) == ({}, "it is unknown which of several calls gave the answer")


def test_spans_may_be_in_different_turns() -> None:
    tapped = [_exchange(_call("one"), _answered("Rome", "Alice."), **ROME), _exchange(_call(SPAN))]
    assert _score([SPAN, "Alice."], tapped=tapped) == KEPT
    assert _score([SPAN, "Alice", "Carol"], tapped=tapped).details["lost_spans"] == ["Carol"]


def test_a_span_is_not_put_together_from_two_texts() -> None:
    assert _score(SPAN, tapped=[_exchange(_call("Bob lives", "in Rome."))]) == LOST


@pytest.mark.parametrize("status", [400, 429, 500])
def test_a_call_that_was_not_answered_was_not_read(status: int) -> None:
    tapped = [_exchange(_call(SPAN, status=status), _call("short"))]
    assert _score(SPAN, tapped=tapped) == LOST


@pytest.mark.parametrize(
    ("processed", "reason"),
    [
        ({}, "the text that the model read is not known"),
        ({"response": SPAN}, "the text that the model read is not known"),
        ({"tapped": []}, "no request of this example reached the model"),
        ({"tapped": [_exchange()]}, "no request of this example reached the model"),
        ({"tapped": [_exchange(_call(SPAN, status=500))]}, "no request of this example reached the model"),
        (
            {"tapped": [_exchange({"path": "/v1/responses", "status": 200, "body": "no JSON"})]},
            "it is unknown which requests at the tap belong to this example",
        ),
        (
            {"tapped": [_exchange(_call(SPAN)), _exchange(unmatched=2)]},
            "it is unknown which requests at the tap belong to this example",
        ),
    ],
)
def test_what_is_not_known_is_no_score(processed: dict[str, Any], reason: str) -> None:
    scores = _score(SPAN, **processed)
    assert scores == {}
    assert scores.reason == reason


def test_no_evidence_is_no_score() -> None:
    for evidence in ([], ["  "], None):
        scores = EvidenceSurvival().score({"context": "x", "evidence": evidence}, {"context": "x"})
        assert (scores, scores.reason) == ({}, "no evidence")  # type: ignore[attr-defined]


def test_the_context_of_a_compressor() -> None:
    assert _details({"start": 0, "end": 3, "text": SPAN}, f"x {SPAN}") == FOUND
    assert _score(SPAN, context="") == LOST


# --- the question is no context


def test_a_span_that_only_the_question_repeats_is_lost() -> None:
    question = f"It says: {SPAN} Where does he live?"
    lost = _score(SPAN, question=question, tapped=[_exchange(_call("Alice.", question))])
    assert lost == LOST
    kept = _score(SPAN, question=question, tapped=[_exchange(_call(f"Alice. {SPAN}", question))])
    assert kept == KEPT
    merged = _score(SPAN, question=question, tapped=[_exchange(_call(f"Alice.\n\n{question}\n\nOne word."))])
    assert merged == LOST
    by_words = _score("BOB lives in Rome", question=question, tapped=[_exchange(_call(question))])
    assert by_words == LOST


def test_a_context_that_holds_the_question_and_more_is_a_context() -> None:
    faq = "Where does Bob live? He lives in Rome."
    scores = _score(faq, question="Where does Bob live?", tapped=[_exchange(_call(faq, "Where does Bob live?"))])
    assert scores.details == FOUND


# --- in which form


@each_case(
    ("span", "context", "details"),
    [
        (SPAN, "x " + SPAN, FOUND),
        (SPAN, "x" + SPAN, {}),
        (SPAN, "bob lives\nin  ROME", FOUND),
        (SPAN, "Bob lives in Romeo", {}),
        (SPAN, "Bob in Rome lives", {}),
        ("ob lives in Rom", SPAN, {}),
        ("It fell to -5.", "it fell to 5", {}),
        ("It fell to -5.", "It fell to **-5**", FOUND),
        ("pi is 3.14", "pi is 314", {}),
        ("in C++", "in C", {}),
        ("a < b & c", "<p>A &lt; b &amp;amp; c</p>", FOUND),
        ("🍕", "a 🍕 b", FOUND),
        ("🍕", "a b", {}),
        ("東京に住む", "東京に 住む", FOUND),
        ('line one\nline "two"', r'{"text":"line one\nline \"two\""}', FOUND),
        ("café à Paris", r'{"t":"caf\u00e9 \u00e0 Paris"}', FOUND),
        (r'"caf\u00e9"', "café", FOUND),
        (r"C:\new\table here", r"x C:\new\table here", FOUND),
        (r"C:\new\table here", r"c:\new\table  here", FOUND),
    ],
)
def test_forms(span: str, context: str, details: dict[str, Any]) -> None:
    found = _details(span, context)
    if details:
        assert found == details
    else:
        assert (found["lost"], found["lost_spans"]) == (1, [span])


RECORD = {"id": "acc_17", "status": "closed", "seats": 85, "region": "eu-north"}


@pytest.mark.parametrize(
    "context",
    [
        json.dumps(RECORD, separators=(",", ":")),
        json.dumps(RECORD, indent=4),
        json.dumps(dict(sorted(RECORD.items(), reverse=True))),
        "id | status | seats | region\nacc_16 | closed | 84 | eu-north\nacc_17 | closed | 85 | eu-north\n",
        "acc_16,closed,84,eu-north\nacc_17,closed,85,eu-north\nacc_18,closed,86,eu-north",
        "seats\tid\tregion\tstatus\n85\tacc_17\teu-north\tclosed\n",
        "acc_17 | closed | | 85\n| eu-north |",
        "- id: acc_17\n  status: closed\n  seats: 85\n  region: eu-north\n",
        "<row><id>acc_17</id></row> acc_17; closed; 85; eu-north",
    ],
)
def test_a_record_in_another_form(context: str) -> None:
    assert _details(json.dumps(RECORD), context)["lost"] == 0


@pytest.mark.parametrize(
    "context",
    [
        "acc_17 | closed | eu-north",  # a value is missing
        "acc_17 | closed | 86 | eu-north",
        "acc_17 | closed | -85 | eu-north",
        "acc_17 | closed | 8.5 | eu-north",
        "acc_17 | closed | 851 | eu-north",
        "acc_17 closed, and much later 85 in eu-north",
        "acc_17 closed 85 x eu-north",
        json.dumps({**RECORD, "status": "eu-north", "region": "closed"}),  # all words, but each elsewhere
        json.dumps({**RECORD, "id": "acc_18"}),
        "",
    ],
)
def test_a_record_that_is_not_there(context: str) -> None:
    assert _details(json.dumps(RECORD), context)["lost"] == 1


def test_a_record_with_signs() -> None:
    record = {"id": "acc_17", "delta": -5, "rate": 1.5, "seats": 120, "lang": "C++", "paid": "$1,000"}
    span = json.dumps(record)
    for context in ("acc_17,-5,1.5,120,C++,1000$", "acc_17 | -5 | 1.5 | 120 | C++ | $1000"):
        assert _details(span, context.replace("1000$", '"$1,000"'))["recoverable"] == 1
    packed = json.dumps(json.dumps([dict(reversed(record.items()))]))
    assert _details(span, packed)["recoverable"] == 1
    for old, new in (("-5", "5"), ("1.5", "15"), ("C++", "C"), ("$", "")):
        assert _details(span, "acc_17 | -5 | 1.5 | 120 | C++ | $1000".replace(old, new))["lost"] == 1
        assert _details(span, packed.replace(old, new))["lost"] == 1


def test_nested_and_empty_fields_of_a_record() -> None:
    record = {
        "id": "s_1",
        "note": "",
        "gone": None,
        "tags": ["vip", "new"],
        "billing": {"cycle": "monthly", "late": False},
        "calls": [{"to": "Ann"}, {"to": "Bo"}],
    }
    span = json.dumps(record)
    assert _details(span, json.dumps(dict(reversed(record.items()))))["recoverable"] == 1
    row = 's_1 | | null | ["vip","new"] | {"late":false,"cycle":"monthly"} | [{"to":"Ann"},{"to":"Bo"}]'
    assert _details(span, row)["recoverable"] == 1
    assert _details(span, row.replace("vip", "old"))["lost"] == 1
    assert _details(span, row.replace('"Bo"', '"Ann"'))["lost"] == 1, "Ann twice is not Ann and Bo"


@pytest.mark.parametrize(
    "record", [{"x": 1, "y": 2}, {"x": 1, "y": 2, "z": 3}, {"only": "these words"}, {"a": "b"}, {}]
)
def test_values_that_stand_together_by_chance_are_no_row(record: dict[str, Any]) -> None:
    values = ", ".join(map(str, record.values()))
    assert _details(json.dumps(record), f"others {values} others")["lost"] == 1


@pytest.mark.parametrize("span", ["[1, 2, 3]", '"text alone"', "{broken", "[" * 100_000, '{"a":' * 50_000])
def test_what_is_no_record_is_looked_for_as_text(span: str) -> None:
    assert _details(span, f"x {span} y") == FOUND
    assert _details(span, "x")["lost"] == 1


def test_lost_spans_are_few_and_short() -> None:
    details = _details(["a " * 100, "b\nb", "c", "d"], "nothing")
    assert details["lost"] == 4
    assert details["lost_spans"] == ["a " * 39 + "a…", "b b", "c"]


# --- what a pruner left of it

PRUNED = "The archive of the port was moved to Antwerp by Eva Maes in 1952, and it has never been opened since."


@pytest.mark.parametrize(
    ("context", "state"),
    [
        (PRUNED, "verbatim"),
        ("archive port moved Antwerp Eva Maes 1952, never opened since", "recoverable"),
        ("archive port moved Antwerp Eva Maes 1952, opened since", "lost"),
        ("archive port moved Antwerp Eva Maes 1925, never opened since", "lost"),
    ],
)
def test_the_three_states(context: str, state: str) -> None:
    scores = _score(PRUNED, question="Who moved the archive?", context=context)
    assert scores.details[state] == 1
    assert scores == {"evidence_survived": float(state != "lost"), "evidence_verbatim": float(state == "verbatim")}


def test_the_worst_span_decides_the_row() -> None:
    scores = _score([PRUNED, SPAN], context=f"archive port moved Antwerp Eva Maes 1952, never opened since. {SPAN}")
    assert scores == {"evidence_survived": 1.0, "evidence_verbatim": 0.0}
    assert scores.details == {"verbatim": 1, "recoverable": 1, "lost": 0}


def test_a_question_does_not_recover_what_the_context_lost() -> None:
    span, question = "The county seat of Lark is Newport.", "Is the county seat of Lark called Newport?"
    assert _score(span, question=question, tapped=[_exchange(_call(f"Nothing.\n\n{question}"))]) == LOST
    kept = _score(span, question=question, tapped=[_exchange(_call(f"county seat Lark Newport.\n\n{question}"))])
    assert kept.details["recoverable"] == 1


def test_evidence_that_the_original_does_not_hold_cannot_be_lost() -> None:
    example = {"context": SPAN, "question": "Where?", "evidence": ["Carol sails to Oslo."]}
    scores: Any = EvidenceSurvival().score(example, {"context": SPAN})
    assert (scores, scores.reason) == ({}, "the original context does not contain the evidence")
    scores = EvidenceSurvival().score({**example, "evidence": [SPAN, "Carol sails to Oslo."]}, {"context": "Bob"})
    assert scores.details == {"verbatim": 0, "recoverable": 0, "lost": 1, "lost_spans": [SPAN], "rewritten": False}


def test_a_text_with_words_that_nobody_sent_was_rewritten() -> None:
    example = {"context": f"{PRUNED} {'Nothing more is known. ' * 9}", "question": "Who?", "evidence": [PRUNED]}

    def is_rewritten(context: str) -> bool:
        return bool(EvidenceSurvival().score(example, {"context": context}).details["rewritten"])  # type: ignore[attr-defined]

    assert is_rewritten("Eva Maes took the harbour's papers to Antwerp in 1952, where they remain sealed.")
    assert not is_rewritten("archive Antwerp opened since. Nothing more is known.")
    assert not is_rewritten("archive Antwerp opened. " + "Nothing more is known. " * 9 + "[lines omitted]")  # 2 of 41
    assert not is_rewritten(json.dumps("archive\nAntwerp\nopened"))
    assert not is_rewritten("")


def test_what_was_sent_to_a_proxy_are_no_words_of_its_own() -> None:
    sent = _body(f"Answer briefly, as an expert would. {SPAN} Where?")
    cut, rewritten = (
        _score(SPAN, tapped=[_exchange(_call(text), sent=sent)]).details["rewritten"]
        for text in ("Answer briefly, as an expert would. Where?", "Somebody dwells there. Where?")
    )
    assert (cut, rewritten) == (False, True)


# --- the real thing


@each_case("example", [*json_logs(length=600, n=9), *needle(length=300, n=3)], ids=lambda each: each["id"])
def test_generated_data(example: dict[str, Any]) -> None:
    body = json.dumps({"messages": build_messages(example)})
    (span,) = example["evidence"]
    whole = EvidenceSurvival().score(
        example, {"tapped": [_exchange({"path": "/v1/chat/completions", "status": 200, "body": body})]}
    )
    assert whole.details == FOUND  # type: ignore[attr-defined]
    without = example["context"][: span["start"]] + example["context"][span["end"] :]
    body = json.dumps({"messages": build_messages({**example, "context": without})})
    lost = EvidenceSurvival().score(
        example, {"tapped": [_exchange({"path": "/v1/chat/completions", "status": 200, "body": body})]}
    )
    assert lost == LOST
