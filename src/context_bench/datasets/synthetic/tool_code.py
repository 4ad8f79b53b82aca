"""A Python source file: functions that could be anyone's, and constants, one of which is asked for.

The file always parses, and no name is defined twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.datasets.synthetic.draw import Draw, Names, words
from context_bench.datasets.synthetic.fit import Stock, ToolOutput

VERBS = words("load merge filter group render parse validate sort index export trim collect")
NOUNS = words("order invoice session report contact payment message product event setting route")
ENDS = words("batch page table summary history map queue cache list stats view")
UNITS = ("LIMIT", "BUDGET_BYTES", "WINDOW_MS", "QUOTA", "OFFSET", "TIMEOUT_US")
PURPOSES = (
    "Kept apart so that it can be tested alone.",
    "Empty input gives an empty result.",
    "The order of the input is kept.",
    "Callers rely on the result being new.",
    "Does not touch the disk.",
    "Raises ValueError for anything else.",
)

BODIES: tuple[str, ...] = (
    """def {name}({noun}s: dict[str, float], limit: float = {number}) -> list[str]:
    \"\"\"{verb} every {noun} above the limit. {purpose}\"\"\"
    return sorted(key for key, value in {noun}s.items() if value > limit)""",
    """def {name}({noun}: str) -> str:
    \"\"\"{verb} one {noun}. {purpose}\"\"\"
    text = {noun}.strip().lower()
    if not text:
        raise ValueError("empty {noun}")
    return text.replace(" ", "_")""",
    """def {name}({noun}s: list[dict[str, str]], key: str = "id") -> dict[str, dict[str, str]]:
    \"\"\"{verb} each {noun} by its key. {purpose}\"\"\"
    result: dict[str, dict[str, str]] = {{}}
    for {noun} in {noun}s:
        if key not in {noun}:
            continue
        result[{noun}[key]] = {noun}
    return result""",
    """def {name}(path: str, attempts: int = {number}) -> str:
    \"\"\"{verb} the {noun} file, trying again when it is busy. {purpose}\"\"\"
    for attempt in range(attempts):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except BlockingIOError:
            time.sleep(attempt / {number})
    raise TimeoutError(path)""",
    """def {name}(values: list[int]) -> float:
    \"\"\"{verb} the {noun} values. {purpose}\"\"\"
    if not values:
        return 0.0
    middle = len(values) // 2
    return sorted(values)[middle] / {number}""",
    """def {name}(text: str) -> list[str]:
    \"\"\"{verb} {noun} lines. {purpose}\"\"\"
    return [line for line in text.splitlines() if line and not line.startswith("#")]""",
    """def {name}({noun}: object) -> str:
    \"\"\"{verb} the {noun} as JSON.\"\"\"
    return json.dumps({noun}, indent=2, sort_keys=True)""",
    """class {type}:
    \"\"\"State that is needed to {lower} the next {noun}. {purpose}\"\"\"

    def __init__(self, size: int = {number}) -> None:
        self.size = size
        self.items: list[str] = []

    def add(self, {noun}: str) -> bool:
        if len(self.items) >= self.size:
            return False
        self.items.append({noun})
        return True""",
)


class _Source:
    """Pieces of a source file in which every name is new."""

    def __init__(self, draw: Draw) -> None:
        self._draw, self._names, self._taken = draw, Names(draw), set[str]()

    def constant(self, near: tuple[str, str] | None = None) -> tuple[tuple[str, str], str, str]:
        """Return the words of a constant, its name and its value; `near` makes it one that resembles those."""
        pair = self._names.name() if near is None else self._names.other(near)
        name = "_".join((*pair, self._draw.pick(UNITS))).upper()
        while name in self._taken:
            name += "_" + self._draw.pick(UNITS)
        self._taken.add(name)
        return pair, name, self._names.value()

    def body(self) -> str:
        """Return a function or a class."""
        draw = self._draw
        verb, noun, name = self._name()
        return draw.pick(BODIES).format(
            name=name,
            type="".join(part.title() for part in name.split("_")),
            verb=verb.capitalize(),
            lower=verb,
            noun=noun,
            number=draw.between(2, 60),
            purpose=draw.pick(PURPOSES),
        )

    def _name(self) -> tuple[str, str, str]:
        draw = self._draw
        verb, noun = draw.pick(VERBS), draw.pick(NOUNS)
        name = f"{verb}_{noun}" if draw.chance(0.4) else f"{verb}_{noun}_{draw.pick(ENDS)}"
        while name in self._taken:
            name += "_" + draw.pick(ENDS)
        self._taken.add(name)
        return verb, noun, name


def tool_code(draw: Draw, _length: int, _variant: int) -> ToolOutput:
    """Make source code as filler and a constant to find in it."""
    source = _Source(draw)
    pair, name, value = source.constant()
    title = draw.pick(NOUNS)

    def filler() -> str:
        if draw.chance(0.15):
            return _write_assignment(*source.constant(pair)[1:])
        return source.body() + "\n\n\n"

    def scrap() -> str:
        if draw.chance(0.5):
            return _write_assignment(*source.constant(pair)[1:])
        return f"# {draw.pick(PURPOSES)}\n\n\n"

    return ToolOutput(
        stock=Stock(filler, scrap, "\n", lambda units: _render(units, title)),
        unit=_write_assignment(name, value),
        evidence=f"{name} = {value}",
        question=f"What is the value of {name} in this source file?",
        answer=value,
        layout="python",
    )


def _write_assignment(name: str, value: str) -> str:
    return f"{name} = {value}\n\n\n"


def _render(units: Sequence[str], title: str) -> str:
    return f'"""Helpers for {title} data."""\n\nimport json\nimport time\n\n\n' + "".join(units).rstrip() + "\n"
