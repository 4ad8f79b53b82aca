"""Cuts at the size of a system that a model answers from: with a reader, behind a tap, resumed, and where it failed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from command import called
from context_bench.systems.matched_control import CUTS
from servers import free_port
from toy_proxies import toy_proxy

SHAKY = """
class Shaky:
    reads_gold = False

    def process(self, example):
        if example["context"].count("e") % 3 == 0:
            raise ValueError("not this one")
        words = example["context"].split(" ")
        return {"context": " ".join(words[len(words) // 2 :])}
"""
DATA = ("--dataset", "needle:length=300,n=20", "--quiet", "--output", "json")


def _read(done: Any) -> Any:
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def _sizes(result: Any, name: str) -> dict[str, tuple[int, int]]:
    """Tokens that were sent, and those that reached the model, of the rows without an error."""
    rows = [row for row in result["rows"] if row["system"] == name and row["error"] is None]
    return {row["example_id"]: (row["metadata"]["sent_tokens"], row["upstream_tokens"]) for row in rows}


def test_a_proxy_is_followed_through_its_tap_and_from_the_store(tmp_path: Path) -> None:
    port = free_port()
    with toy_proxy("truncates", f"http://127.0.0.1:{port}") as url:
        tap = ("--proxy", url, "--name", "gateway", "--tap", f":{port}", "--tap-reply", "extract", *DATA)
        first = _read(called(*tap, "--controls", cwd=tmp_path))
        result = _read(called(*tap, "--controls=all", "--resume", cwd=tmp_path))
    controls = [f"gateway ({cut})" for cut in CUTS]
    assert [*first["summary"], *controls] == list(result["summary"])
    assert result["config"]["reused"] == len(first["rows"]), "only the cuts were asked for"
    own = _sizes(result, "gateway")
    assert sum(sent - left for sent, left in own.values()) > 0, "the proxy cuts"
    for name in controls[:3]:
        sizes = _sizes(result, name)
        assert max(abs(sizes[key][1] - left) for key, (_, left) in own.items()) <= 4
    found = result["comparison"]["sensitivity"]["gateway"]
    assert (found["asked"], found["n"]) == (True, 20)
    means = {f"gateway ({each['name']})": each["kept"] for each in found["controls"]}
    assert means == {name: pytest.approx(result["summary"][name]["mean_score"]) for name in controls}
    verdicts = {each["name"]: each for each in result["comparison"]["verdicts"]}
    assert all(verdicts[name]["control"] for name in controls)


def test_examples_on_which_a_compressor_failed_have_no_size(tmp_path: Path) -> None:
    (tmp_path / "shaky.py").write_text(SHAKY)
    systems = ("--system", "passthrough", "--system", "shaky.py:Shaky", "--tap-reply", "extract")
    with mock.patch.dict(os.environ, {"CONTEXT_BENCH_CONTROLS": "matched"}):
        result = _read(called(*systems, *DATA, "--no-store", cwd=tmp_path))
    name = "shaky.py:Shaky"
    assert not any(each.startswith("passthrough (") for each in result["summary"])
    failed = {row["example_id"] for row in result["rows"] if row["system"] == name and row["error"]}
    assert 0 < len(failed) < 20
    for cut in CUTS:
        rows = [row for row in result["rows"] if row["system"] == f"{name} ({cut})" and row["error"]]
        assert {row["example_id"] for row in rows} == failed
        assert all("so there is no size to match" in row["error"] for row in rows)
    assert result["comparison"]["sensitivity"][name]["n"] == 20 - len(failed)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--controls=matched",), "--controls=matched asks a model: add --reader, or a tap"),
        (("--controls=some",), "--controls must be standard, matched or all (got 'some')"),
    ],
)
def test_what_is_refused(flags: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = called("--system", "truncate", "--dataset", "needle:n=4", *flags, cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_run_file_takes_true_and_a_word(tmp_path: Path) -> None:
    for value, systems in (("true", 4), ('"matched"', 5), ("false", 1)):
        text = (
            f'system = ["truncate"]\ndataset = ["needle:length=200,n=2"]\ntap-reply = "extract"\ncontrols = {value}\n'
        )
        (tmp_path / "bench.toml").write_text(text)
        done = called("run", "bench.toml", "--quiet", "--output", "csv-summary", "--no-store", cwd=tmp_path)
        assert len(done.stdout.splitlines()) == 1 + systems, done.stderr
