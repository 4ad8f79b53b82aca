"""Which pieces of a reply become the program, and how they are joined to the prompt."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.sandbox.code_blocks import find_code_blocks
from context_bench.sandbox.inside.candidate import load

PROMPT = 'import math\n\ndef half(x):\n    return x / 2\n\ndef f(x):\n    """Doc.\n\n        more\n    """\n'


def result(reply: str, prompt: str = PROMPT, argument: object = 9) -> Any:
    space: dict[str, Any] = {"__name__": "solution"}
    load(find_code_blocks(reply), prompt, "f", space)
    return space["f"](argument)


@pytest.mark.parametrize(
    "reply",
    [
        "    return math.floor(half(x))\n",
        "\n    y = half(x)\n    return math.floor(y)\n",
        "return math.floor(half(x))",
        "y = half(x)\nreturn math.floor(y)",
        "y = half(x)\n    return math.floor(y)",  # the first line lost its indentation
        "  y = half(x)\n  return math.floor(y)",  # another indentation than the prompt's
        "\ty = half(x)\n\treturn math.floor(y)",
        "def f(x):\n    return math.floor(half(x))",
        PROMPT + "    return math.floor(half(x))\n",
        "f = lambda x: math.floor(half(x))",
        "Sure:\n```python\ndef f(x):\n    return math.floor(half(x))\n```\nDone.",
        "Sure:\n```python\n    return math.floor(half(x))\n```\nDone.",
        "Sure:\n```python\nreturn math.floor(half(x))\n```",
        "Here it is.\n\ndef f(x):\n    return math.floor(half(x))\n\nThis halves, you see.\n\nBye!",
        "    return math.floor(half(x))\n\nThis halves, you see.",
        "```python\ndef f(x):\n    return 1\n```\nBetter:\n```python\ndef f(x):\n    return math.floor(half(x))\n```",
        "```python\ndef g(x):\n    return math.floor(x)\n```\nand\n```python\ndef f(x):\n    return g(half(x))\n```",
        "```python\ndef f(x):\n    return g(half(x))\n```\nwith\n```python\ndef g(x):\n    return math.floor(x)\n```",
        "```python\ndef f(x):\n    return math.floor(half(x))\n```\nUse:\n```python\nprint(f(9))\nassert f(9) < 4\n```",
        "```python\nfrom __future__ import annotations\ndef f(x: Unknown):\n    return math.floor(half(x))\n```",
        "    return inner(x)\n\ndef inner(x):\n    return math.floor(half(x))\n",
        "    return math.floor(half(x))\n\nif __name__ == '__main__':\n    raise SystemExit\n",
        "    return math.floor(half(x))\n".replace("\n", "\r\n"),
    ],
)
def test_every_way_to_give_the_function(reply: str) -> None:
    assert result(reply) == 4


def test_a_prompt_without_a_body() -> None:
    assert result("    return x + 1\n", "def f(x):\n") == 10
    assert result("def f(x):\n    return x + 1\n", "def f(x):\n") == 10
    assert result("  return x + 1", "def f(x):\n  '''Doc.'''") == 10


def test_without_a_prompt_the_reply_is_the_program() -> None:
    assert result("```python\nimport math\ndef f(x):\n    return math.floor(x / 2)\n```", "") == 4


def test_a_program_without_the_entry_point_still_loads() -> None:
    space: dict[str, Any] = {}
    load(["x = 1\n"], "", "f", space)
    assert space["x"] == 1


@pytest.mark.parametrize("reply", ["I am sorry, I cannot help.", "```\n1 +\n```", "\0"])
def test_no_python_at_all(reply: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        load(find_code_blocks(reply), PROMPT, "f", {})


def test_blocks_that_fail_beside_the_program_do_not_matter() -> None:
    assert result("```python\nimport no_such_module\n```\n```python\ndef f(x):\n    return 4\n```") == 4
