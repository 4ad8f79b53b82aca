"""Programs in any language: real ones, that behave, misbehave, and must all be gone in the end."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.errors import BadOutput, SystemFailure, TimedOut, UsageError
from context_bench.systems import Command, OpenAIProxy, WithReader
from context_bench.systems.adapt import build_systems
from servers import Server, completion
from timing import depends_on_time

LOOP = """
import json, os, subprocess, sys, time
def say(result):
    print(json.dumps(result), flush=True)
for line in sys.stdin:
    example = json.loads(line)
"""
EXAMPLE = {"id": 1, "context": "Paris is in France.", "question": "Where is Paris?", "answer": "France"}

Make = Callable[..., Command]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Make]:
    """Makes a Command from the body of a loop over examples, or from a whole script."""
    made: list[Command] = []

    def make(body: str = "", script: str | None = None, **options: Any) -> Command:
        path = tmp_path / f"program{len(made)}.py"
        path.write_text(script if script is not None else LOOP + "".join(f"    {line}\n" for line in body.split("\n")))
        made.append(Command([sys.executable, str(path)], **{"timeout": 10.0, **options}))
        return made[-1]

    yield make
    for each in made:
        each.finish()


def alive(identity: int) -> bool:
    """Whether a process is there and not only waiting to be buried."""
    try:
        return Path(f"/proc/{identity}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(identity: int, within: float = 3.0) -> bool:
    deadline = time.monotonic() + within
    while alive(identity) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(identity)


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


# What is exchanged


def test_a_line_out_and_a_line_back(program: Make) -> None:
    shout = program("say({'context': example['context'].upper()})")
    assert shout.process(EXAMPLE) == {"context": "PARIS IS IN FRANCE."}


def test_the_whole_example_arrives_as_it_is(program: Make) -> None:
    echo = program("say({'response': json.dumps(example)})")
    example = {**EXAMPLE, "context": 'naïve\n"日本" 🎉 \\ \u2028', "n": [1, {"x": None}], "turns": [{"role": "user"}]}
    assert json.loads(echo.process(example)["response"]) == example


@pytest.mark.parametrize(
    ("value", "arrives"), [("a\ud800b", "a?b"), (2**70, str(2**70)), (float("nan"), None), ({1: 2}, {"1": 2})]
)
def test_what_json_cannot_say_does_not_end_the_program(program: Make, value: Any, arrives: Any) -> None:
    echo = program("say({'response': json.dumps([example['odd'], os.getpid()])})")
    first = json.loads(echo.process({**EXAMPLE, "odd": value})["response"])
    assert first[0] == arrives
    assert json.loads(echo.process({**EXAMPLE, "odd": 1})["response"]) == [1, first[1]]


def test_it_is_kept_running(program: Make) -> None:
    counting = program("count = globals().get('count', 0) + 1; say({'response': str(count)})")
    assert [counting.process(EXAMPLE)["response"] for _ in range(3)] == ["1", "2", "3"]


def test_a_line_of_many_megabytes_both_ways(program: Make) -> None:
    echo = program("say({'context': example['context']})")
    text = "word " * 2_000_000
    assert echo.process({**EXAMPLE, "context": text})["context"] == text


def test_blank_lines_say_nothing(program: Make) -> None:
    airy = program("print(); say({'response': example['question']}); print(flush=True)")
    for number in range(3):
        assert airy.process({**EXAMPLE, "question": str(number)})["response"] == str(number)
        time.sleep(0.02)


def test_the_last_line_needs_no_end(program: Make) -> None:
    brief = program("sys.stdout.write(json.dumps({'response': 'x'})); sys.stdout.flush(); sys.exit(0)")
    assert [brief.process(EXAMPLE)["response"] for _ in range(2)] == ["x", "x"]


def test_what_it_says_on_stderr_is_for_the_user(program: Make, capfd: pytest.CaptureFixture[str]) -> None:
    chatty = program("print('loading' * 20_000, file=sys.stderr, flush=True); say({'response': 'x'})")
    assert chatty.process(EXAMPLE)["response"] == "x"
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("loadingloading")


def test_a_row(program: Make) -> None:
    half = program("say({'context': 'Paris France', 'metadata': {'own': 7}})", name="half")
    (row,) = evaluate(half, [EXAMPLE], tokenizer=lambda text: len(text.split())).rows
    assert (row.error, row.system) == (None, "half")
    assert (row.input_tokens, row.output_tokens) == (4 + 3, 2 + 3)
    assert row.metadata["own"] == 7


@depends_on_time("latency is what the clock on the wall says")
def test_start_up_is_paid_once(program: Make) -> None:
    slow = program(script="import time; time.sleep(0.4)" + LOOP + "    say({'response': 'x'})")
    rows = evaluate(slow, [{**EXAMPLE, "id": n} for n in range(3)]).rows
    assert [row.error for row in rows] == [None] * 3
    assert rows[0].latency >= 0.4
    assert max(row.latency for row in rows[1:]) < 0.2


# What goes wrong


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('hello', flush=True)", "not a JSON object: b'hello'"),
        ("print('[1]', flush=True)", "not a JSON object"),
        ("print('null', flush=True)", "not a JSON object"),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush()", "not a JSON object"),
        ("print('x' * 100_000, flush=True)", "not a JSON object"),
        ('print(\'{"response": 1}\\n{"response": 2}\', flush=True)', "more than one line"),
        ("say({'response': 'a', 'id': 99})", "answered example 99 instead of 1"),
    ],
)
def test_an_answer_that_is_none(program: Make, body: str, said: str) -> None:
    wrong = program(body)
    with pytest.raises(BadOutput, match=said):
        wrong.process(EXAMPLE)


def test_a_second_line_is_never_the_answer_to_another_example(program: Make) -> None:
    body = "say({'response': example['question']})\nif example['id'] == 0: time.sleep(0.1); say({'response': 'stray'})"
    stray = program(body)
    assert stray.process({**EXAMPLE, "id": 0, "question": "0"})["response"] == "0"
    time.sleep(0.4)
    with pytest.raises(BadOutput, match="more than one line"):
        stray.process({**EXAMPLE, "id": 1, "question": "1"})
    assert stray.process({**EXAMPLE, "id": 2, "question": "2"})["response"] == "2"


def test_a_result_of_the_wrong_kind_is_an_error_of_that_row(program: Make) -> None:
    wrong = program("say({'context': 5} if example['id'] == 0 else {'response': 'x'})")
    rows = evaluate(wrong, [{**EXAMPLE, "id": n} for n in range(2)]).rows
    assert [row.error is None for row in rows] == [False, True]


def test_one_that_dies_is_an_error_and_is_started_anew(program: Make) -> None:
    fragile = program("sys.exit(7) if example['id'] == 1 else say({'response': 'x'})")
    rows = evaluate(fragile, [{**EXAMPLE, "id": n} for n in range(3)]).rows
    assert [row.error for row in rows] == [
        None,
        "SystemFailure: the program ended (exit code 7) without an answer",
        None,
    ]


def test_one_that_dies_at_once(program: Make) -> None:
    for script, code in (("import sys; sys.exit(4)", 4), ("import os; os.kill(os.getpid(), 9)", -9)):
        dead = program(script=script)
        with pytest.raises(SystemFailure, match=f"exit code {code}"):
            dead.process(EXAMPLE)


def test_one_that_always_leaves_without_a_word_is_not_started_for_ever(program: Make) -> None:
    once = program("sys.exit(0) if example['id'] else say({'response': 'x'})")
    rows = evaluate(once, [{**EXAMPLE, "id": n} for n in range(3)]).rows
    assert [row.error is None for row in rows] == [True, False, False]


def test_one_that_serves_a_single_example_is_started_for_each(program: Make) -> None:
    once = program("say({'response': str(os.getpid())}); sys.exit(0)")
    rows = evaluate(once, [{**EXAMPLE, "id": n} for n in range(4)]).rows
    assert [row.error for row in rows] == [None] * 4
    assert len({row.response for row in rows}) == 4


def test_one_that_hangs_is_ended_in_time(program: Make) -> None:
    hanging = program("time.sleep(60) if example['id'] == 1 else say({'response': 'x'})", timeout=4)
    before = time.monotonic()
    rows = evaluate(hanging, [{**EXAMPLE, "id": n} for n in range(3)]).rows
    assert time.monotonic() - before < 30
    assert [row.error for row in rows] == [None, "TimedOut: the program gave no answer within 4 s", None]


def test_one_that_never_reads_cannot_hold_us_up(program: Make) -> None:
    deaf = program(script="import time; time.sleep(60)", timeout=0.5)
    before = time.monotonic()
    with pytest.raises(TimedOut):
        deaf.process({**EXAMPLE, "context": "x" * 5_000_000})
    assert time.monotonic() - before < 30


def test_one_that_trickles_does_not_move_the_deadline(program: Make) -> None:
    trickling = program("while True: sys.stdout.write('x'); sys.stdout.flush(); time.sleep(0.05)", timeout=0.5)
    before = time.monotonic()
    with pytest.raises(TimedOut):
        trickling.process(EXAMPLE)
    assert time.monotonic() - before < 30


def test_one_that_floods_is_stopped(program: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_bench.systems.programs.MAX_LINE", 2**20)
    flooding = program("while True: sys.stdout.write('x' * 65536)")
    with pytest.raises(BadOutput, match="more than 1 MB"):
        flooding.process(EXAMPLE)


@pytest.mark.parametrize("command", ["", [], "no-such-program-here --x", ["no-such-program-here"], "'unclosed"])
def test_what_cannot_be_run(command: Any) -> None:
    with pytest.raises(UsageError, match=r"no program|cannot be split"):
        Command(command)


@pytest.mark.parametrize("timeout", [0, -1, "x"])
def test_a_timeout_that_is_none(timeout: Any) -> None:
    with pytest.raises(UsageError, match="timeout"):
        Command("cat", timeout=timeout)


# Several at once


def test_several_at_once(program: Make) -> None:
    work = "began = time.monotonic(); time.sleep(0.4); "
    slow = program(work + "say({'response': f'{os.getpid()} {began} {time.monotonic()}'})")
    rows = evaluate(slow, [{**EXAMPLE, "id": n} for n in range(8)], max_workers=4).rows
    times = [row.response.split() for row in rows]
    assert len({identity for identity, _, _ in times}) == 4
    began, ended = [float(start) for _, start, _ in times], [float(end) for _, _, end in times]
    assert max(ended) - min(began) < sum(end - start for start, end in zip(began, ended)), "one after the other"


def test_answers_do_not_get_mixed_up(program: Make) -> None:
    echo = program("say({'response': f\"answer {example['id']}\"})")
    rows = evaluate(echo, [{**EXAMPLE, "id": n} for n in range(200)], max_workers=4).rows
    assert [row.response for row in rows] == [f"answer {n}" for n in range(200)]


# Nobody is left behind


FAMILY = """
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=False)
open(example['where'], 'w').write(f'{os.getpid()} {child.pid}')
"""


def family(path: Path) -> list[int]:
    return [int(each) for each in path.read_text().split()]


@linux
def test_after_a_run_nobody_is_left(program: Make, tmp_path: Path) -> None:
    parent = program(FAMILY.strip() + "\nsay({'response': 'x'})")
    (row,) = evaluate(parent, [{**EXAMPLE, "where": str(tmp_path / "pids")}]).rows
    assert row.error is None
    assert [gone(each) for each in family(tmp_path / "pids")] == [True, True]


@linux
@pytest.mark.parametrize("then", ["time.sleep(60)", "print('garbage', flush=True)", "sys.exit(1)"])
def test_after_a_failure_nobody_is_left(program: Make, tmp_path: Path, then: str) -> None:
    parent = program(FAMILY.strip() + f"\n{then}", timeout=1.0)
    with pytest.raises(SystemFailure):
        parent.process({**EXAMPLE, "where": str(tmp_path / "pids")})
    assert [gone(each) for each in family(tmp_path / "pids")] == [True, True]


@linux
def test_behind_a_reader_nobody_is_left(program: Make, tmp_path: Path) -> None:
    parent = program(FAMILY.strip() + "\nsay({'context': 'x'})")
    with Server(completion("France")) as server:
        system = WithReader(parent, OpenAIProxy(server.url))
        (row,) = evaluate(system, [{**EXAMPLE, "where": str(tmp_path / "pids")}]).rows
    assert row.error is None
    assert [gone(each) for each in family(tmp_path / "pids")] == [True, True]


@linux
def test_a_command_that_is_forgotten_takes_its_programs_along(program: Make, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(LOOP + "    say({'response': str(os.getpid())})\n")
    forgotten = Command([sys.executable, str(path)])
    identity = int(forgotten.process(EXAMPLE)["response"])
    assert alive(identity)
    del forgotten
    assert gone(identity)


@linux
def test_the_death_of_the_parent_is_the_end_of_its_programs(tmp_path: Path) -> None:
    import subprocess

    path = tmp_path / "own.py"
    path.write_text(LOOP + "    say({'response': str(os.getpid())})\n")
    script = (
        "import sys, os, signal\nfrom context_bench.systems import Command\n"
        f"print(Command([sys.executable, {str(path)!r}]).process({{'id': 1}})['response'], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=30)
    assert done.returncode == -9
    assert gone(int(done.stdout))


def test_no_thread_is_left(program: Make) -> None:
    before = threading.active_count()
    echo = program("say({'response': 'x'})")
    for _ in range(5):
        echo.process(EXAMPLE)
        echo.finish()
    deadline = time.monotonic() + 3
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_after_close_it_can_go_on(program: Make) -> None:
    echo = program("say({'response': str(os.getpid())})")
    first = echo.process(EXAMPLE)["response"]
    echo.finish()
    assert echo.process(EXAMPLE)["response"] != first
    assert int(first) != os.getpid()


# By name, and in the cache


def test_a_reference_takes_the_command_line_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(LOOP + "    say({'response': ' '.join(sys.argv[1:])})\n")
    text = f"command:{sys.executable} {path} --ratio=0.5 --names=a,b 'x|y'"
    (system,) = build_systems(text)
    try:
        assert system.name == text
        assert system.process(EXAMPLE)["response"] == "--ratio=0.5 --names=a,b x|y"
    finally:
        system.finish()  # type: ignore[attr-defined]


def test_the_fingerprint_is_the_command_line() -> None:
    assert Command("cat -u").fingerprint == Command(["cat", "-u"], timeout=1, name="n").fingerprint
    assert Command("cat").fingerprint != Command("cat -u").fingerprint


# How it ended, and what it is called


@pytest.mark.parametrize("code", [1, 3, 137])
def test_a_program_that_fails_tells_its_own_exit_code(program: Make, code: int) -> None:
    """It says nothing more a good while before it is gone, as programs with much to clean up do."""
    body = f"os.close(1)\ntime.sleep(0.3)\nos._exit({code})"
    with pytest.raises(SystemFailure, match=rf"ended \(exit code {code}\) without an answer"):
        program(body).process(EXAMPLE)


def test_a_program_with_a_bug_tells_one(program: Make, capfd: pytest.CaptureFixture[str]) -> None:
    crash = program(script="import sys\nsys.stdin.readline()\nraise KeyError('answer')")
    for _ in range(5):
        with pytest.raises(SystemFailure, match=r"ended \(exit code 1\) without an answer"):
            crash.process(EXAMPLE)
    assert "KeyError" in capfd.readouterr().err


@linux
def test_a_program_that_closes_its_output_and_stays_is_ended(program: Make, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    silent = program(f"open({str(mark)!r}, 'w').write(str(os.getpid()))\nos.close(1)\ntime.sleep(60)")
    with pytest.raises(SystemFailure, match="closed its output without an answer, and was stopped"):
        silent.process(EXAMPLE)
    assert gone(int(mark.read_text()))


@pytest.mark.parametrize(
    ("reference", "name", "words"),
    [
        ("command:cat -u", "command:cat -u", ["cat", "-u"]),
        ("command:name=mine,cat -u", "mine", ["cat", "-u"]),
        ("command:name=mine,timeout=5,cat a=1,b=2", "mine", ["cat", "a=1,b=2"]),
        ("command:cat name=x,y", "command:cat name=x,y", ["cat", "name=x,y"]),
    ],
)
def test_a_name_stands_before_the_command(reference: str, name: str, words: list[str]) -> None:
    (system,) = build_systems(reference)
    assert system.name == name
    assert system.command == words  # type: ignore[attr-defined]
    if "timeout" in reference:
        assert system.timeout == 5  # type: ignore[attr-defined]
