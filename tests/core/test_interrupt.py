"""Ctrl-C, sent for real: once to finish what is in flight, twice to stop now; what was answered is stored anyhow."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command import called, environment
from numbered import asked, number_of, right, write
from servers import Reply, Request, Server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")


def start(*arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "context_bench", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, cwd=cwd, env=environment(), encoding="utf-8", **options)


def wait_for(server: Server, requests: int) -> None:
    give_up = time.monotonic() + 60
    while len(server.chats) < requests:
        assert time.monotonic() < give_up, f"{len(server.chats)} requests came"
        time.sleep(0.002)


def late(seconds: float, first: int) -> object:
    """The right answer; from example `first` on after a while."""

    def answer(request: Request) -> Reply:
        given = right(request)
        given.delay = seconds if number_of(request) >= first else 0.0
        return given

    return answer


def test_once_finishes_what_is_in_flight_and_reports(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(100))
    with Server(late(0.4, first=20)) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "4")
        process = start(*run, "--output", "json", cwd=tmp_path)
        wait_for(server, 22)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert "finishing the requests in flight" in err
        assert "context-bench: interrupted" in err
        assert err.splitlines()[-1].endswith(" --resume")  # the line that goes on from here
        document = json.loads(out)
        done = [row["example_id"] for row in document["rows"]]
        assert done == sorted(asked(server)), "what was asked was waited for, and nothing more was asked"
        assert {row["error"] for row in document["rows"]} == {None}
        assert len(done) <= 26
        assert document["summary"]["p"]["num_examples"] == len(done)
        exported = json.loads(called("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout)
        assert [row["example_id"] for row in exported["rows"]] == done
        assert "interrupted" in called("runs", "list", cwd=tmp_path).stdout
        server.script = [right]
        resumed = called(*run, "--resume", cwd=tmp_path)
        assert resumed.returncode == 0
    assert set(asked(server).values()) == {1}
    assert len(asked(server)) == 100


def test_twice_stops_now_and_loses_nothing_that_was_there(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(60))
    with Server(late(30.0, first=20)) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "4")
        process = start(*run, "--output", "json", cwd=tmp_path)
        wait_for(server, 24)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert time.monotonic() - started < 18
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert "destroyed" not in err
        assert [row["example_id"] for row in json.loads(out)["rows"]] == list(range(20))
        server.script = [right]
        resumed = called(*run, "--resume", "--output", "json", cwd=tmp_path)
        assert resumed.returncode == 0, resumed.stderr
        assert len(json.loads(resumed.stdout)["rows"]) == 60
    assert {number for number, times in asked(server).items() if times > 1} <= {20, 21, 22, 23}


def test_where_interrupts_are_ignored_they_stay_ignored(tmp_path: Path) -> None:
    """As under nohup, or in the background of a script: Ctrl-C in that terminal is for somebody else."""
    write(tmp_path / "data.jsonl", *range(30))
    with Server(late(0.1, first=4)) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--output", "json")
        process = start(*run, cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        wait_for(server, 5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(json.loads(out)["rows"]) == 30


def test_twice_does_not_wait_for_a_system_that_hangs(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(5))
    (tmp_path / "hangs.py").write_text(
        "import time\n"
        "def system(example):\n"
        "    if example['id'] == 2:\n"
        "        print('hanging', flush=True)\n"
        "        time.sleep(60)\n"
        "    return example['context']\n"
    )
    process = start("--system", "hangs.py:system", "--dataset", "data.jsonl", "--output", "json", cwd=tmp_path)
    assert process.stderr is not None
    assert process.stderr.readline() == "hanging\n"  # what a system prints stays out of the report
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 18
    assert process.returncode == 130, err
    assert [row["example_id"] for row in json.loads(out)["rows"]] == [0, 1]
    assert "interrupted" in called("runs", "list", cwd=tmp_path).stdout


def test_while_a_judge_is_at_work(tmp_path: Path) -> None:
    """The answers are kept, those that the judge did not come to are judged later."""
    write(tmp_path / "data.jsonl", *range(12))
    (tmp_path / "judge.py").write_text(
        "import time\n"
        "class Judge:\n"
        "    name, version, slow = 'judge', 1, True\n"
        "    def score(self, original, processed):\n"
        "        time.sleep(30 if original['id'] >= 4 else 0)\n"
        "        return {'judged': 1.0}\n"
    )
    with Server(late(0.3, first=4)) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--evaluator", "judge.py:Judge")
        process = start(*run, "--output", "json", cwd=tmp_path)
        wait_for(server, 12)
        time.sleep(0.8)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, err = process.communicate(timeout=40)
        assert time.monotonic() - started < 18
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert "destroyed" not in err
        assert [row["example_id"] for row in json.loads(out)["rows"]] == [0, 1, 2, 3]
        (tmp_path / "judge.py").write_text((tmp_path / "judge.py").read_text().replace("30", "0"))
        resumed = called(*run, "--resume", "--output", "json", cwd=tmp_path)
        rows = json.loads(resumed.stdout)["rows"]
    assert [row["scores"]["judged"] for row in rows] == [1.0] * 12
    assert len(server.chats) == 12


def test_before_the_first_example(tmp_path: Path) -> None:
    """A server that lets the first look hang: nothing is done, and that is told."""
    import socket

    write(tmp_path / "data.jsonl", 1, 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = start("--proxy", url, "--dataset", "data.jsonl", cwd=tmp_path)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
    # The second signal may come when Python is about to exit, and listens to none any more.
    assert process.returncode in (130, -signal.SIGINT), err
    assert "Traceback" not in err
    assert "interrupted" in err


def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(100))
    with Server(late(0.4, first=20)) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--max-workers", "4")
        process = start(*run, "--output", "json", cwd=tmp_path)
        wait_for(server, 22)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert "context-bench: interrupted" in err
        assert err.splitlines()[-1].endswith(" --resume")  # the line that goes on from here
        done = [row["example_id"] for row in json.loads(out)["rows"]]
        assert done == sorted(asked(server)), "what was asked was waited for, and nothing more was asked"
        assert "interrupted" in called("runs", "list", cwd=tmp_path).stdout


def test_sigterm_waits_for_seconds_and_no_longer(tmp_path: Path) -> None:
    """A container is killed ten seconds after it was asked to stop: the report must be out by then."""
    write(tmp_path / "data.jsonl", *range(60))
    with Server(late(60.0, first=20)) as server:
        process = start(
            *("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--timeout", "90", "--output", "json"),
            cwd=tmp_path,
        )
        wait_for(server, 24)
        time.sleep(0.1)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert time.monotonic() - started < 25
    assert process.returncode == 130, err
    assert [row["example_id"] for row in json.loads(out)["rows"]] == list(range(20))
