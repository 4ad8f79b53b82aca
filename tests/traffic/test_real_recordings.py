"""Real recordings, read by every reader: the counts and sums that their authors published, or that are in their files.

They are found in the folder `traffic` of CONTEXT_BENCH_DATA.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from context_bench.traffic.parts import PromptCounter
from context_bench.traffic.readers import Findings, read_sessions, read_threads
from context_bench.traffic.sessions import Request, Session, Usage, fit_tokens
from context_bench.utils.tokens import get_tokenizer


@pytest.fixture(scope="module")
def folder() -> Path:
    found = Path(os.environ.get("CONTEXT_BENCH_DATA", "/nowhere")) / "traffic"
    if not found.is_dir():
        pytest.skip("set CONTEXT_BENCH_DATA to a folder that has traffic/")
    return found


def read(*paths: Path) -> tuple[list[Session], list[Request], Findings]:
    findings = Findings()
    sessions = list(read_sessions(paths, findings))
    return sessions, [request for each in sessions for request in each.requests], findings


def sum_up(requests: list[Request]) -> Usage:
    """The sum of what was billed; the cache stays unknown only where no request reports it."""
    listed = [request.usage for request in requests if request.usage is not None]
    reads = [each.cache_read for each in listed if each.cache_read is not None]
    outputs = [each.output for each in listed if each.output is not None]
    return Usage(
        sum(each.input for each in listed),
        sum(reads) if reads else None,
        sum(each.cache_write_5m for each in listed),
        sum(each.cache_write_1h for each in listed),
        sum(outputs) if outputs else None,
    )


CLAUDE = {
    "1af7": (7, 1, Usage(93, 103_219, 12_698, 0, 953)),
    "5c03": (20, 3, Usage(129, 324_259, 47_747, 0, 3_629)),
    "fe5e": (170, 6, Usage(818, 3_647_854, 137_976, 0, 51_933)),
}


def test_claude_code_sessions_have_the_requests_and_the_tokens_that_were_billed(folder: Path) -> None:
    steps = 0
    for start, (requests, threads, usage) in CLAUDE.items():
        (path,) = (folder / "claude-code").glob(f"{start}*.jsonl")
        (session,), found, _ = read(path)
        assert (session.id, len(session.threads), len(found)) == (path.stem, threads, requests)
        assert sum_up(found) == usage
        for thread in session.threads:
            known = [request.usage for request in thread.requests if request.usage]
            for before, after in pairwise(known):
                assert after.cache_read == (before.cache_read or 0) + before.cache_write
                steps += 1
    assert steps == 187


def test_the_prefix_that_claude_code_does_not_store_is_sized_by_a_fit(folder: Path) -> None:
    count = get_tokenizer()
    for thread in read_threads([folder / "claude-code"]):
        assert {"system: not stored", "tools: not stored"} <= set(thread.reconstructed)
        counter = PromptCounter(count)
        sized = [(counter.count_prompt(each), each.usage.prompt) for each in thread.requests if each.usage is not None]
        fit = fit_tokens([counted for counted, _ in sized], [billed for _, billed in sized])
        assert fit is not None
        assert (11_000 < fit.offset < 13_000) if thread.agent else (15_000 < fit.offset < 17_700)
        assert 1.15 < fit.slope < 1.45
        assert fit.worst < 800


def test_a_session_with_subagents_is_one_session_and_what_stands_beside_it_is_none(folder: Path) -> None:
    (session,), requests, findings = read(folder / "tokbench" / "c0-T-fix-claude-r1")
    usage = sum_up(requests)
    assert (len(session.threads), len(requests)) == (18, 226)
    assert (usage.input, usage.cache_read, usage.cache_write, usage.prompt) == (14_843, 4_726_345, 293_488, 5_034_676)
    reasons = {Path(each.path).name: each.reason for each in findings.others}
    assert reasons["journal.jsonl"] == "a journal of a workflow"
    assert reasons["wf_f0cff343-f99.json"] == "the manifest of a workflow"
    assert sum(reason == "facts about a subagent" for reason in reasons.values()) == 17
    assert all(each.requests == 0 for each in findings.others)


LEDGER = {
    "a0-T-fix-r2": 2_183_153,
    "a0-T-fix-r3": 2_705_356,
    "a0-T-fix-r4": 2_693_419,
    "a0-T-fix-r5": 2_122_389,
    "a0-T-fix-r6b": 1_894_592,
    "a1m-T-fix-r2": 3_015_055,
    "a1m-T-fix-r3": 2_699_832,
    "a1m-T-fix-r4": 3_577_301,
    "a2-T-fix-r1": 3_244_460,
    "a2-T-fix-r2": 1_944_790,
    "a2-T-fix-r3c": 2_571_467,
    "a2-T-fix-r4": 2_804_324,
    "a3-T-fix-r2": 2_147_541,
    "a3-T-fix-r3b": 2_839_459,
    "a3-T-fix-r4": 2_959_227,
    "a0c-T-fix-r1": 1_672_470,
}
"""Billed input tokens of each run, as the authors of tokbench published them."""


def test_transcripts_of_tokbench_have_the_tokens_of_its_ledger(folder: Path) -> None:
    beside = {"terminal output of a run", "events of an orchestrator", "the manifest of a run", "no JSON"}
    beside |= {"a proxy's own count of tokens", "a proxy's statistics"}
    for run, billed in LEDGER.items():
        _, requests, findings = read(folder / "tokbench" / run)
        assert sum_up(requests).prompt == billed, run
        assert {each.reason for each in findings.others} <= beside, run
        assert len(findings.recordings) >= 8, run
        tails = [each for each in findings.files if each.path.endswith((".tail.jsonl", "orchestrator.jsonl"))]
        assert len(tails) > 8
        assert not any(each.format for each in tails), run
    a0c = sum_up(read(folder / "tokbench" / "a0c-T-fix-r1")[1])
    assert (a0c.input, a0c.cache_read, a0c.cache_write) == (261, 1_539_531, 132_678)


OTHERS = {
    "codex/synthetic.jsonl": ("codex", [2]),
    "inspect/log_read_sample.json": ("inspect", [1]),
    "inspect/log_streaming.eval": ("inspect", [1, 1, 1, 1]),
    "mini-swe-agent/github_issue.traj.json": ("mini-swe-agent", [10]),
    "openhands/basic.json": ("openhands", [2]),
    "openhands/resolver_output.jsonl": ("openhands", [4, 22]),
    "swe-agent/marshmallow-1867.function_calling.traj": ("swe-agent", [13]),
    "swe-agent/pydicom-1458.gpt4.traj": ("swe-agent", [12]),
}
"""The format of each file, and the requests of its threads: SWE-agent's equal the `api_calls` that it recorded."""


def test_every_other_recording_is_read(folder: Path) -> None:
    for name, (format, requests) in OTHERS.items():
        findings = Findings()
        threads = list(read_threads([folder / name], findings))
        assert ([each.format for each in threads], [len(each.requests) for each in threads]) == (
            [format] * len(requests),
            requests,
        ), name
        assert not findings.files[0].skipped, name
    codex = next(read_threads([folder / "codex" / "synthetic.jsonl"]))
    assert [each.usage for each in codex.requests] == [Usage(750, 250, 0, 0, 125), Usage(2000, 500, 0, 0, 300)]
