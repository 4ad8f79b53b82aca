"""MathEquivalence against math-verify on pairs of gold and reply, and the verdicts where the two differ on purpose."""

from __future__ import annotations

import logging

import pytest

from banks import each_case
from context_bench.evaluators import MathEquivalence
from context_bench.evaluators.math.answer_equality import compare

PAIRS = r"""
42 | \boxed{42}
42 | \boxed{43}
42 | The answer is $\boxed{42}$.
-7 | $\boxed{-7}$
-7 | $\boxed{7}$
1,234 | \boxed{1234}
1234 | \boxed{1,234}
1{,}234 | \boxed{1234}
12 | \boxed{1,2}
1,2 | \boxed{12}
1,2 | \boxed{2,1}
1,2 | \boxed{1,3}
1,2,3 | \boxed{3,1,2}
\frac{1}{2} | $0.5$
\frac{1}{2} | \boxed{\frac{2}{4}}
\frac{1}{2} | \boxed{\dfrac{1}{2}}
\frac{1}{2} | \boxed{\tfrac12}
\frac12 | \boxed{1/2}
\frac{1}{2} | \boxed{\frac{1}{3}}
\frac{1}{3} | \boxed{0.333333}
\frac{1}{3} | \boxed{0.333}
-\frac{3}{4} | \boxed{\frac{-3}{4}}
-\frac{3}{4} | \boxed{-0.75}
-\frac{3}{4} | \boxed{0.75}
\frac{7}{2} | \boxed{3\frac{1}{2}}
3.5 | \boxed{3\frac{1}{2}}
3\frac{1}{2} | \boxed{\frac{7}{2}}
50\% | \boxed{50\%}
50\% | \boxed{50}
50\% | \boxed{0.5}
50\% | \boxed{5}
0.5 | \boxed{50\%}
50 | \boxed{50\%}
18 | \boxed{\$18}
\$18 | \boxed{18}
18 | \boxed{18.00}
18.5 | \boxed{18.50}
18.5 | \boxed{18.05}
0.1 | \boxed{.1}
10\text{ cm} | \boxed{10}
10 | \boxed{10\text{ cm}}
10 | \boxed{10\text{ cm}^2}
10\text{ cm} | \boxed{11\text{ cm}}
90^\circ | \boxed{90}
90 | \boxed{90^\circ}
90 | \boxed{90^{\circ}}
90 | \boxed{80^{\circ}}
1500 | \boxed{1.5 \times 10^3}
1.5 \times 10^3 | \boxed{1500}
1.5 \times 10^{-3} | \boxed{0.0015}
1.5 \times 10^3 | \boxed{1.5 \times 10^4}
1024 | \boxed{2^{10}}
2^{10} | \boxed{1024}
2^{10} | \boxed{1023}
5 | \boxed{2+3}
5 | \boxed{2+4}
6 | \boxed{2 \cdot 3}
6 | \boxed{2 \times 3}
4 | \boxed{\sqrt{16}}
\sqrt{2} | \boxed{\sqrt2}
2\sqrt{3} | \boxed{\sqrt{12}}
2\sqrt{3} | \boxed{3\sqrt{2}}
\sqrt{2} | \boxed{1.414214}
\sqrt{2} | \boxed{1.41}
\frac{\sqrt{2}}{2} | \boxed{\frac{1}{\sqrt{2}}}
\frac{\sqrt{2}}{2} | \boxed{\frac{1}{2}}
\frac{\pi}{2} | \boxed{\pi/2}
\frac{\pi}{2} | \boxed{0.5\pi}
\frac{\pi}{2} | \boxed{\frac{\pi}{3}}
2\pi | \boxed{2 \pi}
2\pi | \boxed{\pi 2}
2\pi | \boxed{\pi}
12\pi | \boxed{37.699112}
12\pi | \boxed{37.7}
e^2 | \boxed{e^{2}}
x^2-1 | \boxed{(x-1)(x+1)}
(x-1)(x+1) | \boxed{x^2 - 1}
x^2-1 | \boxed{x^2+1}
x^2+2x+1 | \boxed{(x+1)^2}
(x+1)^2 | \boxed{(1+x)^2}
2x+3 | \boxed{3+2x}
2x+3 | \boxed{2x+4}
2x+3 | \boxed{2y+3}
\frac{x}{2} | \boxed{0.5x}
\frac{x+1}{x-1} | \boxed{\frac{1+x}{x-1}}
\frac{x+1}{x-1} | \boxed{\frac{x-1}{x+1}}
5 | \boxed{x = 5}
x=5 | \boxed{5}
x=5 | \boxed{x=5}
x=5 | \boxed{x=6}
y=2x+3 | \boxed{2x+3=y}
y=2x+3 | \boxed{y=2x+4}
y=2x+3 | \boxed{2x+3}
2x+3 | \boxed{y=2x+3}
(1,2) | \boxed{(1,2)}
(1,2) | \boxed{(2,1)}
(1,2) | \boxed{(1, 2)}
(1,2) | \boxed{\left(1,2\right)}
(1,2,3) | \boxed{(1,2,3)}
(1,2,3) | \boxed{(3,2,1)}
\left(\frac{1}{2},3\right) | \boxed{(0.5,3)}
(3,\frac{\pi}{2}) | \boxed{\left(3, \frac{\pi}{2}\right)}
(3,\frac{\pi}{2}) | \boxed{\left(3, \frac{\pi}{3}\right)}
(3,\frac{\pi}{2}) | \boxed{\left(3, \pi/2\right)}
[1,2] | \boxed{[1,2]}
[1,2] | \boxed{(1,2)}
[1,2) | \boxed{[1,2)}
[1,2) | \boxed{(1,2]}
[1,2) | \boxed{[1,2]}
(1,2) | \boxed{[1,2]}
(-\infty,2) | \boxed{(-\infty, 2)}
(-\infty,2) | \boxed{(-\infty, 2]}
(-\infty,2)\cup(3,\infty) | \boxed{(-\infty, 2) \cup (3, \infty)}
(-\infty,2)\cup(3,\infty) | \boxed{(3,\infty)\cup(-\infty,2)}
(-\infty,2)\cup(3,\infty) | \boxed{(-\infty,2]\cup[3,\infty)}
[0,1]\cup[2,3] | \boxed{[0,1]\cup[2,4]}
x \in [1,2] | \boxed{[1,2]}
[1,2] | \boxed{x \in [1,2]}
\{1,2\} | \boxed{\{2,1\}}
\{1,2\} | \boxed{\{1,3\}}
\{1,2,3\} | \boxed{\{1,2\}}
\{1,2\} | \boxed{1,2}
1,2 | \boxed{\{1,2\}}
\{\sqrt{2},-\sqrt{2}\} | \boxed{\{-\sqrt{2},\sqrt{2}\}}
\pm 3 | \boxed{3,-3}
3,-3 | \boxed{\pm 3}
\pm 3 | \boxed{3}
\pm\sqrt{2} | \boxed{\sqrt{2},-\sqrt{2}}
1 \pm \sqrt{2} | \boxed{1+\sqrt{2}, 1-\sqrt{2}}
x=1 \text{ or } x=2 | \boxed{1,2}
1,2 | \boxed{x=1 \text{ or } x=2}
5\text{ and }6 | \boxed{5,6}
\emptyset | \boxed{\emptyset}
\emptyset | \boxed{\{\}}
\text{even} | \boxed{\text{even}}
\text{even} | \boxed{\text{odd}}
\text{even} | \boxed{even}
\text{Evelyn} | \boxed{\text{Evelyn}}
\text{Evelyn} | \boxed{\text{Carla}}
\text{C} | \boxed{C}
\text{(C)} | \boxed{C}
\text{C} | \boxed{(C)}
\text{C} | \boxed{D}
\begin{pmatrix} 1 \\ 2 \end{pmatrix} | \boxed{\begin{pmatrix} 1 \\ 2 \end{pmatrix}}
\begin{pmatrix} 1 \\ 2 \end{pmatrix} | \boxed{\begin{bmatrix} 1 \\ 2 \end{bmatrix}}
\begin{pmatrix} 1 \\ 2 \end{pmatrix} | \boxed{\begin{pmatrix} 2 \\ 1 \end{pmatrix}}
\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} | \boxed{\begin{pmatrix}1&2\\3&4\end{pmatrix}}
\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} | \boxed{\begin{pmatrix}1&2\\3&5\end{pmatrix}}
\begin{pmatrix} 1/2 \\ 2 \end{pmatrix} | \boxed{\begin{pmatrix} 0.5 \\ 2 \end{pmatrix}}
3+4i | \boxed{4i+3}
3+4i | \boxed{3-4i}
i | \boxed{i}
-i | \boxed{i}
\frac{3}{2}+\frac{1}{2}i | \boxed{\frac{3+i}{2}}
\cos 2x | \boxed{\cos(2x)}
\sin^2 x + \cos^2 x | \boxed{1}
1 | \boxed{\sin^2 x + \cos^2 x}
\tan x | \boxed{\frac{\sin x}{\cos x}}
\log_2 8 | \boxed{3}
\ln 2 | \boxed{\ln(2)}
\ln 2 | \boxed{\ln 3}
\binom{5}{2} | \boxed{10}
10 | \boxed{\binom{5}{2}}
5! | \boxed{120}
120 | \boxed{5!}
120 | \boxed{6!}
x > 1 | \boxed{x > 1}
x > 1 | \boxed{x \ge 1}
x \leq 2 | \boxed{x \le 2}
1 < x < 2 | \boxed{1 < x < 2}
11_2 | \boxed{11_2}
2516_8 | \boxed{2516_8}
2516_8 | \boxed{2516}
10000000 | \boxed{10^7}
1000000007 | \boxed{1000000008}
0.0001 | \boxed{0.0002}
\frac{2}{3} | The answer is $\frac{2}{3}$.
\frac{2}{3} | The final answer is $\frac{4}{6}$.
72 | So the total is 72.
72 | So the total is 73.
x^{2}y | \boxed{yx^2}
\sqrt[3]{8} | \boxed{2}
\sqrt[3]{2} | \boxed{2^{1/3}}
|x| | \boxed{|x|}
7.0 | \boxed{7}
\frac{10}{4} | \boxed{2.5}
a+b | \boxed{b+a}
n(n+1)/2 | \boxed{\frac{n(n+1)}{2}}
\frac{n(n+1)}{2} | \boxed{\frac{n^2+n}{2}}
6\text{ hours} | \boxed{6\text{ hours}}
10\% | \boxed{0.1}
200\% | \boxed{2}
-\infty | \boxed{-\infty}
(1,2) | \boxed{\{1,2\}}
\infty | \boxed{-\infty}
"""

# Where we differ from math-verify: gold, reply, our verdict, and why.
DIFFERENCES = [
    (
        r"0.\overline{3}",
        r"\boxed{\frac{1}{3}}",
        1.0,
        "a bar means that the digits repeat; math-verify finds the two different",
    ),
    (r"\frac{1}{3}", r"\boxed{0.\overline{3}}", 1.0, "the same the other way round"),
    (
        r"\begin{pmatrix} -2 \\ 7 \end{pmatrix}",
        r"\boxed{\begin{pmatrix} -2 \\ -7 \end{pmatrix}}",
        0.0,
        "a sign in a row of its own counts",
    ),
    ("1.2e5", r"\boxed{120000}", 1.0, "scientific notation; math-verify reads e as Euler's number"),
    ("1 234", r"\boxed{1234}", 1.0, "a space parts thousands; math-verify reads a mixed number"),
    (
        "5",
        r"\boxed{5.0000001}",
        1.0,
        "a millionth passes where a decimal point is written; math-verify rounds only the other side",
    ),
    (
        "18",
        "Janet makes $16 + $2 = $18 every day, from 9 eggs.",
        0.0,
        "the last number counts, as in GSM8K's own flexible rule",
    ),
]


def ours(gold: str, reply: str) -> float:
    return MathEquivalence().score({"answer": gold}, {"response": reply})["math_equiv"]


@pytest.mark.long
def test_agrees_with_math_verify() -> None:
    math_verify = pytest.importorskip("math_verify")
    logging.disable(logging.WARNING)
    wrong = []
    pairs = [line.split(" | ") for line in PAIRS.strip().splitlines()]
    for gold, reply in pairs:
        parsed = [math_verify.parse(text, parsing_timeout=None) for text in (f"${gold}$", reply)]
        theirs = float(math_verify.verify(*parsed, timeout_seconds=None))
        if ours(gold, reply) != theirs:
            wrong.append((gold, reply, theirs))
    logging.disable(logging.NOTSET)
    assert len(pairs) >= 150
    assert wrong == []


@pytest.mark.parametrize(("gold", "reply", "verdict", "why"), DIFFERENCES, ids=[each[3] for each in DIFFERENCES])
def test_differs_on_purpose(gold: str, reply: str, verdict: float, why: str) -> None:
    pytest.importorskip("math_verify")
    assert ours(gold, reply) == verdict, why


@each_case(
    ("gold", "answer", "verdict"),
    [
        ("18", "18 dollars", True),
        ("18", "19", False),
        ("18", "", False),
        ("18", "no idea", False),
        ("18", "Janet makes 18 dollars", True),
        ("18", "18 of 20 eggs", False),
        ("18", "(C) 18", True),
        ("18", "B: 18", True),
        ("12", "1,2", False),
        ("1,2", "12", False),
        ("1,2", "2 and 1", True),
        ("1,2", "1, 2, and 3", False),
        ("x=1,x=2", "1 or 2", True),
        (r"\{1,2\}", "{2, 1}", True),
        (r"\{1,1\}", r"\{1,2\}", False),
        ("(1,2)", "(2,1)", False),
        ("(1,2)", "[1,2]", False),
        ("[1,2)", "(1,2]", False),
        ("((1,2),3)", "((1,2),3.0)", True),
        (r"(-\infty, 2) \cup (3, 5]", r"(3,5]\cup(-\infty,2)", True),
        (r"(-\infty, 2) \cup (3, 5]", r"(3,5)\cup(-\infty,2)", False),
        ("5", "x = 2 + 3 = 5", True),
        ("f(x) = 5", "5", True),
        (r"x \in [1,2]", "[1,2]", True),
        ("Evelyn", "evelyn", True),
        ("Evelyn", "Carla", False),
        ("yes", "no", False),
        (r"\text{(B)}", "B", True),
        # ratios and clock times
        ("3:4", "3 : 4", True),
        ("3:4", "3 to 4", True),
        ("3:4", "4:3", False),
        ("3:4", r"\frac{3}{4}", True),
        ("4", "3:4", False),
        ("3", "3:4", False),
        ("10:45", "10:45 a.m.", True),
        ("10:45 PM", "10:45 AM", False),
        # units after symbols
        (r"25\pi", r"25\pi \text{ cm}^2", True),
        (r"25\pi", r"25\pi\,\mathrm{cm}^2", True),
        (r"6\sqrt{3}", r"6\sqrt{3}\ \text{m}", True),
        (r"25\pi", "25π square inches", True),
        # exact, then approximate
        (r"\frac{1}{3}", r"\frac13 \approx 0.33", True),
        ("0.33", r"x = \frac13 \approx 0.33", True),
        (r"\frac{1}{3}", r"\frac27 \approx 0.29", False),
        ("3.14", r"x \approx 3.14", True),
        # number words
        ("-8", "negative eight", True),
        ("42", "forty-two loaves", True),
        ("9", "девять", True),
        ("7", "eight", False),
        # intervals and inequalities
        ("[2,5)", r"2 \leq x < 5", True),
        ("[2,5)", r"2 < x \leq 5", False),
        (r"2 \leq x < 5", "[2,5)", True),
        (r"(-\infty,3)", "x < 3", True),
        ("x > 3", r"x \in (3, \infty)", True),
        ("x > 3", "3 < x", True),
        ("x > 3", r"[3, +\infty)", False),
        (r"(-\infty,-1)\cup(4,\infty)", r"x < -1 \text{ or } x > 4", True),
        (r"(-\infty,-1)\cup(4,\infty)", "-1 < x < 4", False),
        (r"(1,3)", r"x > 1 \text{ and } x < 3", True),
        # repeating decimals
        (r"\frac{2}{11}", r"0.\overline{18}", True),
        (r"\frac{2}{11}", r"0.1\overline{8}", False),
        (r"\frac{5}{6}", "0.8333...", True),
        (r"0.\overline{27}", r"0.\overline{72}", False),
        # matrices
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"A = \begin{bmatrix}1&2\\3&4\end{bmatrix}", True),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", False),
        (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", False),
        # lists
        (r"\pm 3", "x = 3, x = -3", True),
        ("3", r"\pm 3", False),
        ("(3,-4)", "x = 3, y = -4", True),
        ("(3,-4)", "x = -4, y = 3", False),
        (r"\emptyset", r"\varnothing", True),
        ("1250", r"1,\! 250", True),
        (r"\sqrt{12}", r"2\sqrt{3}", None),
        ("x^2-1", "(x-1)(x+1)", None),
        ("x^{2}y", "yx^2", None),
        ("5", r"\boxed{" + "1," * 5000, False),
    ],
)
def test_plain_reading(gold: str, answer: str, verdict: bool | None) -> None:
    assert compare(gold, answer) is verdict
