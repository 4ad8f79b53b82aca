"""The commands with their help lines, the program's help, and the parser of a run, which needs no command."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from context_bench._version import __version__
from context_bench.cli.flags import Parser, add_groups
from context_bench.config import RunOptions

COMMANDS = {
    "run": "run the benchmark that a TOML file describes",
    "memory": "compare memory systems on conversations, at equal budgets",
    "plan": "show how many examples are needed, and their cost",
    "report": "write recorded runs as one page that opens offline",
    "plot": "draw a recorded run in the terminal, as quality against cost",
    "view": "show recorded runs in a browser, live",
    "runs": "list, show, export or remove recorded runs",
    "claims": "check published claims against bundles, runs or new measurements",
    "compare": "compare runs, or the systems of one run, and say which is better",
    "diff": "show how a system changed the context of one example",
    "score": "score a recorded run again, without calling any system",
    "judge-check": "measure how often a judge accepts wrong or rejects right answers",
    "tap": "record the requests that reach the model behind a proxy",
    "traffic": "show the content and cost of recorded sessions",
    "conformance": "check that a proxy keeps the protocol intact",
    "fuzz": "find inputs on which a system, proxy or memory breaks",
    "replay": "show what a proxy saves and loses on recorded sessions",
    "local": "serve a small model on this machine, with no key",
    "datasets": "list the datasets; show, fetch or import one",
    "systems": "list the systems and memory systems",
    "evaluators": "list the evaluators and their scores",
    "metrics": "list the metrics",
    "prices": "list token prices by model, as runs use them",
    "reporters": "list the output formats (--output)",
    "demo": "compare seven reference systems, with no key and no network",
    "completion": "print a script that completes commands in bash, zsh or fish",
}

_MODULES = {
    **dict.fromkeys(("systems", "evaluators", "metrics", "reporters"), "listings"),
    **dict.fromkeys(("plot", "view"), "report"),
}
"""Modules that have several commands; every other command has a module of the same name."""


def find_module(command: str) -> str:
    return f"context_bench.cli.{_MODULES.get(command, command.replace('-', '_'))}"


_ABOUT = "Benchmark any system that changes what a language model reads."

_EXAMPLES = {
    "context-bench demo": "compare seven reference systems, with no key and no network",
    "context-bench --system bm25:ratio=0.3 --system minify --dataset kv:n=200": (
        "measure compressors on generated data"
    ),
    "context-bench --proxy http://localhost:7878 --dataset needle:length=8000,n=50": (
        "measure a proxy, with your key in OPENAI_API_KEY"
    ),
}
"""Commands to try first, with their meanings."""

_COMMAND_GROUPS = {
    "measure": ("demo", "memory", "plan", "run", "score", "judge-check", "conformance", "fuzz"),
    "look": ("report", "plot", "view", "runs", "claims", "compare", "diff", "tap", "traffic", "replay"),
    "list": ("datasets", "systems", "evaluators", "metrics", "reporters", "prices"),
    "set up": ("local", "completion"),
}

_FLAGS = {
    "--proxy URL": "server that speaks OpenAI's chat completions (repeatable)",
    "--system REF": "compressor: NAME[:key=value,...] or file.py:object",
    "--dataset REF": "NAME[:key=value,...] or a .jsonl, .json, .csv, .parquet file",
    "-n N": "at most N examples of each dataset",
    "--model NAME": "model to ask for",
    "--reader URL": "server whose model answers from the context of each --system",
    "--start COMMAND": "start a proxy and record what reaches the model behind it",
    "--output REF": "table, json, csv, html or your own (--out FILE saves it)",
    "--resume": "reuse the answers of earlier runs",
    "--dry-run": "show the requests and their estimated cost",
}
"""The most common flags."""


def _short_help(flags: int) -> str:
    """Return a short help with three examples, the commands and ten flags; `flags` is the number of all flags."""
    lines = [_ABOUT, ""]
    lines += [f"  {example}" for example in _EXAMPLES]
    lines += ["", "Commands (see context-bench COMMAND --help):"]
    lines += [f"  {title:<9}{', '.join(names)}" for title, names in _COMMAND_GROUPS.items()]
    lines += ["", f"Common flags (--help-all: all {flags}, by group, and exit codes):"]
    lines += [f"  {flag:<17}{text}" for flag, text in _FLAGS.items()]
    return "\n".join(lines) + "\n"


def first_steps() -> str:
    lines = [_ABOUT, "", "To begin:"]
    for example, text in _EXAMPLES.items():
        lines += [f"  {example}", f"      {text}"]
    lines += ["", "context-bench --help shows the commands and the common flags."]
    return "\n".join(lines) + "\n"


class _HelpAll(argparse.Action):
    """`--help-all`: shows every flag in its group."""

    def __init__(self, option_strings: Any, dest: str, **_: Any) -> None:
        told = "show every flag, by group, and exit"
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=told)

    def __call__(self, parser: Any, *_: Any, **__: Any) -> None:
        parser._print_message(parser.format_all(), sys.stdout)
        parser.exit()


class _Version(argparse.Action):
    """Prints the version, and names an installed package that hides this one."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from context_bench.errors import find_namesake

        print(f"context-bench {__version__}")
        other = find_namesake()
        parser.exit(0, f"context-bench: {other}\n" if other else None)


_EXAMPLE = """\
example:
  context-bench --proxy http://localhost:7878 --system truncate:ratio=0.5 \\
      --dataset needle:length=8000,n=50
"""

_EXIT_CODES = """\
exit codes:
  0    done
  1    a condition of --fail-if is met, or a conformance check failed
  2    wrong usage or input
  3    too many errors, a limit reached, a system stopped, or no scores
  4 too few examples to decide a condition of --fail-if
  130  interrupted
"""


class RunParser(Parser):
    """The parser of a run: its help is one screen, and `--help-all` has every flag."""

    commands = COMMANDS

    def format_help(self) -> str:
        return _short_help(len(self.flags))

    def format_all(self) -> str:
        return super().format_help()


RUN_GROUPS: dict[str, tuple[str, ...]] = {
    "what is measured": (
        *("proxy", "name", "system", "reader", "dataset", "max_examples", "sample", "data_dir", "revision", "map"),
        *("evaluator", "metric", "imports"),
    ),
    "what is sent": (
        *("model", "api", "api_key_env", "header", "extra_body", "system_prompt", "temperature", "max_tokens"),
        *("stream", "timeout", "max_retries"),
    ),
    "the requests that reach the model": (
        *("tap", "tap_host", "tap_forward", "tap_model", "tap_reply", "start", "start_dir", "sweep", "vendor"),
        "controls",
    ),
    "who judges": ("judge_url", "judge_model", "judge_key_env"),
    "scoring": (
        *("score_field", "threshold", "keep_reasoning", "baseline", "plan", "margin", "aa", "stop_when_decided"),
        *("fixed_groups", "repeats", "unsafe_code", "tokenizer", "seed"),
    ),
    "limits": (
        *("max_workers", "max_connections", "max_rpm", "max_tpm", "max_errors", "prices_file", "max_cost"),
        *("max_total_tokens", "preflight"),
    ),
    "where it runs": ("engine", "ray_address", "system_resources"),
    "what is kept": ("cache_dir", "resume", "fresh", "cache_tag", "no_store", "keep_rows"),
    "what comes out": (
        *("output", "out", "wide", "slice", "volume", "merge_seeds", "report", "plots"),
        *("dry_run", "silent", "verbose", "debug"),
    ),
    "a gate for CI": ("fail_if", "junit", "summary", "accept_blind"),
}
"""The flags of a run as its help lists them."""


def run_parser() -> RunParser:
    width = max(map(len, COMMANDS)) + 2
    commands = "".join(f"  {name:{width}}{text}\n" for name, text in COMMANDS.items())
    parser = RunParser(
        prog="context-bench",
        usage="context-bench (--proxy URL | --system REF)... --dataset REF... [options]\n"
        "       context-bench COMMAND [--help]",
        description=f"{_EXAMPLE}\n{_ABOUT}",
        epilog=f"commands:\n{commands}\n{_EXIT_CODES}",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="show the version and exit"
    )
    parser.add_argument("--help-all", action=_HelpAll)
    add_groups(parser, RunOptions, RUN_GROUPS)
    return parser
