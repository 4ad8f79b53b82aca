"""The letter that a reply chooses, over hand-made replies in the ways that models write."""

from __future__ import annotations

import time
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import MultipleChoiceAccuracy
from context_bench.evaluators.choice.option_reading import read_choice

CITIES = ["Lyon", "Paris", "Nice", "New York", "New York City"]


def letter(reply: str, count: int = 10) -> str | None:
    return read_choice(reply, "ABCDEFGHIJ"[:count])


@each_case(
    ("reply", "expected"),
    [
        ("B", "B"),
        ("b", "B"),
        ("B.", "B"),
        ("(B)", "B"),
        ("[B]", "B"),
        ("b)", "B"),
        ("**B**", "B"),
        ("*B*", "B"),
        ("__B__", "B"),
        ("`B`", "B"),
        ('"B"', "B"),
        ("$B$", "B"),
        ("<b>B</b>", "B"),
        ("Ｂ", "B"),
        ("（B）", "B"),
        (r"\boxed{B}", "B"),
        (r"$\boxed{\text{B}}$", "B"),
        (r"\boxed{\mathbf{\text{(B)}}}", "B"),
        (r"\(\boxed{B}\)", "B"),
        ("B) Mitochondria", "B"),
        ("B. Mitochondria", "B"),
        ("B: Mitochondria", "B"),
        ("B - Mitochondria", "B"),
        ("**B. Mitochondria**", "B"),
        ("Option B", "B"),
        ("option b", "B"),
        ("Choice (B)", "B"),
        ("B because it is the only organelle that makes ATP", "B"),
        ("B, since nothing else fits.", "B"),
        ("B!", "B"),
        ("B?", "B"),
        ("Definitely B.", "B"),
        ("B, I think.", "B"),
        ("A\n", "A"),
        ("A.", "A"),
        ("A, because of the tides", "A"),
        ("I.", "I"),
    ],
)
def test_short_replies(reply: str, expected: str) -> None:
    assert letter(reply) == expected


@each_case(
    ("reply", "expected"),
    [
        ("The answer is B.", "B"),
        ("The correct answer is (C).", "C"),
        ("the answer is c", "C"),
        ("Answer: (C)", "C"),
        ("Answer: c", "C"),
        ("ANSWER: C", "C"),
        ("Answer - C", "C"),
        ("Answer = C", "C"),
        ("Ans: C", "C"),
        ("**Answer:** C", "C"),
        ("**Answer: C**", "C"),
        ("Answer: **C) Nitrogen**", "C"),
        ("Answer:\n\nC", "C"),
        ("### Final Answer\n\n**C**", "C"),
        ("Final answer: option C", "C"),
        ("The final answer is $\\boxed{C}$. I hope it is correct.", "C"),
        ("My answer: C", "C"),
        ("The best answer to this question is therefore C", "C"),
        ("The correct option is: C", "C"),
        ("The correct choice here would be C.", "C"),
        ("The answer should be (C)", "C"),
        ("The answer is most likely C, given the data.", "C"),
        ("The answer must be C", "C"),
        ("The answer is A because the others fail", "A"),
        ("The answer is a.", "A"),
        ("The answer is I.", "I"),
        ("I'd go with D", "D"),
        ("I would choose D.", "D"),
        ("I'll pick option D", "D"),
        ("I am going with D here.", "D"),
        ("I select (D).", "D"),
        ("I'd say D", "D"),
        ("I'm leaning towards D.", "D"),
        ("If I had to choose, I would say D.", "D"),
        ("D is the correct answer.", "D"),
        ("Option D is the best choice because of the wording.", "D"),
        ("(D) is correct.", "D"),
        ("Therefore, D.", "D"),
        ("So the right one is D.", "D"),
        ('{"reasoning": "A is tempting", "answer": "D"}', "D"),
        ("<answer>D</answer>", "D"),
        ("<answer> (D) </answer> as explained", "D"),
        ("It must be D.", "D"),
        ("This matches option D.", "D"),
        ("D fits best.", "D"),
        ("答案是D", "D"),
        ("答案:D", "D"),
        ("La respuesta correcta es la D.", "D"),
        ("La réponse est D", "D"),
        ("Die richtige Antwort ist D.", "D"),
    ],
)
def test_statements(reply: str, expected: str) -> None:
    assert letter(reply) == expected


@each_case(
    ("reply", "expected"),
    [
        ("At first A seems right, but the answer is C", "C"),
        ("Answer: A ... wait, actually the correct answer is B", "B"),
        ("The answer is A. Wait, let me recheck. 5 + 5 = 10, so it's C.", "C"),
        ("D... actually no, A.", "A"),
        ("B. Sorry, I meant C.", "C"),
        ("A is correct about the date. However, the question asks for the place. The answer is B.", "B"),
        ("Both A and B are true, so the answer is D.", "D"),
        ("The answer is D because both A and B are correct.", "D"),
        ("The answer is D: A and B are both right.", "D"),
        ("I considered B. I considered C. I pick D.", "D"),
        ("Is it A? No. It must be D.", "D"),
        ("Could the answer be A? The evidence says otherwise. The answer is B.", "B"),
        ("The answer is B. If it had asked for the largest, the answer would be A.", "B"),
        ("The correct answer is C, although B would be correct if it were winter.", "C"),
        ("Answer: B\n\nQuestion: What is 2 + 2?\nA. 3\nB. 4\nC. 5\nAnswer: C", "B"),
        ("B. Mitochondria\n\nExplanation:\nA. The nucleus stores DNA.\nC. Ribosomes make protein.", "B"),
        ("A. Nucleus\nB. Mitochondria\nC. Ribosome\nD. Golgi\n\nI would select C.", "C"),
        ("Let's go through them.\nA: wrong\nB: wrong\nC: correct\nD: wrong", "C"),
        ("A) no\nB) no\nC) yes\nD) no\n\n**C**", "C"),
        ("Step 1: we compute x.\nStep 2: we compare.\n\nC", "C"),
        ("The options mention A, B, C and D. After comparison, the answer: D", "D"),
    ],
)
def test_the_last_statement_counts(reply: str, expected: str) -> None:
    assert letter(reply) == expected


@each_case(
    ("reply", "expected"),
    [
        ("The answer is B, not A.", "B"),
        ("Not A but B.", "B"),
        ("It's not A. It's C.", "C"),
        ("A is wrong. B is right.", "B"),
        ("It can't be B; it has to be C.", "C"),
        ("Eliminate A and C, leaving D.", "D"),
        ("We can rule out A, B and D. C remains.", "C"),
        ("Neither A nor B is right; C is.", "C"),
        ("I would choose C rather than B.", "C"),
        ("I prefer C over B.", "C"),
        ("A isn't supported. B doesn't follow. C fits.", "C"),
        ("Option A is incorrect, option B is incorrect, and option C is correct.", "C"),
        ("The answer is not A. Since B is too small, C.", "C"),
        ("Between A and B, B fits better.", "B"),
    ],
)
def test_negation_and_elimination(reply: str, expected: str) -> None:
    assert letter(reply) == expected


@each_case(
    "reply",
    [
        "",
        "   \n ",
        "I cannot answer that.",
        "I'm sorry, but I can't help with this request.",
        "As an AI, I have no opinion.",
        "The answer is a bit complex.",
        "A good question!",
        "I think so.",
        "A and B",
        "The answer is A and B.",
        "Answer: A, C",
        "Either A or B.",
        "A or B",
        "It can't be B.",
        "The answer is not A.",
        "None of the options make sense.",
        "N/A",
        "I cannot choose between A and B.",
        "The temperature is 25 °C",
        "The U.S.A. is large",
        "e.g. i.e. a.m.",
        "C++ is a language",
        "A's price is high",
        "I'd rather not say",
        "Let x = 3 and A = 5",
    ],
)
def test_no_choice(reply: str) -> None:
    assert letter(reply) is None


@each_case(
    ("reply", "expected"),
    [
        ("Paris", "B"),
        ("paris.", "B"),
        ("**Paris**", "B"),
        ("The capital is Paris.", "B"),
        ("The answer is Paris.", "B"),
        ("It's Paris, not Lyon.", "B"),
        ("New York City", "E"),
        ("New York", "D"),
        ("It happened in New York City, I believe.", "E"),
        ("B) Paris", "B"),
        ("A) Paris", "A"),
        ("The answer is F.", None),
        ("Lyon or Paris", None),
        ("Parisian food", None),
        ("A, B, C and D are wrong.", "E"),
        ("Not Paris. Lyon is the correct answer.", "A"),
    ],
)
def test_texts_of_options(reply: str, expected: str | None) -> None:
    assert read_choice(reply, "ABCDE", CITIES) == expected


@each_case(
    ("reply", "options", "expected"),
    [
        ("2", ["1", "2", "12", "2.5"], "B"),
        ("The result is 2.5", ["1", "2", "12", "2.5"], "D"),
        ("It is 12", ["1", "2", "12", "2.5"], "C"),
        ("-2", ["2", "-2"], "B"),
        ("The answer is 20%", ["20", "20%"], "B"),
        ("both A and B", ["x", "y", "Both A and B", "None"], "C"),
        ("The answer is both A and B.", ["x", "y", "Both A and B", "None"], "C"),
        ("The answer is A dog.", ["A cat", "A dog"], "B"),
        ("The answer is I and II.", ["I only", "II only", "I and II", "Neither I nor II"], "C"),
        ("Neither I nor II", ["I only", "II only", "I and II", "Neither I nor II"], "D"),
        ("None of the above", ["x", "y", "z", "None of the above."], "D"),
        ("AB", ["A", "B", "AB", "O"], "C"),
        ("True", ["True", "False"], "A"),
        ("False. Although it is true that whales swim.", ["True", "False"], "B"),
        ("same", ["Same", "same"], None),
        ("$x^2$", ["$x$", "$x^2$"], "B"),
        ("(a+b)*", ["(a+b)*", "(a|b"], "A"),
        ("anything", ["", "  "], None),
    ],
)
def test_awkward_options(reply: str, options: list[str], expected: str | None) -> None:
    assert read_choice(reply, "ABCDEFGHIJ"[: len(options)], options) == expected


STATEMENTS = [
    "Statement 1 is true, statement 2 is false",
    "Both statements are true",
    "Both statements are false",
    "Statement 1 is false, statement 2 is true",
]
MIXED = ["The increase in temperature", "A decrease in pressure", "I and III only", "None of the above"]
NUMBERS = ["0", "1", "2", "3"]
CHANGES = ["increases", "decreases", "remains the same", "cannot be determined"]
TEN = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


@each_case(
    ("options", "reply", "expected"),
    [
        (
            STATEMENTS,
            "Statement 1 is true because every group has an identity. Statement 2 is false since not "
            "all groups are abelian.\n\nTherefore the correct option is A.",
            "A",
        ),
        (
            STATEMENTS,
            "Let me analyse each statement.\n\n**Statement 1**: True.\n**Statement 2**: True.\n\nSo "
            "both statements are true.\n\nThe answer is **(B) Both statements are true**.",
            "B",
        ),
        (STATEMENTS, "Both statements are false.", "C"),
        (
            MIXED,
            "Let's think step by step.\n\nA) The increase in temperature – this would shift "
            "equilibrium left.\nB) A decrease in pressure – this has no effect.\nC) I and III only – "
            "not applicable.\nD) None of the above – correct.\n",
            "D",
        ),
        (MIXED, "A decrease in pressure", "B"),
        (MIXED, "The answer is a decrease in pressure.", "B"),
        (MIXED, "I believe the answer would be C, I and III only.", "C"),
        (
            NUMBERS,
            "The ring Z_3 has characteristic 3... Looking at the options: A. 0, B. 1, C. 2, D. 3. So "
            "we need 3, which is option D.",
            "D",
        ),
        (NUMBERS, "We have 3 - 1 = 2. Hence the answer is 2.", "C"),
        (NUMBERS, "x = 1 and then y = 2, so x + y = 3. The answer is D.", "D"),
        (NUMBERS, "The final answer is 3", "D"),
        (NUMBERS, "Thus $x=2$. $\\boxed{2}$", "C"),
        (CHANGES, "When the volume increases, pressure decreases. The correct answer is B) decreases.", "B"),
        (CHANGES, "As the temperature increases, the solubility of gas decreases. So: **decreases**", "B"),
        (CHANGES, "It cannot be determined from the information.", "D"),
        (TEN, "I would pick I.", "I"),
        (TEN, "I think J is the right answer.", "J"),
        (TEN, "The answer is (I) iota.", "I"),
        (TEN, "I'm not sure, but I'd guess H.", "H"),
        (TEN, "A careful reading suggests gamma.", "C"),
        ([], "To solve this, consider A's claim. A says B is lying. Therefore, the answer is (D).", "D"),
        (
            [],
            "Looking at each option:\n- A: The French Revolution began in 1789. This is correct.\n- B: "
            "incorrect date.\n- C: incorrect place.\n- D: incorrect person.\n\nAnswer: A",
            "A",
        ),
        ([], "The correct answer is:\n\n(B)", "B"),
        (
            [],
            "Correct Answer: B. 42\n\nExplanation: Option A is too low. Option C is too high. Option D is irrelevant.",
            "B",
        ),
        ([], "**Correct answer: (B)**\n\nOptions (A), (C) and (D) are incorrect because they ignore friction.", "B"),
        (
            [],
            "The answer is B. \n\nHere is why the other options are wrong:\n\nA: too small\nC: too "
            "large\nD: wrong sign",
            "B",
        ),
        ([], "B\n\nThe reason is that A is not a function.", "B"),
        ([], "Among the given options, option C best explains the phenomenon.", "C"),
        ([], "So the closest answer is C (approximately 3.2).", "C"),
        ([], "Given this analysis, the most appropriate choice is **D. Refer to a specialist**.", "D"),
        ([], "Of the options, only D satisfies both conditions.", "D"),
        ([], "Only D satisfies both conditions.", "D"),
        ([], "The statement that is NOT true is B.", "B"),
        ([], "B is false, so B is the exception. The answer is B.", "B"),
        ([], "Answer: B\nConfidence: 90%", "B"),
        ([], "Answer: B (confidence: high)", "B"),
        ([], "Answer: B\n\nNote: A could also be argued.", "B"),
        ([], "The answer is either B or C, but I'd go with C.", "C"),
        ([], "It is between B and C. I'm leaning toward C.", "C"),
        ([], "My final answer is therefore: $\\boxed{\\textbf{(C)}}$", "C"),
        ([], "Let's eliminate: A ✗, B ✗, C ✓, D ✗", "C"),
        ([], "A. ❌\nB. ❌\nC. ✅\nD. ❌", "C"),
        ([], 'The user asks ... The answer is "C".', "C"),
        ([], "Final Answer: C.\n\nI hope this helps! Let me know if you have any questions about A, B or D.", "C"),
        ([], "The answer, then, is C.", "C"),
        ([], "Hence, option (C) is the answer.", "C"),
        ([], "Hence C.", "C"),
        ([], "c. 42", "C"),
        ([], "the correct answer is b) 42", "B"),
        ([], "(a)", "A"),
        ([], "a)", "A"),
        ([], "a", "A"),
        ([], "A: Yes", "A"),
        ([], "I don't know.", None),
        ([], "It depends.", None),
        ([], "Both.", None),
        ([], "All of the above.", None),
        (["x", "y", "z", "All of the above"], "All of the above.", "D"),
        (["Yes", "No"], "No, because the premise fails.", "B"),
        (["Yes", "No"], "Yes", "A"),
        (["Trophy", "suitcase"], "The trophy is too big, so the answer is trophy.", "A"),
        (["Trophy", "suitcase"], "It refers to the suitcase, since the trophy does not fit.", "B"),
        (["Ian", "Dennis"], "Option B (Dennis)", "B"),
        (["Ian", "Dennis"], "Dennis (Option B)", "B"),
        (["Ian", "Dennis"], "2", None),
        ([], "The correct letter is B", "B"),
        (
            [],
            "I am confident that the answer is option (B), because (A) contradicts the passage, (C) is "
            "never mentioned, and (D) is only partly right.",
            "B",
        ),
        ([], "Between (A) and (B), the passage favours (B).", "B"),
        ([], "Selected answer: B", "B"),
        ([], "Response: B", "B"),
        ([], "The solution is B", "B"),
        ([], "Output: B", "B"),
        ([], "Letter: B", "B"),
        ([], "→ B", "B"),
        ([], "✅ B", "B"),
        ([], "B ✅", "B"),
        ([], "Thus, the correct answer is not A, but rather C.", "C"),
        ([], "A and C can be eliminated. B is plausible but D is more accurate. Answer D", "D"),
        ([], "Choice A states X. Choice B states Y. Choice B is more consistent with the passage.", "B"),
        (
            [],
            "If A were correct, then x would be 3. But x is 5, so A is incorrect. If B were correct, x "
            "would be 5. Thus B is correct.",
            "B",
        ),
    ],
)
def test_whole_replies(options: list[str], reply: str, expected: str | None) -> None:
    assert read_choice(reply, "ABCDEFGHIJ"[: len(options) or 10], options) == expected


SCORER = MultipleChoiceAccuracy()


@each_case(
    ("example", "response", "expected"),
    [
        ({"correct_letter": "B"}, "The answer is B.", {"mc_accuracy": 1.0}),
        ({"correct_letter": "b"}, "B", {"mc_accuracy": 1.0}),
        ({"correct_letter": "(B)"}, "B", {"mc_accuracy": 1.0}),
        ({"correct_letter": "B"}, "C", {"mc_accuracy": 0.0}),
        ({"correct_letter": "B"}, None, {"mc_accuracy": 0.0}),
        ({"correct_letter": "B"}, "", {"mc_accuracy": 0.0}),
        ({"correct_letter": "M"}, "(M)", {"mc_accuracy": 1.0}),
        ({"correct_letter": "E", "choices": ["w", "x", "y", "z"]}, "E", {"mc_accuracy": 0.0}),
        ({"choices": ["Lyon", "Paris"], "answer": " paris "}, "B", {"mc_accuracy": 1.0}),
        ({"choices": ["Lyon", "Paris"], "answers": ["Paris", "Paname"]}, "Paris", {"mc_accuracy": 1.0}),
        ({"choices": ["Lyon", "Paris"], "answer": "B"}, "B", {"mc_accuracy": 1.0}),
        ({"choices": {"text": ["Lyon", "Paris"], "label": ["1", "2"]}, "answer": "Paris"}, "B", {"mc_accuracy": 1.0}),
        ({"choices": {"A": "Lyon", "B": "Paris"}, "correct_letter": "B"}, "It is Paris", {"mc_accuracy": 1.0}),
        ({"answer": "Paris"}, "B", {}),
        ({"choices": ["Lyon", "Paris"], "answer": "Rome"}, "B", {}),
        ({"choices": ["same", "Same"], "answer": "same"}, "A", {}),
        ({}, "B", {}),
    ],
)
def test_scores(example: dict[str, Any], response: str | None, expected: dict[str, float]) -> None:
    scores = SCORER.score(example, {"response": response})
    assert scores == expected
    assert bool(scores) or "correct_letter" in scores.reason  # type: ignore[attr-defined]


def test_details_tell_the_letter_that_was_read() -> None:
    assert SCORER.score({"correct_letter": "B"}, {"response": "Answer: C"}).details == {"letter": "C"}  # type: ignore[attr-defined]
    assert SCORER.score({"correct_letter": "B"}, {}).details == {"letter": None}  # type: ignore[attr-defined]


@pytest.mark.long
@each_case(
    "reply",
    [
        "A " * 100_000,
        "A, " * 50_000,
        "answer " * 30_000,
        "the answer is " * 10_000,
        "<think>" * 20_000,
        "\\boxed{" * 20_000,
        "**" * 50_000 + "B",
        "(" * 100_000,
        "option the letter is " * 5_000 + "B",
        "x" * 1_000_000,
        "\n" * 200_000,
        "<answer>" * 20_000,
        "the second option " * 20_000,
        "thirty-six or twelve " * 20_000,
        "- A. late (no)\n" * 20_000,
        "all of these but " * 20_000 + "C",
        "So the best step " * 10_000 + ": C",
    ],
)
def test_hostile_replies_take_no_time(reply: str) -> None:
    start = time.process_time()
    read_choice(reply, "ABCD", CITIES[:4])
    assert time.process_time() - start < 3
