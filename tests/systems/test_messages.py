"""Functions over messages as systems, and the policies that ship, on a trace of ten turns worked out by hand."""

from __future__ import annotations

import copy
import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from context_bench import MessagesSystem, evaluate, set_tokenizer
from context_bench.errors import BadOutput, MissingExtra, UsageError
from context_bench.systems import OpenAIProxy, WithReader
from context_bench.systems.adapt import build_systems
from context_bench.systems.messages import (
    ClearToolResults,
    DedupeReads,
    KeepLast,
    LangChainContextEditing,
    TruncateToolResults,
    clear_tool_results,
    dedupe_reads,
    keep_last_turns,
    truncate_tool_results,
)
from context_bench.wire.forms import FORMS
from servers import Server, completion

Message = dict[str, Any]


def call(number: str, name: str, **arguments: str) -> Message:
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, separators=(",", ":"))},
    }


def step(*calls: Message) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


def result(number: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


LONG, OTHER = " ".join(["go"] * 40), " ".join(["no"] * 40)  # forty tokens each
CLEARED = "[tool result cleared]"
HEAD: list[Message] = [
    {"role": "system", "content": "You mend code."},
    {"role": "user", "content": "Mend the test."},
]
TURNS: list[list[Message]] = [
    [step(call("1", "read_file", path="a.py")), result("1", LONG)],
    [step(call("2", "read_file", path="b.py")), result("2", "import json")],
    [step(call("3", "run_tests")), result("3", "1 failed")],
    [step(call("4", "read_file", path="a.py")), result("4", LONG)],
    [step(call("5", "edit_file", path="b.py")), result("5", "ok")],
    [
        step(call("6", "read_file", path="b.py"), call("7", "search", text="no")),
        result("6", "import os"),
        result("7", OTHER),
    ],
    [step(call("8", "read_file", path="a.py")), result("8", "edited")],
    [
        {"role": "user", "content": "Mend the docs, too."},
        {"role": "assistant", "content": "I read them.", "tool_calls": [call("9", "read_file", path="docs.md")]},
        result("9", "# Docs"),
    ],
    [step(call("10", "search", text="no")), result("10", OTHER)],
    [step(call("11", "run_tests")), result("11", "all passed")],
]
ASKED: Message = {"role": "user", "content": "Commit it."}
TRACE: list[Message] = [*HEAD, *(message for turn in TURNS for message in turn), ASKED]


def with_results(**contents: str) -> list[Message]:
    """The trace with other results: `_4="x"` is that of call_4."""
    return [
        {**message, "content": contents.get(message["tool_call_id"].removeprefix("call"), message["content"])}
        if message["role"] == "tool"
        else message
        for message in TRACE
    ]


BY_HAND: dict[str, tuple[Any, list[Message]]] = {
    "clear the results of all calls but the last three": (
        lambda messages: clear_tool_results(messages, last=3),
        with_results(**{f"_{number}": CLEARED for number in range(1, 9)}),
    ),
    "clear all results": (
        lambda messages: clear_tool_results(messages, last=0),
        with_results(**{f"_{number}": CLEARED for number in range(1, 12)}),
    ),
    "clear none of fewer": (lambda messages: clear_tool_results(messages, last=11), TRACE),
    "keep the last three turns": (
        lambda messages: keep_last_turns(messages, turns=3),
        [*HEAD, *TURNS[7], *TURNS[8], *TURNS[9], ASKED],
    ),
    "keep a turn with two calls whole": (
        lambda messages: keep_last_turns(messages, turns=5),
        [*HEAD, *(message for turn in TURNS[5:] for message in turn), ASKED],
    ),
    "keep all of ten turns": (lambda messages: keep_last_turns(messages, turns=10), TRACE),
    "refer to an earlier read": (
        dedupe_reads,
        with_results(
            _4='[same result as above: read_file {"path":"a.py"}]', _10='[same result as above: search {"text":"no"}]'
        ),
    ),
    "cut long results": (
        lambda messages: truncate_tool_results(messages, tokens=8),
        with_results(
            **dict.fromkeys(("_1", "_4"), "go go go go go go go go\n[32 tokens cut]"),
            **dict.fromkeys(("_7", "_10"), "no no no no no no no no\n[32 tokens cut]"),
        ),
    ),
    "leave a result that a cut would not shorten": (lambda messages: truncate_tool_results(messages, tokens=39), TRACE),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_a_policy_gives_what_was_worked_out_by_hand(case: str) -> None:
    policy, expected = BY_HAND[case]
    before = copy.deepcopy(TRACE)
    assert policy(TRACE) == expected
    assert before == TRACE


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_policy_does_the_same_in_the_form_of_every_api(form: Any) -> None:
    field = form.prompt_fields[0]
    for case, (policy, expected) in BY_HAND.items():
        sent, edited = (form.build_request("m", messages)[field] for messages in (TRACE, expected))
        assert policy(sent) == edited, case


def test_items_of_the_responses_api() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend the test."}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": LONG},
        {"type": "function_call", "call_id": "2", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "2", "output": LONG},
    ]
    cleared = clear_tool_results(items, last=1)
    assert [item.get("output") for item in cleared] == [None, None, None, CLEARED, None, LONG]
    assert dedupe_reads(items)[5]["output"] == "[same result as above: read_file {}]"
    assert keep_last_turns(items, turns=1) == [items[0], *items[4:]]
    patch = {"type": "custom_tool_call", "call_id": "3", "name": "apply_patch", "input": "*** Begin"}
    output = {"type": "custom_tool_call_output", "call_id": "3", "output": OTHER}
    again = [*items[:1], patch, *items[2:4], output, output | {"call_id": "4"}]
    assert keep_last_turns(again, turns=1) == again  # its result stands behind another turn
    assert dedupe_reads(again)[5]["output"] == "[same result as above: apply_patch *** Begin]"


def test_what_follows_a_result_late_keeps_its_call() -> None:
    late = [*HEAD, *TURNS[0][:1], *TURNS[1], TURNS[0][1], *TURNS[2]]
    assert keep_last_turns(late, turns=2) == late
    assert keep_last_turns(late, turns=1) == [*HEAD, *TURNS[2]]


def test_a_users_text_behind_results_in_one_message_stays_with_its_answer() -> None:
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ls", "input": {}}]}
    asked = {"type": "text", "text": "Mend the docs, too."}
    both = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": LONG}, asked]}
    answered = {"role": "assistant", "content": "Mended."}
    kept = keep_last_turns([HEAD[1], called, both, answered], turns=1)
    assert kept == [HEAD[1], {"role": "user", "content": [asked]}, answered]


def test_a_recording_that_lost_the_calls_of_its_results() -> None:
    torn = [*HEAD, result("0", LONG), *TURNS[0], *TURNS[1]]
    assert keep_last_turns(torn, turns=1) == [*HEAD, result("0", LONG), *TURNS[1]]
    assert dedupe_reads(torn)[4]["content"] == "[same result as above: an earlier call]"


def test_results_with_images_and_blocks() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    texts = [{"type": "text", "text": LONG}]
    trace = [{**result("1", ""), "content": [image]}, {**result("2", ""), "content": texts}]
    assert [message["content"] for message in truncate_tool_results(trace, tokens=2)] == [
        [image],
        "go go\n[38 tokens cut]",
    ]
    assert [message["content"] for message in clear_tool_results(trace, last=0)] == [CLEARED, CLEARED]
    twice = dedupe_reads([*trace, {**trace[0], "tool_call_id": "call_3"}])
    assert twice[2]["content"] == "[same result as above: an earlier call]"


def test_nothing_to_edit() -> None:
    for messages in ([], HEAD, [ASKED]):
        for policy in (clear_tool_results, dedupe_reads, truncate_tool_results, keep_last_turns):
            assert policy(messages) == messages


@pytest.fixture
def _langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain from its own environment, where it is not installed here: it would bring a plugin of pytest along."""
    folder = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    home = Path(__file__).parents[2] / ".vendors" / "langchain" / folder
    monkeypatch.setattr(sys, "path", [*sys.path, str(home)])
    if find_spec("langchain") is None:
        if os.environ.get("CONTEXT_BENCH_REQUIRE_VENDORS"):
            pytest.fail("langchain is not installed, and was to be tried")
        pytest.skip("MISSING CAPABILITY: langchain is not installed (make vendors installs it)")


@pytest.mark.vendors
@pytest.mark.usefixtures("_langchain")
def test_langchains_middleware_clears_as_its_own_rule_says() -> None:
    edit = LangChainContextEditing(trigger=0, keep=3).edit
    assert edit(TRACE)[0] == with_results(**{f"_{number}": "[cleared]" for number in range(1, 9)})
    # By its estimate a token has four characters: these 121 free fewer than 40 tokens, and 121 more do not.
    assert LangChainContextEditing(trigger=0, keep=3, clear_at_least=10).edit(TRACE)[0] == with_results(_1="[cleared]")


@pytest.mark.vendors
@pytest.mark.usefixtures("_langchain")
def test_langchains_middleware_below_its_trigger_changes_nothing() -> None:
    assert LangChainContextEditing().edit(TRACE)[0] == TRACE
    (system,) = build_systems("langchain-context-editing:trigger=0,keep=10,clear_tool_inputs=true")
    edited, _ = system.edit(TRACE)  # type: ignore[attr-defined]
    assert edited[3]["content"] == "[cleared]"
    assert edited[2]["tool_calls"][0]["function"] == {"name": "read_file", "arguments": "{}"}
    assert edited[4:] == TRACE[4:]


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.setitem(sys.modules, "langchain.agents", None)
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(MissingExtra, match=r"langchain-context-editing needs .*langchain"):
        LangChainContextEditing()


# --- as systems

EXAMPLE = {"id": 1, "context": "the whole", "question": "Commit it.", "turns": TRACE, "tools": [{"name": "t"}]}


def count_letters(text: str) -> int:
    return len(text)


def run(system: Any, example: dict[str, Any] = EXAMPLE) -> Any:
    (row,) = evaluate(system, [example], tokenizer=count_letters, progress=False).rows
    assert row.error is None
    return row


def test_the_policies_by_their_names() -> None:
    texts = ["clear-tool-results:last=3", "keep-last:turns=3", "dedupe-reads", "truncate-tool-results:tokens=8"]
    by_hand = list(BY_HAND.values())
    for text, place in zip(texts, (0, 3, 6, 7)):
        (system,) = build_systems(text)
        made = system.process(copy.deepcopy(EXAMPLE))
        assert (system.name, made["turns"]) == (text, by_hand[place][1])


@pytest.mark.parametrize(
    ("make", "value"), [(ClearToolResults, -1), (KeepLast, 0), (TruncateToolResults, 2.5), (ClearToolResults, True)]
)
def test_sizes_that_make_no_sense(make: Any, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"must be a whole number of at least \d \(got {re.escape(repr(value))}\)"):
        make(value)


def test_a_function_that_changes_nothing_saves_nothing() -> None:
    rows = [run(MessagesSystem(lambda messages: messages, name="same"), each) for each in (EXAMPLE, SINGLE)]
    for row in rows:
        assert row.output_tokens == row.input_tokens
        assert row.metadata["unchanged"] is True


def test_tokens_are_those_of_all_messages_with_what_is_added() -> None:
    added = {"role": "system", "content": "Be brief."}
    row = run(MessagesSystem(lambda messages: [added, *messages], name="adds"))
    assert row.output_tokens == row.input_tokens + len("Be brief.")
    row = run(ClearToolResults(last=3))
    saved = 2 * len(LONG) + len(OTHER) + sum(map(len, ("import json", "1 failed", "ok", "import os", "edited")))
    assert row.input_tokens - row.output_tokens == saved - 8 * len(CLEARED)


def test_a_change_of_the_last_message_does_not_bring_the_question_back() -> None:
    row = run(MessagesSystem(lambda messages: [*messages[:-1], {"role": "user", "content": "Do."}], name="short"))
    assert row.input_tokens - row.output_tokens == len("Commit it.") - len("Do.")
    beside = {**EXAMPLE, "question": "Is it done?"}  # counted beside the conversation, and not part of it
    row = run(MessagesSystem(lambda messages: messages[1:], name="cut"), beside)
    assert row.input_tokens - row.output_tokens == len("You mend code.")


def test_tools_are_given_to_a_function_that_takes_them_and_may_be_changed() -> None:
    def drop(messages: list[Message], tools: list[Any]) -> dict[str, Any]:
        assert tools == [{"name": "t"}]
        return {"messages": messages, "tools": []}

    row = run(MessagesSystem(drop))
    assert (row.system, row.input_tokens - row.output_tokens) == ("drop", len('{"name":"t"}'))


def test_an_object_with_messages_as_libraries_return_it() -> None:
    def compress(messages: list[Message], model: str = "gpt-4o") -> Any:
        assert model == "gpt-4o"
        return SimpleNamespace(messages=messages[-1:], tokens_saved=7)

    assert MessagesSystem(compress).edit(TRACE) == ([ASKED], [])


def test_a_function_that_works_in_place() -> None:
    def cut(messages: list[Message]) -> list[Message]:
        del messages[:-1]
        return messages

    row = run(MessagesSystem(cut))
    assert row.output_tokens == len("Commit it.") + len('{"name":"t"}')


SINGLE = {"id": 1, "context": "Rome is in Italy. Oslo is not.", "question": "Where is Rome?", "answer": "Italy"}


def test_an_example_without_turns_is_framed_as_for_a_model() -> None:
    seen: list[list[Message]] = []

    def keep_first_sentence(messages: list[Message]) -> list[Message]:
        seen.append(messages)
        return [
            each if each["role"] == "system" else {**each, "content": each["content"].replace(" Oslo is not.", "")}
            for each in messages
        ]

    system, user = (
        MessagesSystem(keep_first_sentence, framing=framing).process(dict(SINGLE)) for framing in (None, "user")
    )
    assert system == {"context": SINGLE["context"]}  # it leaves system messages alone
    assert user["turns"] == [{"role": "user", "content": "Rome is in Italy.\n\nWhere is Rome?"}]
    assert [len(messages) for messages in seen] == [2, 1]
    row = run(MessagesSystem(keep_first_sentence, framing="user"), SINGLE)
    assert row.output_tokens == len("Rome is in Italy.\n\nWhere is Rome?")  # not the question a second time
    assert row.scores["answer_in_context"] == 1.0


def test_a_reader_gets_the_edited_messages() -> None:
    with Server(completion("done")) as server:
        proxy = OpenAIProxy(server.url, api_key="k", timeout=10.0)
        row = run(WithReader(KeepLast(turns=3), proxy))
        assert server.last["messages"] == BY_HAND["keep the last three turns"][1]
    assert row.upstream_tokens < row.metadata["sent_tokens"]


def test_a_function_of_a_file_by_its_reference(tmp_path: Path) -> None:
    file = tmp_path / "edits.py"
    file.write_text(
        "def last(messages, count=1):\n    return messages[-count:]\n\n\n"
        "class Last:\n    def __init__(self, count):\n        self.count = count\n\n"
        "    def __call__(self, messages):\n        return messages[-self.count :]\n"
    )
    for reference in (f"messages:{file}:last:count=2", f"messages:{file}:Last:count=2"):
        (system,) = build_systems(reference)
        assert system.name == reference
        assert system.process(copy.deepcopy(EXAMPLE))["turns"] == TRACE[-2:]
    (named,) = build_systems(f"messages:name=tail,{file}:last")
    assert (named.name, named.process(copy.deepcopy(EXAMPLE))["turns"]) == ("tail", TRACE[-1:])
    for text, problem in {
        f"messages:{file}:last:count=1|2": "pass one --system for each",
        f"messages:{file}:other": "no 'other'",
        f"messages:{file}:last:size=1": "unknown parameter 'size'",
    }.items():
        with pytest.raises(UsageError, match=re.escape(problem)):
            list(build_systems(text))


async def _wait(messages: list[Message]) -> list[Message]:
    return messages


@pytest.mark.parametrize("function", [3, ClearToolResults, lambda: None, lambda messages, more: [], _wait])
def test_what_is_no_function_of_messages(function: Any) -> None:
    with pytest.raises(UsageError):
        MessagesSystem(function)


@pytest.mark.parametrize("made", [None, "text", [{"role": "user"}, "text"], {"turns": []}, {"messages": "text"}])
def test_what_is_no_list_of_messages(made: Any) -> None:
    with pytest.raises(BadOutput, match="return a list of messages"):
        MessagesSystem(lambda messages: made, name="odd").process(dict(EXAMPLE))


def test_settings_make_another_fingerprint() -> None:
    systems: list[MessagesSystem] = [ClearToolResults(), ClearToolResults(last=4), KeepLast(), DedupeReads()]
    systems += [
        TruncateToolResults(),
        MessagesSystem(clear_tool_results, framing="user"),
        MessagesSystem(clear_tool_results),
    ]
    assert len({system.fingerprint for system in systems}) == len(systems)
    assert ClearToolResults().fingerprint == ClearToolResults(last=3).fingerprint
    before = TruncateToolResults().fingerprint
    set_tokenizer("o200k_base")
    try:
        assert TruncateToolResults().fingerprint != before
    finally:
        set_tokenizer(None)
