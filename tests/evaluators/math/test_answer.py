"""Where replies say their answer: forms that models really use."""

from __future__ import annotations

import time

import pytest

from banks import each_case
from context_bench.evaluators import MathEquivalence
from context_bench.evaluators.math.answer import find_final_answer, read_gold_text, read_parts

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
    # ratios and clock times are wholes
    ("The ratio is **3:4**.", "3:4"),
    ("So it is 2 : 3 : 5.", "2 : 3 : 5"),
    ("The ratio of cats to dogs is 7 to 3.", "7:3"),
    ("The bell rings at 10:45.", "10:45"),
    ("On day 1: 30 eggs.", "30"),
    # exact, then approximate
    (r"So $$P = \frac{4}{12} = \frac13 \approx 0.33$$", r"\frac13 \approx 0.33"),
    ("We get x = e² ≈ 7.389.", r"e^2 \approx 7.389"),
    ("It is $5\\sqrt2$, or about 7.07.", r"5\sqrt2 \approx 7.07"),
    ("That makes about 7.07.", "7.07"),
    # number words and minus
    ("The temperature is now minus 5.", "-5"),
    ("We take 10 minus 7.", "7"),
    ("The 12 crates hold twelve hundred oranges.", "1200"),
    ("There are zero apples left.", "0"),
    ("Sam pays $18 for the two shirts.", "$18"),
    ("12 passed, which is two thirds of the class.", "12"),
    ("一共有十八个苹果。", "18"),
    # other shapes in prose
    ("So x < 3 holds.", "x < 3"),
    ("Hence -2 < x ≤ 6.", r"-2 < x \leq  6"),
    ("She needs 2 1/2 cups.", "2 1/2"),
    ("AC = 2*sqrt(7)", r"2*\sqrt{7}"),
    ("It is 0.8333...", r"0.8\overline{3}"),
    (r"So $x = 5$ and $x = -2$.", "5, -2"),
    (r"So $x \le 0$ or $x \ge 5$.", r"x \le 0 \text{ or } x \ge 5"),
    (r"So $x = 6/2$, $x = 3$.", "3"),
    ("L'aire vaut 9/2, soit 4,5 cm².", "4.5"),
    # boxes
    (r"\boxed{7} \boxed{8}", "8"),
    ("\\boxed{6}\n\nThe perimeter is 24.\n\n**Final answer: 24**", "24"),
    ("\\boxed{48}\n\nWait: with the tip it is 56.\n\nCorrect answer: **$56**", "$56"),
    ("\\boxed{30}\n\n**Check:** 30/2 = 15", "30"),
    ("\\boxed{7}\n\n#### 3. Verify\nFine.", "7"),
    ("\\boxed{20}\n\nThe answer is reasonable.", "20"),
    # bold
    ("The minimum is **-12**, attained at x = 3.", "-12"),
    ("Two days after Sunday comes **Tuesday**.", "Tuesday"),
    ("Total = **5 apples** + **7 pears** = 12 fruit", "12"),
    ("Total cost: **$18**\n**Note:** without the tip", "$18"),
    # what follows the answer
    ("It is 42.\n\nWant me to check this with 8 boxes?", "42"),
    ("If you want the total, it is 18.", "18"),
    ("It is 20 cm (and the length is 60 cm).", "20"),
    ("There were 20. (After 5 left there were 15.)", "15"),
    ("### Answer\n$w = 20$ cm (and the length is 60 cm).", "w = 20"),
    ("The answer is two dozen, i.e. 24 eggs.", "24"),
    ("The answer is either 14 or 16, depending on the reading.", "14 or 16"),
    # no answer
    ("We subtract 5 from both sides and dividing", ""),
]


@each_case(("reply", "answer"), REPLIES, ids=range(len(REPLIES)))
def test_final_answer(reply: str, answer: str) -> None:
    assert find_final_answer(reply) == answer


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
    assert read_gold_text(gold) == text


@pytest.mark.long
@each_case(
    "piece", ["{", r"\boxed{", r"\boxed{}", "1,", "1", "$", r"\[", "#### x\n", "the answer is ", "answer to ", "\n",
              "(1,", "*", "٤", "1万", "<think>", "**", "x < ", "a (b c) ", "one ", "1:", "0.33...", "十", "sqrt(",
              "$x=1$ and "]
)  # fmt: skip
def test_a_reply_of_repetition_is_read_in_linear_time(piece: str) -> None:
    started = time.process_time()
    find_final_answer(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("gold", "reply", "right"),
    [
        ("4, 9", "(a) The smaller is **4**.\n(b) The larger is **9**.", True),
        ("4, 9", "(a) The smaller is **4**.\n(b) The larger is **8**.", False),
        ("4, 9", "1. $\\boxed{4}$\n\n2. $\\boxed{9}$", True),
        ("(3,-4)", "The solution is:\n- $x = 3$\n- $y = -4$", True),
        ("(3,-4)", "The solution is:\n- $x = 3$\n- $y = 4$", False),
        ("9", "(a) 4\n(b) 9", True),
    ],
)
def test_items_are_the_parts_of_an_answer(gold: str, reply: str, right: bool) -> None:
    assert MathEquivalence().score({"answer": gold}, {"response": reply}) == {"math_equiv": float(right)}


def test_as_many_items_as_parts_or_none() -> None:
    assert read_parts("- 1\n- 2\n- 3", 3) == ["1", "2", "3"]
    assert read_parts("- 1\n- 2\n- 3", 2) == []
    assert read_parts("- 1\n- 2\nSo it is 3.", 2) == []
