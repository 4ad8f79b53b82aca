"""`agent-trace`: an agent's history of tool calls, in which an older result contains the value for the next call.

The agent reads source files, queries records and searches logs. It makes a plan and updates it, reads some things
twice, and mends calls that failed. All other results state the same kind of fact about other names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from context_bench.datasets.synthetic.building import (
    Draw,
    Fact,
    ToolOutput,
    assemble,
    check_cell,
    check_choice,
    check_whole,
    choose_depth,
    make_example,
    measure_depths,
    phrases,
    span,
    tokens,
    words,
)
from context_bench.datasets.synthetic.json_logs import CODE_NOUNS, KINDS, SERVICES, VERBS
from context_bench.utils.tokens import count_value
from context_bench.wire.prompts import Prompt

Message = dict[str, Any]

MIN_RESULT_TOKENS = 100  # tokens of a file, a page of records or a page of logs
FLOOR, FLOOR_PER_TURN = 400, 180  # tokens that a history needs at least

PATTERN = words("plan read read failed mended again read read")
"""What the turns of a history do, in a repeated cycle; the turn with the evidence is added to these turns."""

SYSTEM = (
    "You are an agent that works on a task step by step, with the tools on offer. Keep the plan up to date. When you "
    "are asked for a value, hand it in with submit_value."
)
TASK = "Find out what went wrong in the {noun} {end}. Look at the sources, the records and the logs. Make a plan first."
STEPS = phrases(
    """read the sources; query the records; search the logs; compare what was found; write down the cause;
    hand in the value"""
)
REMARKS = phrases("I look at this next.; That may tell more.; One more place to look.; This should hold the details.")
TABLES = words("primary archive staging mirror inbox")
ENDS = words("import export sync backfill rollout")

FIRST_ARGUMENTS = {"read_file": "path", "query_records": "table", "search_logs": "service"}
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
_PLAN = {"type": "array", "items": {"type": "object", "properties": {"step": _TEXT, "status": _TEXT}}}


def _declare(name: str, description: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    _declare("update_plan", "Write down the steps of the plan, each with its status.", steps=_PLAN),
    _declare("read_file", "Read a source file.", path=_TEXT),
    _declare("query_records", "Query a page of the records of a table.", table=_TEXT, page=_NUMBER),
    _declare("search_logs", "Search a page of the logs of a service.", service=_TEXT, page=_NUMBER),
    _declare("submit_value", "Hand in the value that was asked for.", value=_TEXT),
]


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any]


@dataclass
class Read:
    """A file or another source that is read, once or several times; the size of the result is chosen last."""

    call: Call
    tool: ToolOutput | None = None
    kind: str = ""
    weight: float = 1.0
    messages: list[Message] = field(default_factory=list)


def agent_trace(
    *, length: int = 12_000, turns: int = 16, age: int | None = None, n: int = 20, seed: int = 0, kind: str = "mixed"
) -> Iterator[dict[str, Any]]:
    """Yield histories of `turns` calls with their results (`length` tokens together) that end with a question.

    The answer is in one result, `age` turns before the end (1 is the newest result); without `age`, spread evenly from
    the newest to the oldest. The next action is the call that submits the answer, given in `ground_truth`. `kind` is
    the kind of result that contains the answer, as for `json-logs`.
    """
    check_whole("turns", turns, 2)
    check_cell(length, FLOOR + FLOOR_PER_TURN * turns, n, seed, what=f"turns={turns}")
    if age is not None:
        check_whole("age", age, 1, turns - 1)
    check_choice("kind", kind, (*KINDS, "mixed"))
    return (_make_trace(length, turns, age, index, n, seed, kind) for index in range(n))


def _make_trace(length: int, turns: int, age: int | None, index: int, n: int, seed: int, kind: str) -> dict[str, Any]:
    actual = list(KINDS)[index % 3] if kind == "mixed" else kind
    chosen = age if age is not None else turns - 1 - round((turns - 2) * choose_depth(None, index, n))
    draw = Draw("agent-trace", kind, length, turns, chosen, seed, index)
    wanted = KINDS[actual](draw, length // turns, index // 3)
    question = wanted.question.replace("this source file", "the sources")
    history = _History(draw, wanted, actual)
    roles = [PATTERN[place % len(PATTERN)] for place in range(turns - 1)]
    for role in [*roles[: turns - chosen], "evidence", *roles[turns - chosen :]]:
        history.add(role)
    messages = [*history.messages, {"role": "user", "content": question}]
    history.fill(length - sum(count_value(message, tokens) for message in messages))
    context = "\n\n".join(Prompt(messages=messages[:-1]).texts())
    place = span(context, wanted.evidence)
    tag = f"a{chosen}" if age is not None else f"a{chosen}-of{n}"
    meta: dict[str, Any] = {"length": length, "turns": turns, "age": chosen, "seed": seed, "kind": actual}
    meta |= {"depth": measure_depths(context, [place])[0], "layout": wanted.layout}
    more: dict[str, Any] = {"evidence": [place], "turns": messages, "tools": TOOLS}
    more["ground_truth"] = [{"submit_value": {"value": [wanted.answer]}}]
    cell = f"{kind}-{length}-t{turns}-{tag}-s{seed}-{index:03d}"
    return make_example("agent-trace", cell, context, question, [wanted.answer], meta, **more)


class _History:
    """The messages of a history; the results of reads are empty until `fill` divides the tokens among them."""

    def __init__(self, draw: Draw, wanted: ToolOutput, kind: str) -> None:
        self._draw, self._wanted, self._kind = draw, wanted, kind
        self._stem = wanted.evidence[: wanted.evidence.index(wanted.answer)]
        self._reads: list[Read] = []
        self._made = self._done = 0
        self._failed: Call | None = None
        task = TASK.format(noun=draw.pick(CODE_NOUNS), end=draw.pick(ENDS))
        self.messages: list[Message] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]

    def add(self, role: str) -> None:
        """Add a turn: the message of the assistant with its call, and the result."""
        draw = self._draw
        if role == "plan":
            steps = [{"step": step, "status": "done" if k < self._done else "open"} for k, step in enumerate(STEPS)]
            said = "The plan so far." if self._done else "First a plan."
            result = f"Saved: {self._done} of {len(STEPS)} steps done."
            self._append(said, Call("update_plan", {"steps": steps}), result)
            self._done = min(self._done + 1, len(STEPS) - 1)
        elif role == "failed":
            self._failed = call = self._make_call(draw.pick(list(KINDS)))
            key = FIRST_ARGUMENTS[call.name]
            wrong = f"old_{call.arguments[key]}"
            result = f"Error: there is no {key} {wrong!r}. Did you mean {call.arguments[key]!r}?"
            self._append(draw.pick(REMARKS), Call(call.name, {**call.arguments, key: wrong}), result)
        elif role == "again":
            others = [read for read in self._reads if read.tool is not self._wanted]
            self._read(draw.pick(others), "I look at that again.")
        elif role == "evidence":
            self._read(self._start(self._make_call(self._kind), self._kind, self._wanted), draw.pick(REMARKS))
        else:
            call = self._failed if role == "mended" and self._failed else self._make_call(draw.pick(list(KINDS)))
            said = "The name was wrong: once more." if role == "mended" else draw.pick(REMARKS)
            self._read(self._start(call, _find_kind(call)), said)

    def _make_call(self, kind: str) -> Call:
        """Make a call that no other turn makes."""
        draw, self._made = self._draw, self._made + 1
        if kind == "code":
            return Call("read_file", {"path": f"src/{draw.pick(VERBS)}_{draw.pick(CODE_NOUNS)}_{self._made}.py"})
        if kind == "json":
            return Call("query_records", {"table": draw.pick(TABLES), "page": self._made})
        return Call("search_logs", {"service": draw.pick(SERVICES), "page": self._made})

    def _start(self, call: Call, kind: str, tool: ToolOutput | None = None) -> Read:
        self._reads.append(Read(call, tool, kind, 0.5 + self._draw.fraction()))
        return self._reads[-1]

    def _read(self, read: Read, said: str) -> None:
        read.messages.append(self._append(said, read.call, ""))

    def _append(self, said: str, call: Call, result: str) -> Message:
        """Append a call and its result; return the result."""
        identity = f"call_{len(self.messages) // 2}"
        arguments = json.dumps(call.arguments, separators=(",", ":"))
        function = {"name": call.name, "arguments": arguments}
        made = [{"id": identity, "type": "function", "function": function}]
        self.messages.append({"role": "assistant", "content": said, "tool_calls": made})
        self.messages.append({"role": "tool", "tool_call_id": identity, "content": result})
        return self.messages[-1]

    def fill(self, room: int) -> None:
        """Write the results of all reads, so that they have `room` tokens together; a result that is read twice counts
        twice."""
        spare = room - MIN_RESULT_TOKENS * sum(len(read.messages) for read in self._reads)
        share = spare / sum(read.weight * len(read.messages) for read in self._reads)
        # The last result, which is read once, gets the tokens that earlier ones leave.
        for read in sorted(self._reads, key=lambda read: len(read.messages) == 1):
            size = MIN_RESULT_TOKENS + int(share * read.weight) if read is not self._find_last() else room
            content = self._write(read, size)
            room -= tokens(content) * len(read.messages)
            for message in read.messages:
                message["content"] = content

    def _find_last(self) -> Read:
        return [read for read in self._reads if len(read.messages) == 1][-1]

    def _write(self, read: Read, size: int) -> str:
        draw = self._draw
        while True:
            tool = read.tool or KINDS[read.kind](draw, size, draw.between(0, 8))
            text = assemble(size, [Fact(tool.unit, tool.evidence, draw.fraction())], tool.stock).context
            if tool is self._wanted or (self._stem not in text and self._wanted.answer not in text):
                return text


def _find_kind(call: Call) -> str:
    return {"read_file": "code", "query_records": "json"}.get(call.name, "logs")
