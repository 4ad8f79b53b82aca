"""Replay of made sessions through toys of known behaviour: what is saved, lost and broken is what they do."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_logs import MODEL, name_file, replay, write_session
from command import called
from context_bench.pricing import Price, Prices
from context_bench.replay.arms import ProxyArm, SystemArm
from context_bench.replay.outcome import ArmOutcome
from context_bench.replay.report import conclude, describe, render
from context_bench.systems import MessagesSystem
from context_bench.systems.adapt import build_systems
from context_bench.systems.messages import CLEARED
from context_bench.tap.address import free_port
from context_bench.tap.answering import Answerer
from context_bench.tap.scripted import Scripted
from toy_proxies import KINDS, Toy, toy_proxy

Edit = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def edit_results(edit: Callable[[int, str], str]) -> Edit:
    """Edit the text of each tool result, given its number in the request."""

    def change(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        number = 0
        for message in messages:
            for block in message["content"]:
                if block["type"] == "tool_result":
                    block["content"] = edit(number, block["content"])
                    number += 1
        return messages

    return change


def leave(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return messages


class EditsBlocks:
    """A policy over the messages of Anthropic's API, as they are recorded."""

    reads_any_api = True

    def __init__(self, edit: Edit, name: str) -> None:
        self.name, self._edit = name, edit

    def edit(self, messages: list[dict[str, Any]], tools: list[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
        return self._edit(copy.deepcopy(messages)), tools


def make_arm(edit: Edit, name: str) -> SystemArm:
    return SystemArm(EditsBlocks(edit, name))


def build_policy() -> SystemArm:
    return SystemArm(next(iter(build_systems("clear-tool-results:last=1", 0))))


def find_lost(outcome: ArmOutcome) -> set[tuple[str, int]]:
    return {(s.session, turn["turn"]) for s in outcome.sessions for turn in s.turns if turn["lost"]}


def test_what_changes_nothing_saves_and_breaks_nothing(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 6)
    (outcome,) = replay(tmp_path, make_arm(leave, "leave"))
    assert outcome.saved_tokens == 0
    assert outcome.compute_saved_dollars() == 0
    assert outcome.broken_turns == 0
    assert not outcome.faults
    assert find_lost(outcome) == set()
    # Every call but the first names the file that the result before it told.
    assert [turn["copied"] for turn in outcome.turns] == [0, 1, 1, 1, 1, 1]


def test_a_rewrite_of_turn_three_is_billed_as_one_write_of_what_follows(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 8)

    def shorten_third(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # From the sixth request on the third result is shorter, which changes the prefix once.
        results = sum(block["type"] == "tool_result" for message in messages for block in message["content"])
        return edit_results(lambda n, text: text[:60] if n == 2 and results >= 5 else text)(messages)

    (outcome,) = replay(tmp_path, make_arm(shorten_third, "rewrites"))
    turns = outcome.turns
    assert [turn["turn"] for turn in turns if "lost_reads" in turn] == [6]
    sixth = turns[5]
    # The changed result is the last block of the fourth request: what the third one wrote is still there.
    assert sixth["read"] == turns[2]["prompt"]
    written = sixth["prompt"] - sixth["read"]
    expected = (0.30 * sixth["read"] + 3.75 * written + 15.0 * 20) / 1e6
    assert sixth["dollars"] == pytest.approx(expected)
    # All but the turn's own call and result could have been read.
    stable = sixth["prompt"] - (sixth["recorded_prompt"] - turns[4]["recorded_prompt"])
    damage = (3.75 - 0.30) * (stable - sixth["read"]) / 1e6
    assert sixth["damage_dollars"] == pytest.approx(damage)
    assert outcome.saved_tokens is not None
    assert outcome.saved_tokens > 0
    assert (outcome.compute_saved_dollars() or 0) < 0
    assert "saved" in conclude(outcome)
    assert "and added" in conclude(outcome)
    assert "first in turn 6" in conclude(outcome)


def test_every_second_result_that_is_dropped_is_found_and_no_other(tmp_path: Path) -> None:
    for session in range(12):
        # Each third call names what an older result told.
        write_session(tmp_path, session, 10, {turn: turn - 3 for turn in range(3, 10, 3)})
    arm = make_arm(edit_results(lambda n, text: "[dropped]" if n % 2 else text), "drops")
    (outcome,) = replay(tmp_path, arm)
    planted = set()
    for session in range(12):
        used = set()
        for turn in range(1, 10):
            source = turn - 3 if turn % 3 == 0 else turn - 1
            # The first use counts, and a copy in an earlier call of the model is a copy.
            if source % 2 and source not in used:
                planted.add((f"session-{session}", turn + 1))
            used.add(source)
    found = find_lost(outcome)
    assert found == planted
    shown = outcome.sessions[0].facts["losses"][0]["diff"]
    assert any(kind != "kept" and name_file(0, 1) in old for kind, old, _ in shown)
    assert "[dropped]" in "".join(new for _, _, new in shown)
    loss = outcome.loss
    assert loss.of_uses is not None
    assert loss.of_uses == pytest.approx(len(planted) / sum(bool(turn["copied"]) for turn in outcome.turns), abs=0.02)
    assert loss.low is not None  # twelve sessions have an interval
    assert outcome.broken_turns == 0  # it drops each result when it first comes


def test_reordered_keys_break_the_cache_without_a_loss(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 6)
    calls = 0

    def reorder(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        nonlocal calls
        calls += 1
        if calls % 2:
            return messages
        first = messages[0]["content"][0]
        messages[0]["content"][0] = {key: first[key] for key in reversed(first)}
        return messages

    (outcome,) = replay(tmp_path, make_arm(reorder, "reorders"))
    assert outcome.saved_tokens == 0
    assert find_lost(outcome) == set()
    # The second request loses the first message alone, which is too short to count; the other four lose more.
    assert outcome.broken_turns == 0.8
    assert (outcome.compute_saved_dollars() or 0) < 0
    assert not outcome.faults


@pytest.mark.parametrize(
    ("fault", "edit"),
    [
        ("pairing", lambda messages: [m for m in messages if m["content"][0]["type"] != "tool_result"]),
        ("roles", lambda messages: [{**m, "role": "user"} for m in messages]),
        ("order", lambda messages: [*messages[:1], *reversed(messages[1:])]),
    ],
)
def test_broken_rules_are_named(tmp_path: Path, fault: str, edit: Edit) -> None:
    write_session(tmp_path, 1, 4)
    (outcome,) = replay(tmp_path, make_arm(edit, "breaks"))
    assert fault in outcome.faults


def test_a_prompt_below_the_minimum_of_its_model_is_not_cached(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 8)
    prices = Prices({MODEL: Price(3.0, 15.0, 0.30, 3.75, 6.0, cache_minimum=4096)})
    (outcome,) = replay(tmp_path, make_arm(leave, "leave"), prices=prices)
    cached = [turn["recorded_read"] > 0 for turn in outcome.turns]
    long = [turn["recorded_prompt"] >= 4096 for turn in outcome.turns]
    assert any(cached)
    assert cached == [False, *long[:-1]]


def test_dollars_of_a_month_by_volume_or_by_the_recorded_dates(tmp_path: Path) -> None:
    # The second session starts 100,000 seconds after the first one, and each has six requests ten seconds apart.
    write_session(tmp_path, 1, 6)
    write_session(tmp_path, 2, 6)
    (outcome,) = replay(tmp_path, make_arm(edit_results(lambda _, text: text[:60]), "cuts"))
    saved = (outcome.sum_dollars("recorded") or 0) - (outcome.sum_dollars("sent") or 0)
    assert saved > 0
    assert outcome.month is not None
    assert outcome.month.dollars == pytest.approx(saved / (100_050 / 86_400) * 365 / 12)
    outcome.volume = 12_000
    assert outcome.month is not None
    assert outcome.month.dollars == pytest.approx(saved * 1_000)
    assert f"${saved * 1_000:.2f} less a month at 12,000 requests a month" in conclude(outcome)
    outcome.volume = None
    outcome.sessions.pop()
    assert outcome.month is None  # a minute says nothing of a month


def write_chats(folder: Path, model: str, *cached: int | None) -> None:
    """Write a log of chat completions: each request appends a message; its usage reports these cache reads."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "one two three " * 700}]
    lines = []
    for turn, read in enumerate(cached):
        messages = [*messages, {"role": "user", "content": f"question {turn} " * 100}]
        request = {"model": model, "messages": messages}
        details = {} if read is None else {"prompt_tokens_details": {"cached_tokens": read}}
        usage = {"prompt_tokens": 2102 + 300 * turn, "completion_tokens": 5, **details}
        said = {"role": "assistant", "content": f"answer {turn}"}
        reply = {"id": f"c{turn}", "object": "chat.completion", "choices": [{"index": 0, "message": said}]}
        lines.append({"request": request, "response": {**reply, "usage": usage}, "timestamp": 1_767_000_000 + turn})
        messages = [*messages, said]
    (folder / "chats.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def add_a_time(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Change the first message each time, as one that begins with the time does."""
    return [{**messages[0], "content": f"{len(messages)} {messages[0]['content']}"}, *messages[1:]]


@pytest.mark.parametrize(("cached", "rate"), [((0, 0, 2176), None), ((0, 0, 0), 0.0), ((None, None, None), 0.75)])
def test_openai_reads_are_the_best_case_and_stand_beside_the_recorded_hit_rate(
    tmp_path: Path, cached: tuple[int | None, ...], rate: float | None
) -> None:
    prices = Prices({"gpt-4o": Price(2.5, 10.0, 1.25)})
    write_chats(tmp_path, "gpt-4o", *cached)
    (outcome,) = replay(tmp_path, make_arm(add_a_time, "adds-a-time"), prices=prices)
    simulated = [turn["recorded_read"] for turn in outcome.turns]
    assert simulated[0] == 0
    assert all(read > 1024 and read % 128 == 0 for read in simulated[1:])
    assert [turn["read"] for turn in outcome.turns] == [0, 0, 0]
    rate = 2176 / sum(simulated) if rate is None else rate  # the second request missed
    assert outcome.served_reads == pytest.approx(rate)
    # What is not read costs twice as much, and the system reads nothing: it loses all of the reads that there are.
    lost = sum(simulated) * 1.25 / 1e6
    for found, share in ((outcome.compute_saved_dollars(), 1.0), (outcome.compute_saved_with_misses(), rate)):
        sent = outcome.sum_dollars("sent") or 0
        uncached = outcome.sum_dollars("recorded_uncached") or 0
        assert found == pytest.approx(1 - sent / (uncached - share * lost))
    assert f"when {1 - rate:.0%} of cache reads miss" in conclude(outcome)


def test_a_prompt_that_gets_too_short_for_the_cache_is_no_damage(tmp_path: Path) -> None:
    write_chats(tmp_path, "gpt-4o", 0, 2048, 2304)
    short = make_arm(lambda messages: [{**messages[0], "content": "one two three"}, *messages[1:]], "shortens")
    (outcome,) = replay(tmp_path, short, prices=Prices({"gpt-4o": Price(2.5, 10.0, 1.25)}))
    assert [turn["read"] for turn in outcome.turns] == [0, 0, 0]
    assert (outcome.broken_turns, outcome.damage_dollars) == (0, 0)


def test_newer_models_of_openai_pay_for_what_they_write_to_the_cache(tmp_path: Path) -> None:
    prices = Prices({"gpt-5.6": Price(2.0, 10.0, 0.2, 2.5)})
    write_chats(tmp_path, "gpt-5.6", None, None)
    (outcome,) = replay(tmp_path, make_arm(leave, "leave"), prices=prices)
    first, second = outcome.turns
    assert first["dollars"] == pytest.approx((2.5 * first["prompt"] + 10 * 5) / 1e6)
    assert second["read"] == first["prompt"]
    written = second["prompt"] - second["read"]
    assert second["dollars"] == pytest.approx((0.2 * second["read"] + 2.5 * written + 10 * 5) / 1e6)
    assert outcome.served_reads is None  # nothing is missed: these models keep what they were told to keep


# --- functions over the messages of a chat


def test_a_function_over_chat_messages_edits_a_session_of_another_api(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 8)
    seen: list[list[dict[str, Any]]] = []

    def clear_first(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen.append(messages)
        results = [place for place, each in enumerate(messages) if each["role"] == "tool"]
        if len(results) >= 5:
            messages[results[0]] = {**messages[results[0]], "content": CLEARED}
        return messages

    function, policy = MessagesSystem(clear_first), MessagesSystem(lambda messages: messages, name="leave")
    cleared, left = replay(tmp_path, SystemArm(function), SystemArm(policy))
    assert [each["role"] for each in seen[1]] == ["system", "user", "assistant", "tool"]
    # What it leaves alone is what was recorded: no fault, and nothing of the cache is lost.
    assert (left.saved_tokens, left.broken_turns, dict(left.faults)) == (0, 0, {})
    assert dict(cleared.faults) == {}
    assert [turn["turn"] for turn in cleared.turns if turn["sent_tokens"] < turn["tokens"]] == [6, 7, 8]
    assert [turn["turn"] for turn in cleared.turns if "lost_reads" in turn] == [6]


# --- real proxies over HTTP


@pytest.fixture
def port() -> int:
    return free_port()


class Shortens(Toy):
    """Cuts each tool result to its first 60 characters, and drops the breakpoints of the cache."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any] | None:
        text = json.loads(json.dumps(document), object_hook=self._cut)
        return dict(text)

    @staticmethod
    def _cut(value: dict[str, Any]) -> dict[str, Any]:
        value.pop("cache_control", None)
        return {**value, "content": value["content"][:60]} if value.get("type") == "tool_result" else value


class AsksAlso(Toy):
    """Asks the model a question of its own before it passes a request on."""

    question = "What is one and one?"

    async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
        document = json.loads(body)
        question = [{"role": "user", "content": self.question.format(document["messages"][-1])}]
        own = json.dumps({**document, "system": "You summarize.", "messages": question, "tools": []}).encode()
        own_headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        async with self.ask(request, own_headers, own) as reply:
            said = (await reply.read()).decode()
            assert "msg_1_" not in said  # it gets no recorded reply, which would hold the evidence
        return await super().exchange(request, headers, body)


class Summarizes(AsksAlso):
    """Asks for a summary of the conversation."""

    question = "Summarize this conversation: {}"


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "shortens", Shortens)
    monkeypatch.setitem(KINDS, "asks-also", AsksAlso)
    monkeypatch.setitem(KINDS, "summarizes", Summarizes)


def run_proxy(kind: str, folder: Path, unused_port: int, helper: Answerer | None = None) -> ArmOutcome:
    with toy_proxy(kind, f"http://127.0.0.1:{unused_port}") as url:
        (outcome,) = replay(folder, ProxyArm(kind, url, port=unused_port, known_as=kind, helper=helper))
    return outcome


@pytest.mark.usefixtures("proxies")
def test_a_proxy_that_passes_everything_on_is_found_harmless(tmp_path: Path, port: int) -> None:
    write_session(tmp_path, 1, 5)
    outcome = run_proxy("passes", tmp_path, port)
    assert outcome.saved_tokens == 0
    assert outcome.compute_saved_dollars() == 0
    assert not outcome.faults
    assert not outcome.errors
    assert all("changed_reply" not in turn for turn in outcome.turns)


@pytest.mark.usefixtures("proxies")
def test_dropped_breakpoints_cost_more_than_the_tokens_saved(tmp_path: Path, port: int) -> None:
    write_session(tmp_path, 1, 5)
    outcome = run_proxy("shortens", tmp_path, port)
    assert outcome.saved_tokens is not None
    assert outcome.saved_tokens > 0.05
    assert (outcome.compute_saved_dollars() or 0) < 0
    assert outcome.faults["cache marks"] == 5
    assert "shortens: a breakpoint of the prompt cache was removed (5 turns)." in render([outcome], None)
    assert all(turn["read"] == 0 for turn in outcome.turns)


@pytest.mark.usefixtures("proxies")
@pytest.mark.parametrize(("kind", "helper"), [("asks-also", None), ("summarizes", Scripted.from_text("echo"))])
def test_a_call_of_the_proxys_own_never_gets_the_recorded_reply(
    tmp_path: Path, port: int, kind: str, helper: Answerer | None
) -> None:
    write_session(tmp_path, 1, 4)
    outcome = run_proxy(kind, tmp_path, port, helper)
    assert outcome.count("side_calls") == 4
    assert not outcome.errors
    assert outcome.saved_tokens == 0
    assert "called a model 4 times by itself" in render([outcome], None)


@pytest.mark.usefixtures("proxies")
def test_a_session_of_which_a_proxy_asks_a_model_needs_one_to_be_replayed(tmp_path: Path, port: int) -> None:
    write_session(tmp_path, 1, 4)
    outcome = run_proxy("summarizes", tmp_path, port)
    assert not outcome.sessions
    (reason,) = outcome.failed.values()
    assert "not replayable: in request 2 summarizes asked a model" in reason
    assert "add --tap-model local" in reason


def test_a_dead_proxy_is_one_clear_sentence(tmp_path: Path, port: int) -> None:
    write_session(tmp_path, 1, 3)
    (outcome,) = replay(tmp_path, ProxyArm("dead", f"http://127.0.0.1:{port}"))
    assert not outcome.sessions
    (reason,) = outcome.failed.values()
    assert f"no proxy answers at http://127.0.0.1:{port}" in reason
    assert conclude(outcome).startswith("dead: not measured")


class Refuses(Toy):
    """Refuses everything."""

    async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
        return web.json_response({"error": {"message": "no such model"}}, status=404)


def test_a_proxy_that_refuses_everything_saves_nothing(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "refuses", Refuses)
    write_session(tmp_path, 1, 3)
    outcome = run_proxy("refuses", tmp_path, port)
    assert (outcome.saved_tokens, outcome.compute_saved_dollars(), outcome.month) == (None, None, None)
    assert conclude(outcome).startswith("refuses: not measured (HTTP 404")


# --- the store, and what is shown


def test_a_second_run_takes_the_sessions_from_the_store(tmp_path: Path) -> None:
    recordings, store = tmp_path / "recordings", tmp_path / "store"
    recordings.mkdir()
    for session in range(2):
        write_session(recordings, session, 3)
    edited: list[int] = []

    def build() -> SystemArm:
        arm = build_policy()
        real = arm._edit
        arm._edit = lambda api, body: (edited.append(1), real(api, body))[1]  # type: ignore[method-assign, func-returns-value]
        return arm

    first = replay(recordings, build(), store=store)
    assert len(edited) == 6
    second = replay(recordings, build(), store=store)
    assert len(edited) == 6
    assert describe(first) == describe(second)


def test_tables_fit_and_json_holds_each_turn(tmp_path: Path) -> None:
    for session in range(3):
        write_session(tmp_path, session, 4)
    outcomes = replay(tmp_path, make_arm(leave, "leave"), build_policy())
    shown = render(outcomes, 100)
    assert max(map(len, shown.splitlines())) <= 100
    assert "Too few turns reuse earlier text to judge losses" in " ".join(shown.split())
    document = json.loads(json.dumps(describe(outcomes)))
    sessions: Sequence[dict[str, Any]] = document["systems"][1]["sessions"]
    assert [len(each["turns"]) for each in sessions] == [4, 4, 4]
    assert document["systems"][1]["loss"]["of_uses"] is None


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 3)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    log = str(tmp_path / "session-1.jsonl")
    for arguments, said in [
        ([log], "no system to replay with"),
        ([str(tmp_path / "missing.jsonl"), "--system", "minify"], "no such file or folder"),
        ([str(empty), "--system", "minify"], "empty.jsonl"),
        ([log, "--proxy", "http://127.0.0.1:1"], "pass a port"),
        ([log, "--system", "minify", "--output", "csv"], "--output must be table or json (got 'csv')"),
        ([log, "--system", "no-such-policy"], "unknown system 'no-such-policy'"),
    ]:
        done = called("replay", *arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert said in done.stderr, arguments
        assert "Traceback" not in done.stderr


def test_the_command_writes_a_table_a_page_and_controls(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 4)
    (tmp_path / "junk.jsonl").write_text("no JSON")
    page = tmp_path / "replay.html"
    done = called(
        *("replay", str(tmp_path), "--system", "clear-tool-results:last=1", "--controls"),
        *("--report", str(page)),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "1 file skipped (no recordings)" in done.stderr
    assert "(control)" in done.stdout
    assert "clear-tool-results:last=1 would have saved" in done.stdout.splitlines()[-1]
    shown = page.read_text()
    assert "Tokens and dollars, turn by turn" in shown
    assert "http" not in shown.split("<svg")[0].partition("<body>")[2]  # nothing is loaded from anywhere
