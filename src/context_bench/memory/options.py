"""Options of `evaluate_memory()` and `context-bench memory` that a run does not have, or describes in other words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from context_bench.config import CommandOptions
from context_bench.options import AMOUNT, ANYTHING, NUMBERS, POSITIVE, SWITCH, WORDS, Options, option, redeclare

_PYTHON = ""  # the flag of an option that only Python has


class MemoryParameters(Options):
    """Parameters of `evaluate_memory()` that `evaluate()` does not have."""

    reader: Any = option(
        "server of the model that answers from what was retrieved (default: a script)", ANYTHING, metavar="URL"
    )
    answerer: Any = option("", ANYTHING, flag=_PYTHON)
    model: str | None = option(
        "model of the reader, and of systems that ask one (default: gpt-4o-mini)", metavar="NAME"
    )
    embedding_model: str | None = option(
        "model that embeds for systems that ask one (default: text-embedding-3-small)", metavar="NAME"
    )
    api_key: str | None = option("", flag=_PYTHON)
    granularity: str | Sequence[str] = option(
        "what one call of ingest() brings: turn, pair, session, or several of them (default: %(default)s)",
        WORDS,
        "session",
        metavar="A,B",
    )
    budgets: Sequence[int] = option(
        "tokens that the reader gets of what was retrieved (default: 500,2000,8000)",
        NUMBERS,
        (500, 2000, 8000),
        flag="--budget",
        metavar="N,M",
    )
    top_k: int | None = option(
        "most passages that are retrieved for a question (default: each system's own)", POSITIVE, metavar="K"
    )
    answers: Sequence[str] = option(
        "who answers: reader (one model, from what was retrieved) or own (each system's query); default: both",
        WORDS,
        ("reader", "own"),
        metavar="A,B",
    )
    max_conversations: int | None = option(
        "at most N conversations (default: all)", POSITIVE, flag="--max-conversations -n", metavar="N"
    )
    types: Collection[str] | None = option("only questions of these types (default: all)", WORDS, metavar="A,B")
    timeout: float = option("seconds for one call of a system (default: %(default)s)", AMOUNT, 600.0, metavar="S")
    quiet: float = option(
        "after writing, wait until a system made no call for S seconds (default: %(default)s)",
        AMOUNT,
        5.0,
        flag="--flush-quiet",
        metavar="S",
    )
    max_quiet: float = option(
        "but wait at most S seconds (default: %(default)s)", AMOUNT, 120.0, flag="--flush-limit", metavar="S"
    )
    data_dir: str | None = redeclare(CommandOptions, "data_dir")
    extra: Sequence[Any] = option("", ANYTHING, (), flag=_PYTHON)
    plant: int | None = option(
        "plant N facts of ours into each conversation, and ask for them: for conversations without questions",
        POSITIVE,
        metavar="N",
    )
    vendor_config: Any = option("settings of vendors' systems (TOML, a table for each)", ANYTHING, metavar="FILE")
    contexts: str | None = option(
        "read what systems retrieved from FILE, and measure it with this reader", metavar="FILE"
    )


class MemoryOptions(MemoryParameters, CommandOptions):
    system: list[str] = redeclare(
        CommandOptions,
        "system",
        help="memory system: NAME[:key=value,...] as `context-bench systems` lists them, module:object or "
        "file.py:object (repeatable)",
    )
    dataset: str | None = option(
        "conversations: NAME[:key=value,...] as `context-bench datasets` lists them, a file of conversations, of a "
        "public dataset or of recorded traffic, or module:object",
        metavar="REF",
    )
    api_key_env: str | None = redeclare(
        CommandOptions, "api_key_env", help="environment variable with the key (default: OPENAI_API_KEY)"
    )
    judge_url: str | None = redeclare(
        CommandOptions, "judge_url", help="server of a model that rates answers; adds memory_judge"
    )
    no_bm25: bool = option("leave out bm25, which is added as the bar to beat", SWITCH, False)
    save_contexts: str | None = option("write what each system retrieved to FILE (JSONL)", metavar="FILE")
    judge_prompts: str | None = option("wordings of the judge's rules by type (TOML)", metavar="FILE")
    judge_itself: bool = option("let the model that answers judge its own answers", SWITCH, False)
    score_field: str | None = redeclare(
        CommandOptions, "score_field", help="the score that counts (default: that of the dataset)"
    )
    baseline: str | None = redeclare(
        CommandOptions, "baseline", help="system that the others are compared with (default: naive, else bm25)"
    )
    fixed_groups: bool = redeclare(
        CommandOptions,
        "fixed_groups",
        help="these conversations are all that matter: verdicts go by question, and speak of no others",
    )
    tokenizer: Any = redeclare(
        CommandOptions, "tokenizer", help="encoding of the reader, for budgets and counts (default: cl100k_base)"
    )
    seed: int = redeclare(CommandOptions, "seed", help="seed for generated data and systems (default: %(default)s)")
    max_workers: int | None = redeclare(
        CommandOptions, "max_workers", help="conversations at a time (default: 8 with a reader, else 1)"
    )

    max_rpm: float | None = redeclare(
        CommandOptions, "max_rpm", help="most requests a minute to the reader, and to who answers behind the taps"
    )
    max_cost: float | None = redeclare(
        CommandOptions, "max_cost", help="stop when writing, asking, reading and judging have cost so much"
    )
    max_total_tokens: int | None = redeclare(
        CommandOptions,
        "max_total_tokens",
        help="stop when all of that has used so many tokens",
    )
    dry_run: bool = redeclare(
        CommandOptions,
        "dry_run",
        help="estimate what writing, asking, reading and judging take; send nothing",
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
"""The flags of `context-bench memory` as its help lists them."""
