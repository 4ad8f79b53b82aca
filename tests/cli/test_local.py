"""`context-bench local`: the model served, asked by a run, and ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command import called, environment, shell
from servers import free_port
from small_model import small_model


@contextmanager
def served(*arguments: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command while it serves, and the URL that it names."""
    command = [sys.executable, "-m", "context_bench", "local", "--listen", ":0", "--context", "2048", *arguments]
    process = subprocess.Popen(command, cwd=cwd, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stderr is not None
    try:
        found = re.search(r"answers at (http://127\.0\.0\.1:\d+);", process.stderr.readline())
        assert found
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def children(pid: int) -> list[int]:
    """The children of a process, whichever of its threads started them."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def test_a_run_asks_it_and_a_signal_ends_it(tmp_path: Path) -> None:
    small_model()
    (tmp_path / "data.jsonl").write_text(
        json.dumps(
            {
                "id": 1,
                "context": "The garden has three apple trees. The access code of the vault is 7391.",
                "question": "What is the access code of the vault?",
                "answer": "7391",
            }
        )
    )
    with served(cwd=tmp_path) as (process, url):
        run = shell(
            *("--proxy", url, "--model", "local", "--dataset", "data.jsonl", "--score-field", "contains"),
            *("--output", "json", "--no-store"),
            cwd=tmp_path,
        )
        assert run.returncode == 0, run.stderr
        assert "7391" in json.loads(run.stdout)["rows"][0]["response"]
        (model,) = children(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert f"context-bench --proxy {url} --model local" in said
    assert "smoke test: SmolLM2-135M-Instruct" in said
    assert said.endswith("context-bench: stopped\n")
    assert not Path(f"/proc/{model}").exists()


@pytest.mark.long
def test_a_model_that_has_broken_off_comes_back_at_the_same_address(tmp_path: Path) -> None:
    small_model()
    with served(cwd=tmp_path) as (process, url):
        assert process.stderr is not None
        (model,) = children(process.pid)
        os.kill(model, signal.SIGSEGV)
        done = shell(
            *(
                "--proxy",
                url,
                "--model",
                "local",
                "--dataset",
                "needle:length=60,n=1",
                "--output",
                "json",
                "--no-store",
            ),
            cwd=tmp_path,
        )
        assert json.loads(done.stdout)["rows"][0]["error"] is None
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert "the local model's process was ended by SIGSEGV: starting it again\n" in process.stderr.read()


def test_what_the_model_cannot_read_is_a_400(tmp_path: Path) -> None:
    small_model()
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    asked = {"model": "local", "messages": [{"role": "user", "content": [image]}]}
    with served(cwd=tmp_path) as (_, url):
        for path, body, why in (
            ("/v1/chat/completions", asked, "reads only text: leave out image_url"),
            ("/v1/messages", {"messages": "x"}, "not a JSON object with messages"),
        ):
            request = urllib.request.Request(
                url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request, timeout=60):
                pass
            with refused.value as error:
                assert (error.code, why in error.read().decode()) == (400, True)
        with urllib.request.urlopen(f"{url}/v1/models/local", timeout=60) as found:
            assert json.loads(found.read())["id"] == "SmolLM2-135M-Instruct"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "absent.gguf"], "no model file at absent.gguf"),
        (["--model", "data.txt"], "data.txt is not a GGUF file"),
        (["--listen", "8080"], "'8080' is not an address to listen on"),
        (["--listen", ":70000"], "':70000' is not an address to listen on"),
        (["--threads", "0"], "--threads"),
        (["--context", "x"], "--context"),
        (
            ["--context", "9000"],
            r"context must be at most 8192 tokens for SmolLM2-135M-Instruct \(got 9000\)",
        ),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "data.txt").write_text("a text")
    done = called("local", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr


def test_without_a_network_one_sentence_says_so(tmp_path: Path) -> None:
    nowhere = {
        "CONTEXT_BENCH_MODELS": str(tmp_path / "models"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_INDEX_URL": f"http://127.0.0.1:{free_port()}/simple",
    }
    done = shell("local", "--listen", ":0", cwd=tmp_path, env=environment(**nowhere))
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first == f"context-bench: fetching SmolLM2-135M-Instruct (93 MB, once) into {tmp_path / 'models'}"
    assert second.startswith("context-bench: cannot fetch SmolLM2-135M-Instruct: ")


def test_without_the_extra_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("CONTEXT_BENCH_MODELS", str(tmp_path / "models"))
    done = called("local", cwd=tmp_path)
    assert done.returncode == 2
    expected = "pip install 'ctxbench[local]' (in a checkout: pip install '.[local]')"
    assert done.stderr == f"context-bench: a local model needs an optional dependency: {expected}\n"


def test_other_machines_are_let_in_only_when_told_and_with_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    done = called("local", "--listen", "203.0.113.7:0", "--model", "absent.gguf", cwd=tmp_path)
    assert "warning" not in done.stderr  # the mistake comes first
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    done = called("local", "--listen", "203.0.113.7:0", "--model", "broken.gguf", cwd=tmp_path)
    assert "203.0.113.7:0 is open to other machines" in done.stderr
    assert "cannot serve broken.gguf" in done.stderr
