"""The proxy under test as a real process: it comes up, and nothing of it stays behind, however the run ends."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from context_bench.errors import StartFailed, UsageError
from context_bench.processes import guardian
from context_bench.processes.started_proxy import StartedProxy, _Waiting
from servers import free_port

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")

SERVE = """
import http.server, json, os, signal, socket, subprocess, sys, time
port, where = int(sys.argv[1]), sys.argv[2]
with open(os.path.join(where, "told"), "w") as file:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ), "pid": os.getpid()}, file)
def serve():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404); self.end_headers()
        def log_message(self, *_): pass
    http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def program(tmp_path: Path, more: str = "serve()") -> str:
    """A command that starts a small server, after some lines of its own."""
    source = tmp_path / "proxy.py"
    source.write_text(SERVE + more, encoding="utf-8")
    return f"'{sys.executable}' '{source}' {{port}} '{tmp_path}'"


def proxy(command: str, **options: object) -> StartedProxy:
    return StartedProxy(command, port=free_port(), tap_url="http://127.0.0.1:9", **{"timeout": 20.0, **options})  # type: ignore[arg-type]


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)


def left(token: str) -> set[int]:
    """Who of the family is alive, looked up here and not by the code under test."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if token.encode() in (entry / "environ").read_bytes() and state != "Z":
                found.add(int(entry.name))
        except (OSError, UnicodeDecodeError):
            continue
    return found


def until(wanted: Callable[[], bool], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while not wanted():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def run(started: StartedProxy, during: Callable[[], object] = lambda: None) -> None:
    async def main() -> None:
        async with started:
            await asyncio.to_thread(during)

    asyncio.run(main())


def told(tmp_path: Path) -> dict[str, object]:
    return dict(json.loads((tmp_path / "told").read_text()))


def test_it_answers_while_the_run_lasts_and_is_gone_after_it(tmp_path: Path) -> None:
    started = proxy(program(tmp_path))
    seen = []
    run(started, lambda: seen.append(status(started.url + "/any")))
    assert seen == [404]
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(started.url, timeout=2)


def test_the_template_is_filled_in_word_by_word_and_other_braces_stay(tmp_path: Path) -> None:
    command = program(tmp_path) + """ --up {tap}/v1 '{"a": {x}}' {host}:{port} 'two words'"""
    started = proxy(command)
    run(started)
    port = str(started.port)
    expected = [port, str(tmp_path), "--up", "http://127.0.0.1:9/v1", '{"a": {x}}', f"127.0.0.1:{port}", "two words"]
    assert told(tmp_path)["argv"] == expected


def test_its_environment_is_ours_and_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    monkeypatch.setenv("NO_PROXY", "intern.example")
    monkeypatch.setenv("BRACES", "{port}")
    run(proxy(program(tmp_path), env={"HOME_OF_IT": "{scratch}/home", "TELEMETRY": "off"}))
    env = told(tmp_path)["env"]
    assert isinstance(env, dict)
    assert (env["OPENAI_API_KEY"], env["TELEMETRY"], env["BRACES"]) == ("sk-of-the-user", "off", "{port}")
    assert env["NO_PROXY"] == "intern.example,127.0.0.1,localhost,::1"
    assert "127.0.0.1" in env["no_proxy"]
    scratch = Path(env["HOME_OF_IT"]).parent
    assert scratch.name.startswith("context-bench-")
    assert not scratch.exists()


FAMILY = """
child = [sys.executable, "-c", "import time; time.sleep(600)"]
subprocess.Popen(child)                                           # in its group
subprocess.Popen(child, start_new_session=True)                   # in a session of its own
subprocess.Popen(["sh", "-c", "setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' &"])  # an orphan at once
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, env={}).stdout.readline()  # deaf and unmarked
serve()
"""


@needs_proc
def test_all_of_its_family_ends_also_those_that_left_or_do_not_listen(tmp_path: Path) -> None:
    started = proxy(program(tmp_path, FAMILY))
    before: set[int] = set()
    seconds = []

    def look() -> None:
        assert until(lambda: len(left(started.token)) >= 8)
        assert started._guardian is not None
        before.update(guardian.find_descendants(started._guardian.pid))
        seconds.append(time.monotonic())

    run(started, look)
    assert len(before) >= 8
    assert left(started.token) == set()
    assert not [pid for pid in before if os.path.exists(f"/proc/{pid}")]
    assert 4.5 < time.monotonic() - seconds[0] < 30  # the grace, for the one that does not listen


@needs_proc
def test_a_program_that_goes_to_the_background_is_kept_and_then_ended(tmp_path: Path) -> None:
    started = proxy(program(tmp_path, "if os.fork() == 0:\n    os.setsid()\n    os.fork() == 0 and serve()\n"))
    run(started, lambda: until(lambda: False, 1.0) or status(started.url))
    assert left(started.token) == set()


@needs_proc
def test_a_run_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    started = proxy(program(tmp_path))

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(started, fail)
    assert left(started.token) == set()


@needs_proc
def test_a_killed_guardian_does_not_save_the_family(tmp_path: Path) -> None:
    started = proxy(program(tmp_path))

    def kill() -> None:
        assert started._guardian is not None
        os.kill(started._guardian.pid, signal.SIGKILL)

    run(started, kill)
    assert until(lambda: left(started.token) == set(), 2.0)


OWNER = """
import asyncio, sys
from context_bench.processes.started_proxy import StartedProxy
started = StartedProxy(sys.argv[1], port=int(sys.argv[2]), tap_url="http://127.0.0.1:9", timeout=20.0)
async def main():
    await started.start()
    print(started.token, flush=True)
    {then}
asyncio.run(main())
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Callable[[str, str], tuple[subprocess.Popen[str], str]]]:
    """Somebody who starts a proxy, says its token, and goes on as told."""
    running: list[subprocess.Popen[str]] = []

    def start(then: str, more: str = "serve()") -> tuple[subprocess.Popen[str], str]:
        script = OWNER.replace("{then}", then)
        command = [sys.executable, "-c", script, program(tmp_path, more), str(free_port())]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        running.append(process)
        assert process.stdout is not None
        token = process.stdout.readline().strip()
        assert token, process.communicate()[1]
        return process, token

    yield start
    for process in running:
        process.kill()
        process.communicate()


@needs_proc
def test_kill_9_takes_the_whole_family_along(owner: Callable[..., tuple[subprocess.Popen[str], str]]) -> None:
    process, token = owner("await asyncio.sleep(600)", 'subprocess.Popen(["setsid", "sleep", "600"])\nserve()')
    assert until(lambda: len(left(token)) == 3)  # guardian, server, sleep
    process.kill()
    assert until(lambda: left(token) == set(), 8.0)


@needs_proc
def test_an_interpreter_that_just_ends_stops_it(owner: Callable[..., tuple[subprocess.Popen[str], str]]) -> None:
    process, token = owner("pass")
    assert process.wait(20) == 0
    assert left(token) == set()


@needs_proc
def test_an_interrupt_reaches_us_and_not_the_proxy(
    owner: Callable[..., tuple[subprocess.Popen[str], str]], tmp_path: Path
) -> None:
    note = 'lambda number, _: (open(os.path.join(where, "signals"), "a").write(f"{number} "), sys.exit(0))'
    more = f"for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, {note})\nserve()"
    process, token = owner("await asyncio.sleep(600)", more)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    process.communicate(timeout=20)
    assert left(token) == set()
    assert (tmp_path / "signals").read_text().split() == [str(int(signal.SIGTERM))]


def test_a_port_that_is_taken_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    first = proxy(program(tmp_path))

    def second() -> None:
        (tmp_path / "told").unlink()
        other = StartedProxy(program(tmp_path), port=first.port, tap_url="http://127.0.0.1:9")
        with pytest.raises(UsageError, match=f"something already listens on 127.0.0.1:{first.port}"):
            run(other)
        assert not (tmp_path / "told").exists()

    run(first, second)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("no-such-proxy --port {port}", "there is no program 'no-such-proxy' to start"),
        ("A=1 python", "there is no program 'A=1' to start: no shell is used, so write env NAME=VALUE PROGRAM ..."),
    ],
)
def test_a_program_that_does_not_exist(command: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        run(proxy(command))
    assert str(error.value) == sentence


@pytest.mark.parametrize(("command", "what"), [("", "is empty"), ("proxy 'open", "cannot be split")])
def test_a_command_that_is_none(command: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        proxy(command)


def test_one_that_ends_early_is_quoted_without_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    say = 'print("\\x1b[31mno config", os.environ["ANTHROPIC_API_KEY"])\nsys.exit(3)'
    started = proxy(program(tmp_path, say))
    with pytest.raises(StartFailed) as error:
        run(started)
    expected = f"{started.name} ended with exit code 3 before it answered on 127.0.0.1:{started.port}; it said: "
    assert str(error.value) == expected + "[31mno config ***"


def test_one_that_cannot_be_run_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00\x01not a program")
    broken.chmod(0o755)
    with pytest.raises(
        StartFailed, match=r"broken ended with exit code 127 .*/broken cannot be run: Exec format error"
    ):
        run(proxy(f"'{broken}'"))


@needs_proc
def test_one_that_never_answers_is_given_up_and_ended(tmp_path: Path) -> None:
    started = proxy(program(tmp_path, 'print("loading", flush=True)\ntime.sleep(600)'), timeout=1.0)
    with pytest.raises(StartFailed) as error:
        run(started)
    assert str(error.value).endswith(f"did not answer on {started.url} within 1 s; it said: loading")
    assert left(started.token) == set()


def test_something_that_speaks_no_http_is_not_healthy(tmp_path: Path) -> None:
    greet = """
listener = socket.create_server(("127.0.0.1", port))
while True:
    listener.accept()[0].sendall(b"220 mail ready\\r\\n")
"""
    with pytest.raises(StartFailed, match="did not answer"):
        run(proxy(program(tmp_path, greet), timeout=1.0))


def test_its_output_goes_to_the_log_and_not_to_us(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "proxy.log"
    run(proxy(program(tmp_path, 'print("hello", flush=True)\nprint("oops", file=sys.stderr)\nserve()'), log=log))
    assert log.read_text().split() == ["hello", "oops"]
    assert capfd.readouterr() == ("", "")


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write the output of .* to .*/none/log: No such file"):
        run(proxy(program(tmp_path), log=tmp_path / "none" / "log"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "shown"), [(Terminal(), "\r\x1b[2Kstarting kompact … 12 s\r\x1b[2K"), (io.StringIO(), "")]
)
def test_a_line_tells_how_long_it_takes_where_somebody_looks(stream: io.StringIO, shown: str) -> None:
    with _Waiting("kompact", stream) as waiting:
        waiting.show(0.5)
        waiting.show(12.3)
    assert stream.getvalue() == shown


def test_without_proc_the_group_is_ended(tmp_path: Path) -> None:
    script = (
        "import importlib.util, os, sys\n"
        "spec = importlib.util.spec_from_file_location('guardian', sys.argv[1])\n"
        "guardian = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(guardian)\n"
        "os.path.isdir = lambda _: False\n"
        "sys.exit(guardian.guard(['sh', '-c', 'sleep 600 & echo $! $$; wait']))\n"
    )
    command = [sys.executable, "-c", script, guardian.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert until(lambda: not any(map(_alive, pids)), 2.0)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
