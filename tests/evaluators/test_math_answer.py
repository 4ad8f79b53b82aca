"""Where replies say their answer: forms that models really use."""

from __future__ import annotations

import time

import pytest

from context_bench.evaluators.math.answer import final_answer, gold_text

REPLIES: list[tuple[str, str]] = [
    ("", ""),
    ("   \n", ""),
    ("18", "18"),
    (r"\frac{1}{2}", r"\frac{1}{2}"),
    ("x = 5", "x = 5"),
    (r"So it is \boxed{42}.", "42"),
    (r"\boxed{1} no, wait: \boxed{\frac{\sqrt{3}}{2}}", r"\frac{\sqrt{3}}{2}"),
    (r"$\boxed{\{1, 2\}}$", r"\{1, 2\}"),
    (r"\boxed 7", "7"),
    (r"\fbox{7}", "7"),
    (r"\boxed{\boxed{7}}", "7"),
    (r"cut off: \boxed{7", "7"),
    (r"\boxed{} The answer is 7", "7"),
    (r"\boxed{3} and \boxed{5}", "3, 5"),
    (r"First \boxed{3}. Then, after much work, \boxed{5}", "5"),
    ("a\n#### 1,234", "1,234"),
    ("9 * 2 = 18 #### 18", "18"),
    ("#### Step 1: add\n3 + 4 = 7\n#### Step 2: double\n7 * 2 = 14 eggs", "14"),
    ("#### 1. Add\n3 + 4 = 7\n#### 2. Double it\nThe answer is 14.", "14"),
    ("The answer is 3.5.", "3.5"),
    ("The answer is $18.", "$18"),
    ("The answer is $x = 5$, since 2 + 3 = 5.", "x = 5"),
    ("The answer is $3$ and $5$.", "3, 5"),
    ("The answer is 17 because 18 - 1 = 17", "17"),
    ("The answer is not 7.", ""),
    ("The answer is either 3 or 4.", "3 or 4"),
    ("**Final Answer:**\n\n\\[ 18 \\]\nHope this helps!", "18"),
    ("**Answer:** 18 dollars\n\nLet me know if you have 2 more.", "18 dollars"),
    ("Answer: Janet sells 16 - 3 - 4 = 9 eggs a day.\nShe makes 9 * 2 = $18.", "$18"),
    ("The answer to the first question, which is easy, is 18.", "18"),
    ("A: 18", "18"),
    ('```json\n{"reasoning": "3 + 4", "answer": "\\\\frac{7}{2}"}\n```', r"\frac{7}{2}"),
    ('{"answer": 7}', "7"),
    ("Die Antwort lautet 18.", "18"),
    ("La réponse finale est 1 200.", "1 200"),
    ("La respuesta es 18.", "18"),
    ("Ответ: 18 рублей", "18 рублей"),
    ("答案是18。", "18"),
    ("答え：18ドル", "18ドル"),
    ("คำตอบคือ 18", "18"),
    ("উত্তর: ১৮", "18"),
    ("Jibu ni 18.", "18"),
    ("So she makes 18 dollars every day.", "18"),
    ("She makes $16 + $2 = $18 every day.", "$18"),
    ("It is -$10.", "-$10"),
    ("from 20-10", "20-10"),
    ("It costs 3/4 of that.", "3/4"),
    ("That is 25% of it.", "25%"),
    ("The point is (3, -5).", "(3, -5)"),
    ("The distance is 2√5.", r"2\sqrt{5}"),
    (r"So \(x = \frac{3}{4}\) holds.", r"\frac{3}{4}"),
    (r"So we have \[ x = 5 \quad \text{or} \quad x = -3 \]", r"x = 5 \quad \text{or} \quad x = -3"),
    ("x = 16 is the only solution, since x = 1 fails.", "16"),
    ("There are 3 apples.\nStep 2: done", "3"),
    ("The area is 18 cm².", "18"),
    ("I cannot answer that, there are 99 of them.", ""),
    ("There are 99 of them. Which one do you mean?", ""),
    ("There are 99 of them. What else can I help with?", "99"),
    ("He can't buy half a pack, so he needs 4 packs.", "4"),
    ("The correct answer is B: 18", "B: 18"),
    ("<think>It may be 17. \\boxed{17}</think>\nThe answer is 18.", "18"),
    ("it may be 17 \\boxed{17}</think>\n18", "18"),
    ("<think>So the answer is 18.</think>", "18"),
    ("<think>So the answer is 18.", "18"),
]


@pytest.mark.parametrize(("reply", "answer"), REPLIES, ids=range(len(REPLIES)))
def test_final_answer(reply: str, answer: str) -> None:
    assert final_answer(reply) == answer


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("18", "18"),
        ("9 * 2 = <<9*2=18>>18\n#### 18", "18"),
        (r"Thus $x = \boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (" 5 ", "5"),
    ],
)
def test_a_gold_may_be_a_whole_solution(gold: str, text: str) -> None:
    assert gold_text(gold) == text


@pytest.mark.parametrize(
    "piece", ["{", r"\boxed{", r"\boxed{}", "1,", "1", "$", r"\[", "#### x\n", "the answer is ", "answer to ", "\n",
              "(1,", "*", "٤", "1万", "<think>"]
)  # fmt: skip
def test_a_reply_of_repetition_is_read_in_linear_time(piece: str) -> None:
    started = time.perf_counter()
    final_answer(piece * (200_000 // len(piece)))
    assert time.perf_counter() - started < 3
