"""The verdict that a reply gives, over hand-made replies in the ways that models write."""

from __future__ import annotations

import time
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import NLILabelMatch
from context_bench.evaluators.nli_label import label_verdict, read_verdict


def verdict(reply: str) -> str | None:
    found = read_verdict(reply)
    return found.value if found else None


@each_case(
    ("label", "expected"),
    [
        ("Entailment", "entailment"),
        ("entailed", "entailment"),
        ("SUPPORT", "entailment"),
        ("SUPPORTS", "entailment"),
        ("True", "entailment"),
        ("yes", "entailment"),
        ("Contradiction", "contradiction"),
        ("CONTRADICT", "contradiction"),
        ("REFUTES", "contradiction"),
        ("false", "contradiction"),
        ("NotMentioned", "neutral"),
        ("Not mentioned", "neutral"),
        ("not_mentioned", "neutral"),
        ("Neutral", "neutral"),
        ("NOT_ENOUGH_INFO", "neutral"),
        ("NOT ENOUGH INFORMATION", "neutral"),
        ("NoInfo", "neutral"),
        ("NEI", "neutral"),
    ],
)
def test_labels(label: str, expected: str) -> None:
    found = label_verdict(label)
    assert found is not None
    assert found.value == expected
    assert verdict(label) == expected
    assert verdict(f"**{label}**.") == expected
    assert verdict(f"Answer: {label}") == expected


@each_case(
    ("reply", "expected"),
    [
        ("Answer: Contradiction\nThe clause supports nothing of the kind.", "contradiction"),
        ("The abstract supports the claim at first sight. Label: CONTRADICT", "contradiction"),
        ("The verdict is entailment, since nothing contradicts it.", "entailment"),
        ("The relationship between the premise and the hypothesis is contradiction.", "contradiction"),
        ("I would classify this as neutral.", "neutral"),
        ("This is best labelled as not mentioned.", "neutral"),
        ("### Verdict\nContradiction", "contradiction"),
        ("It says so in section 2, which would contradict section 3.\n\nEntailment", "entailment"),
        ("Entailment: the clause says exactly that. It does not contradict anything.", "entailment"),
        ("Contradiction - section 4 forbids it, though section 5 supports sharing.", "contradiction"),
        ('{"label": "entailment", "why": "nothing contradicts it"}', "entailment"),
        (r"\boxed{\text{Contradiction}}", "contradiction"),
        ("<answer>Not mentioned</answer>", "neutral"),
        ("The answer is no.", "contradiction"),
        ("Final verdict - SUPPORTED", "entailment"),
        ("(B) Contradiction", "contradiction"),
        ("Entailment... wait, section 4 forbids it. Contradiction.", "contradiction"),
        ("The possible labels are entailment, contradiction, not mentioned. The verdict: entailment", "entailment"),
    ],
)
def test_a_stated_verdict_outranks_the_reasoning(reply: str, expected: str) -> None:
    assert verdict(reply) == expected


@each_case(
    ("reply", "expected"),
    [
        ("The contract does not contradict the hypothesis; it entails it.", "entailment"),
        ("It neither entails nor contradicts the hypothesis.", "neutral"),
        ("The text does not support or contradict the claim.", "neutral"),
        ("The hypothesis is not entailed by the contract.", "neutral"),
        ("The claim is not supported; in fact the study contradicts it.", "contradiction"),
        ("The evidence does not contradict the claim and in fact supports it.", "entailment"),
        ("There is not enough information to support or refute the claim.", "neutral"),
        ("It is not mentioned, and there is no evidence either way.", "neutral"),
        ("The statement is not true.", "contradiction"),
        ("The statement is not false.", "entailment"),
        ("Contradiction rather than NotMentioned.", "contradiction"),
        ("There is no doubt that this contradicts the claim.", "contradiction"),
        ("This not only supports the claim, it proves it.", "entailment"),
        ("I would say NEI, as support for the claim is lacking.", "neutral"),
    ],
)
def test_negation(reply: str, expected: str) -> None:
    assert verdict(reply) == expected


@each_case(
    ("reply", "expected"),
    [
        ("Yes, this is true.", "entailment"),
        ("No.", "contradiction"),
        ("True", "entailment"),
        ("False. The text confirms the reverse.", "contradiction"),
        ("No, the contract does not mention this.", "neutral"),
        ("No, it contradicts section 3.", "contradiction"),
        ("Yes, the claim is contradicted by the abstract.", "contradiction"),
        ("Does the contract entail it? Yes.", "entailment"),
        ("The contract is silent on this point.", "neutral"),
        ("The abstract never examined the dose.", "neutral"),
        ("It cannot be determined from the text.", "neutral"),
        ("The study found the opposite.", "contradiction"),
        ("This is consistent with section 3.", "entailment"),
        ("The claim is refuted by the abstract.", "contradiction"),
        ("Section 3 allows it. Therefore, the hypothesis contradicts the contract.", "contradiction"),
    ],
)
def test_reasoning_and_plain_words(reply: str, expected: str | None) -> None:
    assert verdict(reply) == expected


@each_case(
    ("reply", "expected"),
    [
        (
            "Based on the contract, Section 5 states that the Receiving Party shall return all "
            "materials. This directly supports the hypothesis. Therefore, the answer is Entailment.",
            "entailment",
        ),
        (
            "The NDA permits sharing with employees. The hypothesis states that it shall not be shared "
            "with employees, which contradicts the contract.",
            "contradiction",
        ),
        ("Not mentioned. The agreement does not discuss reverse engineering.", "neutral"),
        (
            "The agreement does not discuss reverse engineering, so the hypothesis is neither entailed "
            "nor contradicted.",
            "neutral",
        ),
        (
            "The abstract reports that aspirin did not reduce risk, which refutes the claim that it did.",
            "contradiction",
        ),
        (
            "The claim that X increases Y is supported by the abstract's finding that X significantly "
            "increased Y (p<0.05).",
            "entailment",
        ),
        ("This claim is false.", "contradiction"),
        ("The claim is incorrect based on the abstract.", "contradiction"),
        ("The claim is accurate.", "entailment"),
        ("The abstract does not contain information on the claim. Label: NOT_ENOUGH_INFO", "neutral"),
        (
            "Classification: **CONTRADICT**\n\nReasoning: the study found no support for the claim; in "
            "fact the reverse.",
            "contradiction",
        ),
        ("I would label it SUPPORT.", "entailment"),
        ("Therefore, SUPPORT.", "entailment"),
        ("So it's a contradiction.", "contradiction"),
        ("The evidence partially supports the claim but does not fully confirm it.", "entailment"),
        ("No, the hypothesis is not entailed; the contract says the opposite.", "contradiction"),
        ("Yes. The contract explicitly states this.", "entailment"),
        ("No. The contract explicitly prohibits this.", "contradiction"),
        ("Unclear", "neutral"),
        ("The contract neither supports nor contradicts this statement", "neutral"),
        ("The hypothesis is not contradicted by the contract, but it is also not supported.", "neutral"),
        (
            "Entailment\n\nExplanation: The contract says 'shall not disclose'. This does not "
            "contradict the hypothesis.",
            "entailment",
        ),
        ("Explanation: Clause 3 forbids copying.\nAnswer: Contradiction", "contradiction"),
        ("Label: Contradiction (the text states the opposite)", "contradiction"),
        ("{'label': 'NotMentioned'}", "neutral"),
        ("Insufficient evidence", "neutral"),
        ("There's no evidence in the abstract to support this claim.", "neutral"),
        ("The abstract provides evidence against the claim.", "contradiction"),
        ("Refuted.", "contradiction"),
        ("The statement can be inferred from the contract.", "entailment"),
        ("The statement cannot be inferred from the contract.", "neutral"),
        ("The hypothesis follows from clause 2.", "entailment"),
        ("This does not follow from the text.", "neutral"),
        ("The hypothesis is true according to Section 2.", "entailment"),
        ("True: clause 4", "entailment"),
    ],
)
def test_whole_replies(reply: str, expected: str) -> None:
    assert verdict(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n",
        "I can't help with that.",
        "SUPPORT, NEI",
        "Either SUPPORT or NOT_ENOUGH_INFO",
        "I can't decide between SUPPORT and CONTRADICT.",
        "The patients joined a support group.",
        "Does it entail or contradict the claim?",
        "There is no contradiction here.",
    ],
)
def test_no_verdict(reply: str) -> None:
    assert verdict(reply) is None


@each_case(
    "reply",
    [
        "As an AI, I cannot determine the legal effect of this agreement. Please consult a lawyer.",
        "I can't verify medical claims. For health questions, please see a professional.",
        "I can't say, because I'm not a lawyer.",
        "I'm just a chatbot and can't judge scientific evidence.",
        "My knowledge ends in 2023, so I can't comment on this claim.",
        "I'm unable to determine whether this is supported, as I'm not qualified to interpret it.",
        "I cannot tell you whether this applies; that's a matter for your attorney.",
        "Evaluating health claims isn't something I'm able to do, so I can't determine whether it's true.",
        "I can't confirm or deny medical claims.",
        "I prefer to remain neutral on this topic and won't answer.",
        "As a neutral observer I'd rather not judge this.",
        "My answer is that I cannot determine this: I'm not permitted to analyse contracts.",
        "No abstract was included in your message, so I cannot determine whether the claim holds.",
        "The contract text did not come through, so I can't tell.",
    ],
)
def test_a_refusal_is_not_the_neutral_verdict(reply: str) -> None:
    assert verdict(reply) is None


@each_case(
    "reply",
    [
        "I cannot determine this from the contract.",
        "I'm not a lawyer, but the contract makes no mention of audit rights.",
        "I'm an AI, so take this with a grain of salt, but the NDA is silent on arbitration.",
        "Although I can't offer legal advice, the text contains no provision on exclusivity.",
        "Based on the abstract alone, I can't tell.",
        "We can't know from this sentence.",
        "We simply don't know whether he is married.",
        "Nothing in the NDA deals with this point.",
        "Nowhere does the agreement talk about arbitration.",
        "I went through the NDA twice and found nothing on arbitration.",
        "There isn't any language in the contract that covers this.",
        "The topic never comes up in the agreement.",
        "The claim can be neither confirmed nor refuted on the basis of this abstract.",
        "It gives us no grounds to accept or reject the claim.",
        "The hypothesis might be true, but the premise doesn't guarantee it.",
        "The hypothesis cannot be ruled out.",
    ],
)
def test_what_the_text_does_not_say_is_neutral(reply: str) -> None:
    assert verdict(reply) == "neutral"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Though I'm not a lawyer, Section 2 clearly entails the statement.", "entailment"),
        ("While I can't give legal advice, clause 12 contradicts the hypothesis.", "contradiction"),
        ("As an AI I can't advise you, but the label is NotMentioned.", "neutral"),
    ],
)
def test_a_disclaimer_does_not_undo_a_verdict(reply: str, expected: str) -> None:
    assert verdict(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "It could be Contradiction or NotMentioned; I can't settle on one.",
        "To decide whether the hypothesis is entailed, contradicted or not mentioned, we look at Section 1, which",
        "Inference is a task where one decides whether a premise entails, contradicts or is neutral towards a claim.",
    ],
)
def test_labels_that_are_only_weighed_are_not_given(reply: str) -> None:
    assert verdict(reply) is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            "| Label | Fits? |\n|---|---|\n| Entailment | Yes |\n| Contradiction | No |\n| NotMentioned | No |",
            "entailment",
        ),
        ("Entailment: ❌\nContradiction: ✅\nNeutral: ❌", "contradiction"),
        ("- Entailment? No, it is not said.\n- Contradiction? No, it may be.\n- Neutral? Yes.", "neutral"),
    ],
)
def test_the_one_label_that_is_ticked(reply: str, expected: str) -> None:
    assert verdict(reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Far from contradicting the claim, the study backs it up.", "entailment"),
        ("The trial's findings bear the claim out.", "entailment"),
        ("There is ample evidence in the abstract for the claim.", "entailment"),
        ("It can be determined from the text that the deposit is refundable.", "entailment"),
        ("Clause 3 says so.", "entailment"),
        ("The data run counter to the claim.", "contradiction"),
        ("The claim is at odds with what the authors found.", "contradiction"),
        ("The hypothesis is ruled out by Section 4.", "contradiction"),
    ],
)
def test_wordings_that_lean_towards_a_verdict(reply: str, expected: str) -> None:
    assert verdict(reply) == expected


@pytest.mark.parametrize(
    ("example", "response", "expected"),
    [
        ({"answer": "Entailment"}, "Yes, this is true.", {"nli_accuracy": 1.0}),
        ({"answer": "SUPPORT"}, "Entailment", {"nli_accuracy": 1.0}),
        ({"answer": "NotMentioned"}, "NOT_ENOUGH_INFO", {"nli_accuracy": 1.0}),
        ({"answers": ["Contradiction"]}, "Entailment", {"nli_accuracy": 0.0}),
        ({"answers": ["Contradiction", "neutral"]}, "Neutral", {"nli_accuracy": 1.0}),
        ({"answer": "Contradiction"}, None, {"nli_accuracy": 0.0}),
    ],
)
def test_scores(example: dict[str, Any], response: str | None, expected: dict[str, float]) -> None:
    assert NLILabelMatch().score(example, {"response": response}) == expected


def test_an_unknown_gold_label_is_not_scored() -> None:
    scores = NLILabelMatch().score({"answer": "purple"}, {"response": "Entailment"})
    assert scores == {}
    assert "'purple'" in scores.reason  # type: ignore[attr-defined]
    assert NLILabelMatch().score({}, {"response": "Entailment"}).reason == "no gold label"  # type: ignore[attr-defined]


@pytest.mark.long
@each_case(
    "reply",
    [
        "not " * 100_000,
        "support " * 100_000,
        "no evidence " * 50_000,
        "label " * 50_000,
        "answer: " * 50_000,
        "does not " * 50_000,
        "\n" * 200_000,
        "wait " * 50_000,
        "(" * 100_000,
        "neither supports nor " * 20_000,
        "I cannot determine, as an AI " * 10_000,
        "no clause " * 30_000,
        "whether entailed or neutral " * 10_000,
        "Neutral: no\n" * 20_000,
        "the contract the contract was not " * 10_000,
    ],
)
def test_hostile_replies_take_no_time(reply: str) -> None:
    start = time.process_time()
    read_verdict(reply)
    assert time.process_time() - start < 3
