"""Options of `evaluate_memory()` and `context-bench memory` that an ordinary run lacks or describes differently."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from context_bench.config import CommandOptions
from context_bench.options import AMOUNT, ANYTHING, NUMBERS, POSITIVE, SWITCH, WORDS, Options, option, redeclare

_PYTHON = ""  # no flag: the option exists only in Python


class MemoryParameters(Options):
    """Parameters of `evaluate_memory()` that `evaluate()` does not have."""

    reader: Any = option(
        "server of the model that answers from the retrieved context (default: a script)", ANYTHING, metavar="URL"
    )
    answerer: Any = option("", ANYTHING, flag=_PYTHON)
    model: str | None = option(
        "model of the reader, and of systems that call one (default: gpt-4o-mini)", metavar="NAME"
    )
    embedding_model: str | None = option(
        "embedding model for systems that use one (default: text-embedding-3-small)", metavar="NAME"
    )
    api_key: str | None = option("", flag=_PYTHON)
    granularity: str | Sequence[str] = option(
        "unit of one ingest() call: turn, pair, session, or several to compare (default: %(default)s)",
        WORDS,
        "session",
        metavar="A,B",
    )
    budgets: Sequence[int] = option(
        "retrieved tokens that the reader receives, one arm for each (default: 500,2000,8000)",
        NUMBERS,
        (500, 2000, 8000),
        flag="--budget",
        metavar="N,M",
    )
    top_k: int | None = option(
        "maximum items to retrieve for a question (default: the system's own)", POSITIVE, metavar="K"
    )
    answers: Sequence[str] = option(
        "reader (the reader answers from the retrieved context) or own (each system's query); default: both",
        WORDS,
        ("reader", "own"),
        metavar="A,B",
    )
    max_conversations: int | None = option(
        "at most N conversations (default: all)", POSITIVE, flag="--max-conversations -n", metavar="N"
    )
    types: Collection[str] | None = option("types of questions to ask (default: all)", WORDS, metavar="A,B")
    timeout: float = option(
        "time limit of one call of a system, in seconds (default: %(default)s)", AMOUNT, 600.0, metavar="S"
    )
    quiet: float = option(
        "after writing, wait until the system has made no call for S seconds (default: %(default)s)",
        AMOUNT,
        5.0,
        flag="--flush-quiet",
        metavar="S",
    )
    max_quiet: float = option(
        "longest such wait, in seconds (default: %(default)s)", AMOUNT, 120.0, flag="--flush-limit", metavar="S"
    )
    data_dir: str | None = redeclare(CommandOptions, "data_dir")
    extra: Sequence[Any] = option("", ANYTHING, (), flag=_PYTHON)
    plant: int | None = option(
        "plant N synthetic facts into each conversation and ask for them; use it for conversations without questions",
        POSITIVE,
        metavar="N",
    )
    vendor_config: Any = option("settings of vendors' systems (TOML, one table per vendor)", ANYTHING, metavar="FILE")
    contexts: str | None = option(
        "measure the retrieved contexts in FILE (from --save-contexts) with this reader", metavar="FILE"
    )


class MemoryOptions(MemoryParameters, CommandOptions):
    system: list[str] = redeclare(
        CommandOptions,
        "system",
        help="memory system: NAME[:key=value,...] as `context-bench systems` lists them, module:object or "
        "file.py:object (repeatable)",
    )
    dataset: str | None = option(
        "conversations: NAME[:key=value,...] as `context-bench datasets` lists them, a file (conversations, a public "
        "dataset or recorded traffic), or module:object",
        metavar="REF",
    )
    api_key_env: str | None = redeclare(
        CommandOptions, "api_key_env", help="environment variable with the key (default: OPENAI_API_KEY)"
    )
    judge_url: str | None = redeclare(
        CommandOptions, "judge_url", help="server of the model that judges answers; adds memory_judge"
    )
    no_bm25: bool = option("do not add bm25, the system to beat", SWITCH, False)
    save_contexts: str | None = option("write the retrieved contexts of each system to FILE (JSONL)", metavar="FILE")
    judge_prompts: str | None = option("your own prompts for the judge, by rule (TOML)", metavar="FILE")
    judge_itself: bool = option("allow the reader's model to judge its own answers", SWITCH, False)
    score_field: str | None = redeclare(
        CommandOptions, "score_field", help="primary score (default: that of the dataset)"
    )
    baseline: str | None = redeclare(
        CommandOptions, "baseline", help="system that the others are compared with (default: naive, else bm25)"
    )
    fixed_groups: bool = redeclare(
        CommandOptions,
        "fixed_groups",
        help="compute intervals by question: they then apply only to these conversations",
    )
    tokenizer: Any = redeclare(
        CommandOptions, "tokenizer", help="tokenizer of the reader, for budgets and counts (default: cl100k_base)"
    )
    seed: int = redeclare(CommandOptions, "seed", help="seed for generated data and systems (default: %(default)s)")
    max_workers: int | None = redeclare(
        CommandOptions, "max_workers", help="conversations in parallel (default: 8 with a reader, else 1)"
    )

    max_rpm: float | None = redeclare(
        CommandOptions,
        "max_rpm",
        help="maximum requests per minute to the reader, and to the server behind the taps",
    )
    max_cost: float | None = redeclare(
        CommandOptions, "max_cost", help="stop at this total cost of writing, queries, reading and judging"
    )
    max_total_tokens: int | None = redeclare(
        CommandOptions,
        "max_total_tokens",
        help="stop at this total number of tokens",
    )
    dry_run: bool = redeclare(
        CommandOptions,
        "dry_run",
        help="estimate the cost of writing, queries, reading and judging; send nothing",
    )


MEMORY_GROUPS: dict[str, tuple[str, ...]] = {
    "what is measured": (
        *("system", "no_bm25", "contexts", "dataset", "plant", "max_conversations", "types", "seed", "data_dir"),
        "imports",
    ),
    "how it is measured, the same for all": (
        *("granularity", "budgets", "top_k", "answers", "timeout", "quiet", "max_quiet"),
    ),
    "who answers": (
        "reader",
        "tap_forward",
        "tap_model",
        "tap_reply",
        "model",
        "embedding_model",
        "api_key_env",
        "vendor_config",
    ),
    "who judges": ("judge_url", "judge_model", "judge_key_env", "judge_prompts", "judge_itself"),
    "how it is scored": (
        *("evaluator", "score_field", "threshold", "keep_reasoning", "baseline", "margin", "fixed_groups"),
        "tokenizer",
    ),
    "limits": ("max_workers", "max_rpm", "max_errors", "prices_file", "max_cost", "max_total_tokens"),
    "what is kept": ("cache_dir", "resume", "fresh", "cache_tag", "no_store"),
    "what comes out": ("save_contexts", "output", "out", "wide", "slice", "volume", "report", "dry_run", "silent"),
    "a gate for CI": ("fail_if", "junit", "summary", "accept_blind"),
}
"""The flags of `context-bench memory` in the order of its help."""
