"""The commands, with a line of help each. A run of flags alone needs none of them."""

from __future__ import annotations

__all__ = ["COMMANDS", "find_module"]

COMMANDS = {
    "run": "run the benchmark that a TOML file describes",
    "memory": "compare memory systems on conversations, at equal budgets",
    "plan": "tell how many examples are needed, and what they cost",
    "report": "write recorded runs as one page that opens offline",
    "plot": "draw a recorded run in the terminal, as quality against cost",
    "view": "show recorded runs in a browser, live",
    "runs": "list, show, export or remove recorded runs",
    "compare": "compare runs, or the systems of one run, and say which is better",
    "diff": "show what a system did to the context of one example",
    "score": "score a recorded run again, without asking any system",
    "judge-check": "measure how often a judge accepts wrong or rejects right answers",
    "tap": "record what really reaches the model behind a proxy",
    "conformance": "check that a proxy keeps the protocol intact",
    "local": "serve a small model on this machine, with no key",
    "datasets": "list the datasets; show, fetch or import one",
    "systems": "list the systems and memory systems",
    "evaluators": "list the evaluators and their scores",
    "metrics": "list the metrics",
    "prices": "list what tokens cost, by model: what a run is priced by",
    "reporters": "list the forms that --output can give a result",
    "demo": "compare seven reference systems, with no key and no network",
    "completion": "print a script that completes commands in bash, zsh or fish",
}


def find_module(command: str) -> str:
    """Return the module whose `main` is the command: it has the command's name."""
    return f"context_bench.cli.{command.replace('-', '_')}"
