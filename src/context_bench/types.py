"""The Protocols of all parts.

Implement the methods on any class, without an import or a base class. The docstrings list all optional members; no
other attribute of a part is read. `context_bench.testing` checks a part against its Protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

__all__ = ["Dataset", "Evaluator", "Example", "MemorySystem", "Metric", "Reporter", "System", "Tally"]

Example = dict[str, Any]


@runtime_checkable
class System(Protocol):
    """The thing under test: takes an example and returns its output.

    The returned dict has a `response`, a new `context` (a compressor) or `documents` (a reranker). The row keeps its
    `metadata`, and the token counts of `api_usage`; `turn_responses` has the reply to each turn of a conversation.

    Optional members:
        aprocess(example): Awaited instead of `process`; many calls may be in flight at once.
        process_conversation(turns): Called instead of `process` for an example whose `turns` need several replies;
            returns one `{role, content}` for each of them.
        aprocess_conversation(turns): The same, awaited, for a system with `aprocess`.
        prepare(): Awaited before the first example. It must be `async`, and take no arguments.
        finish(): Called, and awaited if it is `async`, after the last example. It must take no arguments. Whatever it
            does, the rows are kept; after 60 seconds the run ends without it.
        fingerprint: A text with everything that its answers depend on (model, prompt, parameters), used as the cache
            key. Without it, the code and the state of the system are the key. None means that answers are not reused.
        reads_gold: False if its answers do not depend on the gold, which its examples contain.
        edit(messages, tools): Return the messages and tools to send instead, for `context-bench replay`.
        reads_any_api: True if `edit` takes the messages of every API; otherwise it gets those of chat completions.
        breaks: The relations of `context-bench fuzz` that it breaks by design; they are reported, not counted.
        sends_elsewhere: True if it sends its prompt to a server and returns only the answer, so that its output tokens
            say nothing about compression.
        model: The name of the model that it asks, which determines the price of its `api_usage`.
        resources: Needs of a cluster worker, such as `{"num_gpus": 1, "num_cpus": 2}`.
    """

    @property
    def name(self) -> str: ...

    def process(self, example: Example) -> Example: ...


class Dataset(Protocol):
    """Any iterable of dicts with `id` and `context`, such as a list or a generator.

    It is read once, lazily, and no further than needed. A loader is a function that returns a dataset. A reference
    passes parameters to it after its name; `-n` and `--seed` set its parameters `n` and `seed`.

    Optional members:
        __len__(): The number of examples, for the progress line.
    """

    def __iter__(self) -> Iterator[Example]: ...


@runtime_checkable
class Evaluator(Protocol):
    """Compares an example before and after a system, and returns named scores.

    An empty dict, or `Scores(reason=...)`, means that there is nothing to judge.

    Optional members:
        score_fields: The keys that it can emit, as a tuple.
        ascore(original, processed): Awaited instead of `score`.
        slow: True if it takes long; it then runs in a thread while the systems continue.
        needs_answer: True if it judges only answers: a system that returns a context gets no score from it.
        needs_context: True if it judges the text that a model would receive: a system that returns only an answer gets
            no score from it.
        model: The model that it asks; its requests then count against the spending limits of the run.
        write_request(original, processed): Return the body of the request that it would send, or None. It is used to
            estimate the cost; its `max_tokens` bounds the reply.
        version: A value that changes whenever its verdicts change; version and attributes are the cache key.
        fingerprint: A text used as the cache key instead.
        prepare(): As for a system, if the user chose the evaluator.
        finish(): As for a system, if the user chose the evaluator.
    """

    @property
    def name(self) -> str: ...

    def score(self, original: Example, processed: Example) -> dict[str, float]: ...


@runtime_checkable
class Metric(Protocol):
    """Turns all the rows of one system into summary numbers.

    Optional members:
        start(): Return a `Tally`, so that rows need not be kept. It takes no arguments.
        by_dataset: The keys that a run over several datasets also reports as `<key>@<dataset>`; needs `start`.
        keys: The keys of all numbers that it may return. A gate on any other number is then refused before the run,
            not after it.
        columns: The keys in the table, each with the format of its value, as for `format()`:
            `{"worst": ".2f", "share": ".1%"}`. Without it, every key of a user's metric has a column.
        score_field: The score that it is computed from. If the run names no score, that of the first such metric is
            the primary score.
        threshold: The lowest score that passes; recorded with the run.
    """

    @property
    def name(self) -> str: ...

    def compute(self, rows: list[EvalRow]) -> dict[str, float]: ...


@runtime_checkable
class Tally(Protocol):
    """Computes numbers row by row.

    Optional members:
        unmeasured(): Return the keys of `result()` without any row, each with the reason; their values become NaN.
        notes(): Return a note for each key whose value needs one.
        intervals(): Return the `context_bench.stats.Interval` of each key that has one.
    """

    def add(self, row: EvalRow) -> None: ...

    def result(self) -> dict[str, float]: ...


@runtime_checkable
class Reporter(Protocol):
    """Renders a finished result as text, which ends with a line end.

    The constructor of a class may take `width` (the columns of the terminal, or None), `color` (whether the terminal
    shows colours) and `store` (the folder of the run's store, or None).

    Optional members:
        render_parts(result): Yield the same text in pieces, so that a long report is never in memory as a whole. The
            command line calls it instead of `render`.
    """

    @property
    def name(self) -> str: ...

    def render(self, result: EvalResult) -> str: ...


@runtime_checkable
class MemorySystem(Protocol):
    """Takes in a conversation once, then answers questions about it.

    `reset()` empties it before each conversation, `ingest(turns)` adds some turns (`role`, `speaker`, `content`,
    `timestamp`, `session`, `id`, in order of time), and `query(question)` returns an answer. The text of a question
    contains its date. Each method may be `async def`, or have an asynchronous variant (`aingest`, `aquery` and so on),
    which is then awaited instead. An object gets one call at a time; parallel conversations have separate objects.

    Optional members:
        retrieve(question, k=None, budget_tokens=None): Return a list of `{"text"}`, best first, each with the `ids` of
            its turns. A turn counts as found if the text contains its words. One reader then answers for all memory
            systems. `k` and `budget_tokens` are passed if it accepts them.
        flush(): Return once all ingested turns can be found.
        memories(): List the stored memories: texts, or objects with `text`. With a parameter `user`, it is called for
            each user.
        forget(request): Delete the content that the request (`{"what": ...}`) names. Without it, a turn that asks for
            deletion is ingested like any other.
        restore(key): Called before a conversation is written, with a text that identifies it. Return True if the
            memory of that conversation has survived an earlier process and is loaded now; the turns ingested next
            belong to it. To continue after its stored turns, return their number instead. With True, an interrupted
            conversation may be written again from its beginning.
        user: A parameter of `ingest`, `query` and `retrieve`: the user whose memory is meant. Without it, leaks between
            users are not measured.
        takes_dates: True if it reads the `timestamp` of turns; otherwise the date is put before their text.
        is_control: True for a control: it has no budget, and is not ranked.
        is_frozen: True if it retrieves from a file, regardless of its input; it is then not probed.
        point_to(ids): Called before each `retrieve`: for a control with the ids of the evidence, for a frozen system
            with the id of the question.
        storage: The file or folder of its memory, whose size is reported.
        one_at_a_time: True if only one instance is possible, for example because it uses a port or a file;
            conversations are then written one at a time.
        fingerprint: A text with everything that its answers depend on; by default, its code and parameters.

    A class, or a function that makes the system, may have parameters named `base_url`, `model`, `embedding_model`,
    `api_key` or `seed`. They receive the address of its tap and the settings of the run.
    """

    @property
    def name(self) -> str: ...

    def reset(self) -> None: ...

    def ingest(self, turns: Sequence[dict[str, Any]]) -> None: ...

    def query(self, question: str) -> str: ...
