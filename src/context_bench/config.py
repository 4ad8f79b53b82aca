"""Every option of a run, declared once: type, default, check, help and flag.

Parameters of `evaluate()`, flags, keys of run files, environment variables, checks, the record of a run and the docs
page of options derive from these declarations. To add an option, follow "An option of a run" in
CONTRIBUTING.md. `aevaluate()` copies its signature from `evaluate()`.

- `RecordedOptions`: parameters of `evaluate()` that are part of a run's record.
- `EvaluateOptions`: all parameters of `evaluate()`.
- `RunOptions`: these parameters, and the flags that only the command line has. `cli.commands` groups them in the help.
- `CommandOptions`: the flags that `context-bench memory` shares; `context_bench.memory.options` has its own.

`context_bench.settings` reads the record of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.options import (
    AMOUNT,
    ANYTHING,
    CONDITION,
    COUNT,
    ERROR_LIMIT,
    FOLDER,
    INTEGER,
    MAPPING,
    NAMES,
    NUMBER,
    PAGE,
    POSITIVE,
    RESOURCES,
    SWITCH,
    SYSTEM_NAME,
    TEMPERATURE,
    VOLUME,
    Options,
    instance_of,
    option,
)

DEFAULT_MARGIN = 0.02
"""Differences of scores within it do not matter."""

DEFAULT_THRESHOLD = 0.7
"""The lowest score that passes."""

STORE = ".context-bench"
"""The default folder of the store."""

_PYTHON = ""
"""The flag of an option that only Python has."""
_REPEATABLE: dict[str, Any] = {"repeatable": True, "default": []}


class RecordedOptions(Options):
    """Options of `evaluate()` that are part of the record of a run."""

    score_field: str | None = option("primary score (default: auto, that of each dataset)", metavar="FIELD")
    max_workers: int | None = option(
        "concurrent examples of each system (default: 8 for a proxy, 1 in process)", POSITIVE, metavar="N"
    )
    repeats: int = option("run each example K times (default: %(default)s)", POSITIVE, 1, metavar="K")
    baseline: str | None = option(
        "system that the others are compared with (default: direct, else passthrough, else the first)",
        SYSTEM_NAME,
        metavar="NAME",
    )
    margin: float | None = option(
        f"largest difference of scores that does not matter (default: {DEFAULT_MARGIN:g})", NUMBER, metavar="X"
    )
    fixed_groups: bool = option(
        "count each example separately; verdicts hold only for these documents or conversations",
        SWITCH,
        False,
    )
    text_fields: Sequence[str] | None = option("fields counted as the prompt", NAMES, flag=_PYTHON)
    max_examples: int | None = option(
        "at most N examples of each dataset (default: all)", COUNT, flag="--max-examples -n", metavar="N"
    )
    tokenizer: Any = option("encoding for all token counts (default: cl100k_base)", ANYTHING, metavar="NAME")
    cache_tag: str | None = option(
        "label for cached answers; change it if the server behind a URL has changed", metavar="TAG"
    )
    threshold: float | None = option(f"lowest score that passes (default: {DEFAULT_THRESHOLD:g})", NUMBER, metavar="X")
    keep_reasoning: bool = option(
        "score whole replies, including <think> blocks (default: only the answer)", SWITCH, False
    )


class EvaluateOptions(RecordedOptions):
    """All parameters of `evaluate()`, whose docstring explains them."""

    systems: Any = option("", ANYTHING, flag=_PYTHON)
    dataset: Any = option("", ANYTHING, flag=_PYTHON)
    evaluators: Any = option("", ANYTHING, flag=_PYTHON)
    metrics: Any = option("", ANYTHING, flag=_PYTHON)
    progress: bool = option("", SWITCH, True, flag=_PYTHON)
    cache_dir: Any = option(
        f"folder of the store, with reuse of its answers (default: {STORE}, without reuse)",
        FOLDER,
        metavar="DIR",
    )
    keep_rows: bool = option(
        "keep rows only in the store, so memory stays constant; JSON then has only the summary",
        SWITCH,
        True,
        flag="--no-rows",
    )
    store: Any = option(
        "", instance_of("context_bench.store:StoreBackend", "an open Store (for a folder, use cache_dir)"), flag=_PYTHON
    )
    reuse: bool = option("", SWITCH, True, flag=_PYTHON)
    limits: Any = option(
        "", instance_of("context_bench.monitors.limits:Limits", "Limits, such as Limits(max_errors='5')"), flag=_PYTHON
    )
    prices: Any = option(
        "", instance_of("context_bench.pricing:Prices", "Prices, such as Prices.from_file('prices.json')"), flag=_PYTHON
    )
    config: Mapping[str, Any] | None = option("", MAPPING, flag=_PYTHON)
    preflight: bool = option(
        "keep sending to a system whose first request failed for a reason that affects all others (wrong key, model "
        "or path)",
        SWITCH,
        True,
        flag="--no-preflight",
    )
    debug: bool = option("open the debugger where a system's own code raises", SWITCH, False, flag="--pdb")
    aa: bool = option("run the baseline twice, and show the difference as noise", SWITCH, False)
    stop_when_decided: bool = option(
        "stop each system as soon as its verdict is decided: five interim looks, in a random order by --seed",
        SWITCH,
        False,
    )
    seed: int = option(
        "seed for generated data, samples and random systems (default: %(default)s)", INTEGER, 0, metavar="N"
    )
    engine: Any = option(
        "run systems and slow evaluators here, or on the workers of a Ray cluster (default: %(default)s)",
        ANYTHING,
        "local",
        choices=("local", "ray"),
    )


class CommandOptions(EvaluateOptions):
    """Flags that a run and `context-bench memory` share."""

    # what is measured
    system: list[str] = option(
        "compressor or reranker: NAME[:key=value,...], module:object or file.py:object (repeatable)",
        **_REPEATABLE,
        metavar="REF",
    )
    data_dir: str | None = option(
        "folder with the records of public datasets, as DIR/NAME/ (default: CONTEXT_BENCH_DATA, else the hub)",
        metavar="DIR",
        variable="CONTEXT_BENCH_DATA",
    )
    imports: list[str] = option(
        "import a module or file that registers components (repeatable)",
        **_REPEATABLE,
        flag="--import",
        metavar="MODULE|FILE",
    )
    evaluator: list[str] = option("additional evaluator (repeatable)", **_REPEATABLE, metavar="REF")
    # what is sent
    reader: str | None = option(
        "server of a model that answers from the context of each --system, for comparison with proxies",
        metavar="URL",
    )
    model: str | None = option(
        "model to request from every --proxy and --reader (default: gpt-3.5-turbo with --api openai, "
        "claude-haiku-4-5 with --api anthropic, gpt-4o-mini with --api responses)",
        metavar="NAME",
    )
    api_key_env: str | None = option(
        "environment variable with the key (default: OPENAI_API_KEY or ANTHROPIC_API_KEY, sent only over https or to "
        "this machine)",
        metavar="NAME",
    )
    timeout: Any = option("seconds for one attempt (default: 30; 600 with --tap-model)", AMOUNT, metavar="S")
    tap_forward: str | None = option(
        "the tap forwards requests to this server, with their key", flag="--tap-forward --relay", metavar="URL"
    )
    tap_model: str | None = option(
        "the tap answers with a small model on this machine, or a GGUF file", metavar="local|FILE"
    )
    tap_reply: str | None = option(
        "the tap answers from a script: extract, echo, text:ANSWER or a file", metavar="SCRIPT"
    )
    # the judge
    judge_url: str | None = option("server of a model that rates answers; adds judge_score", metavar="URL")
    judge_model: str | None = option("model of the judge (default: gpt-4)", metavar="NAME")
    judge_key_env: str | None = option(
        "environment variable with the judge's key (default: OPENAI_API_KEY, sent only over https or to this machine)",
        metavar="NAME",
    )
    prices_file: str | None = option(
        "dollars per million tokens by model (TOML or JSON); other models cost what `context-bench prices` lists",
        flag="--prices",
        metavar="FILE",
    )
    # limits
    max_rpm: float | None = option("maximum requests per minute to each proxy", AMOUNT, metavar="N")
    max_errors: str | None = option(
        "stop when a system has more errors than this (default: continue, but exit with 3 above 10%%)",
        ERROR_LIMIT,
        metavar="N|P%",
    )
    max_cost: float | None = option("stop before systems and judge cost more", AMOUNT, metavar="USD")
    max_total_tokens: int | None = option(
        "stop before systems and judge use more tokens than this", POSITIVE, metavar="N"
    )
    # storage and output
    resume: bool = option(f"reuse the answers in {STORE}", SWITCH, False)
    fresh: bool = option("repeat all requests, and cache the new answers", SWITCH, False)
    no_store: bool = option("record nothing", SWITCH, False)
    output: str | None = option(
        "output format: table, md, json, csv (rows), csv-summary, latex, html, github, or a reporter of your own "
        "by NAME, module:object or file.py:object (default: by the ending of --out, else table)",
        metavar="REF",
    )
    out: str | None = option(
        "write the result to FILE (.json, .csv, .md, .txt, .tex or .html), not to stdout", metavar="FILE"
    )
    wide: bool = option("show all columns, intervals, tables and notes, however narrow the terminal", SWITCH, False)
    slice: list[str] = option(
        "also show scores by a field of the examples, such as meta.type, or of the rows (repeatable)",
        **_REPEATABLE,
        metavar="FIELD",
    )
    merge_seeds: bool = option(
        "show systems that differ only by seed= separately, not as one system with mean and spread",
        SWITCH,
        True,
        flag="--no-merge-seeds",
    )
    volume: float | None = option(
        "expected requests, such as 2000000/month or 70k/day, to show the dollars saved per month",
        VOLUME,
        metavar="N/PERIOD",
    )
    report: str | None = option(
        "also write the report to FILE (.html): one page that opens offline", PAGE, metavar="FILE"
    )
    silent: bool = option("show no progress and no messages", SWITCH, False, flag="--quiet")
    dry_run: bool = option("show the requests and their estimated cost; send nothing", SWITCH, False)
    # a gate
    accept_blind: bool = option(
        "let a gate on the verdict pass even if the data could not have shown a loss (default: undecided, exit 4)",
        SWITCH,
        False,
    )
    fail_if: list[Any] = option(
        'exit with 1 if the condition is met, with 4 if there are too few examples to decide: "score drops 0.02", '
        '"saved < 0.3", "error_rate > 0.01", "verdict is worse" (repeatable)',
        CONDITION,
        **_REPEATABLE,
        metavar="CONDITION",
    )
    junit: str | None = option("write the outcome of each condition as JUnit XML", metavar="FILE")
    summary: str | None = option(
        "write the table and the conditions in Markdown; with --fail-if also appended to $GITHUB_STEP_SUMMARY, if that "
        "is set",
        metavar="FILE",
    )
    # facts about the command line
    command: list[str] = option("", flag=_PYTHON, default=[])
    origins: Mapping[str, str] = option("", flag=_PYTHON, default={})

    @property
    def store_folder(self) -> str | None:
        """The folder of the store; None stores nothing."""
        return None if self.no_store else self.cache_dir or STORE

    @property
    def reuses_answers(self) -> bool:
        """Whether answers in the store are reused."""
        return (self.cache_dir is not None or self.resume) and not self.fresh

    @property
    def chosen_score_field(self) -> str | None:
        """The score that the user chose; None leaves it to each dataset."""
        return None if self.score_field == "auto" else self.score_field


class RunOptions(CommandOptions):
    """Every flag of a run.

    Attributes:
        typed: The typed command line, without keys; it may name a run file.
        run_file: The text of the run file, without keys.
        model_given: Whether the user chose the model, or the source of its answers.
    """

    # what is measured
    proxy: list[str] = option("server that speaks OpenAI's chat completions (repeatable)", **_REPEATABLE, metavar="URL")
    name: list[str] = option(
        "name of a --proxy, in the order of --proxy (default: host:port; repeatable)", **_REPEATABLE, metavar="NAME"
    )
    dataset: list[str] = option(
        "data: NAME[:key=value,...], a file (.jsonl .json .csv .parquet) or module:object (repeatable)",
        **_REPEATABLE,
        metavar="REF",
    )
    sample: str | None = option(
        "how -n chooses examples, by --seed; stratified takes the same number from each category (default: random from "
        "files, folders and generated data, first from the hub)",
        choices=("first", "random", "stratified"),
    )
    revision: str | None = option("branch, tag or commit of a public dataset on the hub", metavar="REV")
    map: str | None = option("rename columns of your files: question=prompt,answer=gold", metavar="FIELD=COLUMN,...")
    metric: list[str] = option("additional metric (repeatable)", **_REPEATABLE, metavar="REF")
    # what is sent
    api: str = option(
        "API that every --proxy speaks (default: %(default)s)",
        default="openai",
        choices=("openai", "anthropic", "responses"),
    )
    header: list[str] = option(
        "additional header of each request, with {tap} filled in; its value is never shown or stored (repeatable)",
        **_REPEATABLE,
        metavar="NAME:VALUE",
    )
    extra_body: str | None = option(
        "additional fields for the body of each request, with {tap} filled in", metavar="JSON"
    )
    system_prompt: str | None = option("text to put before the context", metavar="TEXT")
    temperature: float | None = option(
        "sampling temperature; none leaves it to the server (default: %(default)s)", TEMPERATURE, 0.0, metavar="X"
    )
    max_tokens: int | None = option("maximum tokens of a reply", POSITIVE, metavar="N")
    stream: bool = option("receive replies as streams, and measure token times", SWITCH, False)
    max_retries: int = option("attempts after the first (default: %(default)s)", COUNT, 3, metavar="N")
    # the tap
    tap: str | None = option(
        "listening address of the first proxy's tap (a recording upstream); each further proxy uses the next port "
        "(default with --start or --vendor: any free port)",
        metavar="[HOST]:PORT",
    )
    tap_host: list[str] = option(
        "also accept requests that address the tap by this name, such as host.docker.internal from a container "
        "(repeatable; IP addresses and localhost always work)",
        **_REPEATABLE,
        metavar="NAME",
    )
    start: list[str] = option(
        "command that starts a proxy, in the order of --proxy; {port} and {tap}, the address of its tap, are filled "
        "in (repeatable)",
        **_REPEATABLE,
        metavar="COMMAND",
    )
    start_dir: str | None = option(
        "directory that --start runs in (default: this one); scratch = an empty one that is removed afterwards",
        metavar="DIR|scratch",
    )
    sweep: list[str] = option(
        "values for {KEY} in a --start: the proxy is started once for each, and the report draws their curve "
        "(repeatable)",
        **_REPEATABLE,
        metavar="KEY=A|B",
    )
    vendor: list[str] = option(
        "known proxy to install and start: kompact or headroom (repeatable)", **_REPEATABLE, metavar="NAME"
    )
    controls: str | None = option(
        "also ask the model with no context (floor), only the evidence (ceiling) and the whole context (direct); "
        "matched: with contexts cut to the size of each system by truncation and random deletion; all: both",
        choices=("standard", "matched", "all"),
        bare="standard",
    )
    # scoring
    plan: str | None = option(
        "file of `context-bench plan --lock`; the report lists deviations from it", metavar="FILE"
    )
    unsafe_code: bool = option(
        "run model-written code (HumanEval, MBPP) without a sandbox, at your own risk", SWITCH, False
    )
    # limits
    max_connections: int | None = option("maximum requests in flight to each proxy", POSITIVE, metavar="N")
    max_tpm: float | None = option(
        "maximum tokens per minute for each proxy, by its server's count", AMOUNT, metavar="N"
    )
    # where it runs
    ray_address: str | None = option(
        "the cluster of --engine ray (default: RAY_ADDRESS, else one is started on this machine for the run)",
        metavar="ADDRESS",
    )
    system_resources: dict[str, float] | None = option(
        "what each worker of --engine ray needs, such as num_gpus=1,num_cpus=2 (default: what the system declares, "
        "else one CPU)",
        RESOURCES,
        metavar="NAME=N,...",
    )
    # what comes out
    plots: str | None = option("write the run's plots to DIR, as SVG and PNG", metavar="DIR")
    verbose: bool = option("show requests, replies and tracebacks on stderr, without secrets", SWITCH, False)
    # facts about the command line
    typed: list[str] = option("", flag=_PYTHON, default=[])
    run_file: str | None = option("", flag=_PYTHON)
    model_given: bool = option("", SWITCH, True, flag=_PYTHON)

    @property
    def wants_tap(self) -> bool:
        """Whether any flag asks for a tap."""
        answered = self.tap_forward or self.tap_model or self.tap_reply
        return bool(self.tap or self.start or self.vendor or answered)
