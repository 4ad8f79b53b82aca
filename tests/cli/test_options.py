"""Typed options: every flag of a run has its field, and scoring is told what a run will know."""

from __future__ import annotations

from dataclasses import fields

from context_bench.cli.options import RunOptions
from context_bench.cli.run_flags import run_parser


def test_every_flag_of_a_run_has_a_field_and_the_other_way_round() -> None:
    flags = {action.dest for action in run_parser()._actions} - {"help", "help_all", "version"}
    assert {field.name for field in fields(RunOptions)} == flags | {"model_given", "command", "typed", "run_file"}


def run_options(*flags: str) -> RunOptions:
    given = vars(run_parser().parse_args(flags))
    del given["version"], given["help_all"]
    more = {"model": "m", "timeout": 1.0, "output": "table", "model_given": True, "command": [], "typed": []}
    return RunOptions(**given | more | {"run_file": None})


def test_what_a_run_will_know_of_the_model_behind_its_systems() -> None:
    bare = run_options("--proxy", "http://a").scoring
    assert (bare.sees_upstream, bare.ranks_by_upstream, bare.answering_model) == (False, False, "m")
    read = run_options("--system", "bm25", "--reader", "http://a").scoring
    assert (read.sees_upstream, read.ranks_by_upstream, read.judges_contexts) == (True, True, False)
    both = run_options("--proxy", "http://b", "--system", "bm25", "--reader", "http://a").scoring
    assert (both.sees_upstream, both.ranks_by_upstream) == (True, False)
    tapped = run_options("--proxy", "http://b", "--tap", ":9100", "--tap-reply", "echo", "--system", "bm25").scoring
    assert (tapped.sees_upstream, tapped.ranks_by_upstream) == (True, True)


def test_where_answers_are_kept() -> None:
    assert run_options().store == ".context-bench"
    assert run_options("--cache-dir", "d").store == "d"
    assert run_options("--no-store").store is None
    assert not run_options().reuses_answers
    assert run_options("--resume").reuses_answers
    assert run_options("--cache-dir", "d").reuses_answers
    assert not run_options("--cache-dir", "d", "--fresh").reuses_answers
