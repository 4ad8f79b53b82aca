"""What scores a run: what it will know of the model behind its systems decides that, and where answers are kept."""

from __future__ import annotations

from context_bench.cli.build_scoring import ScoringOptions
from context_bench.cli.commands import run_parser
from context_bench.cli.flags import read_values
from context_bench.config import RunOptions


def run_options(*flags: str) -> RunOptions:
    return RunOptions(**read_values(run_parser(), RunOptions, flags).given)


def scoring(*flags: str) -> ScoringOptions:
    return ScoringOptions.read(run_options("--model", "m", *flags))


def test_what_a_run_will_know_of_the_model_behind_its_systems() -> None:
    bare = scoring("--proxy", "http://a")
    assert (bare.sees_upstream, bare.ranks_by_upstream, bare.answering_model) == (False, False, "m")
    read = scoring("--system", "bm25", "--reader", "http://a")
    assert (read.sees_upstream, read.ranks_by_upstream, read.judges_contexts) == (True, True, False)
    both = scoring("--proxy", "http://b", "--system", "bm25", "--reader", "http://a")
    assert (both.sees_upstream, both.ranks_by_upstream) == (True, False)
    tapped = scoring("--proxy", "http://b", "--tap", ":9100", "--tap-reply", "echo", "--system", "bm25")
    assert (tapped.sees_upstream, tapped.ranks_by_upstream) == (True, True)


def test_where_answers_are_kept() -> None:
    assert run_options().store_folder == ".context-bench"
    assert run_options("--cache-dir", "d").store_folder == "d"
    assert run_options("--no-store").store_folder is None
    assert not run_options().reuses_answers
    assert run_options("--resume").reuses_answers
    assert run_options("--cache-dir", "d").reuses_answers
    assert not run_options("--cache-dir", "d", "--fresh").reuses_answers
