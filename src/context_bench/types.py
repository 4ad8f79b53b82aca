"""The Protocols that parts satisfy, and nothing else.

Implement the methods on any class: nothing has to be imported or subclassed. Optional members are named in the
docstrings, all of them: no other attribute of a part is looked at. `context_bench.testing` checks a part against its
Protocol.
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
    """The thing that is measured: takes an example, returns what it makes of it.

    The returned dict carries a `response`, a new `context` (a compressor) or `documents` (a reranker);
    `metadata` in it is kept on the row, and so are the token counts of `api_usage`; `turn_responses` has the reply to
    each turn of a conversation.

    Optional members:
        aprocess(example): Awaited instead of `process`; many calls may be in flight at once.
        process_conversation(turns): Called instead of `process` for an example whose `turns` ask for several replies;
            returns one `{role, content}` for each of them.
        aprocess_conversation(turns): The same, awaited, for a system with `aprocess`.
        prepare(): Awaited before the first example. It must be `async`, and take no arguments.
        finish(): Called, and awaited if it is `async`, after the last example. It must take no arguments. Whatever it
            does, the rows are kept; after 60 seconds the run ends without it.
        fingerprint: A text: what makes its answers differ (model, prompt, parameters). It is the cache key; without
            it, the code and the state of the system are. None says that its answers must not be reused.
        reads_gold: False when its answers do not depend on the gold, which is in the example that it is given.
        edit(messages, tools): The messages and tools that it would send instead, for `context-bench replay`.
        reads_any_api: True when `edit` takes the messages of every API; else it gets those of chat completions.
        breaks: The relations of `context-bench fuzz` that it breaks by design; they are reported, not counted.
        sends_elsewhere: True when it sends its prompt to a server and returns the answer alone, so that its output
            tokens say nothing about compression.
        model: A text: the model that it asks, by which `prices` finds the cost of its `api_usage`.
        resources: Numbers by name, such as `{"num_gpus": 1, "num_cpus": 2}`: what a worker of a cluster needs for it.
    """

    @property
    def name(self) -> str: ...

    def process(self, example: Example) -> Example: ...


class Dataset(Protocol):
    """Gives examples: any iterable of dicts with `id` and `context`, such as a list or a generator.

    It is read lazily, once, and never further than needed. A loader is a function that returns one; what follows its
    name in a reference are its parameters, and a parameter `n` or `seed` gets what `-n` and `--seed` say.

    Optional members:
        __len__(): How many examples there are, for the progress line.
    """

    def __iter__(self) -> Iterator[Example]: ...


@runtime_checkable
class Evaluator(Protocol):
    """Compares an example before and after a system, and returns named scores.

    An empty dict, or `Scores(reason=...)`, says that there is nothing to judge.

    Optional members:
        score_fields: The keys that it can emit, as a tuple.
        ascore(original, processed): Awaited instead of `score`.
        slow: True when it works long: it then runs in a thread, beside the systems.
        needs_answer: True when it judges answers alone: a system that returns a context gets no score of it.
        needs_context: True when it judges what a model would be sent: a system that returns an answer alone gets no
            score of it.
        model: The model that it asks. Its requests then count against the spending limits of the run.
        write_request(original, processed): The body of the request that it would send, or None: for the estimate of
            what it costs, as `max_tokens` bounds its reply.
        version: Changed whenever its verdicts change; with its attributes it is the cache key.
        fingerprint: A text that is the cache key instead.
        prepare(): As for a system, when the evaluator was chosen by the user.
        finish(): As for a system, when the evaluator was chosen by the user.
    """

    @property
    def name(self) -> str: ...

    def score(self, original: Example, processed: Example) -> dict[str, float]: ...


@runtime_checkable
class Metric(Protocol):
    """Turns all the rows of one system into summary numbers.

    Optional members:
        start(): Returns a `Tally`, so that no row has to be kept. It must take no arguments.
        by_dataset: The keys that a run over several datasets also gives as `<key>@<dataset>`; needs `start`.
        keys: The keys of all numbers that it may give. A gate on any other number is then refused before the run, and
            not after it.
        columns: The keys that the table shows, each with the format of its value (as `format()` takes it):
            `{"worst": ".2f", "share": ".1%"}`. Without it every key of a metric of one's own has a column.
        score_field: A text: the score that it is made of. The first metric that has one tells which score counts,
            where the run does not say.
        threshold: A number: the score from which on an example passes; recorded with the run.
    """

    @property
    def name(self) -> str: ...

    def compute(self, rows: list[EvalRow]) -> dict[str, float]: ...


@runtime_checkable
class Tally(Protocol):
    """A number in the making: takes rows one by one.

    Optional members:
        unmeasured(): The keys of `result()` that stand on no row, each with the reason; their value becomes NaN.
        notes(): A sentence for each key whose value needs one.
        intervals(): The `context_bench.stats.Interval` of each key that has one.
    """

    def add(self, row: EvalRow) -> None: ...

    def result(self) -> dict[str, float]: ...


@runtime_checkable
class Reporter(Protocol):
    """Renders a finished result as text, which ends with a line end.

    A class whose constructor takes `width` gets the columns of the terminal that it writes to, or None; one that takes
    `color` gets whether that terminal shows colours; one that takes `store` gets the folder of the store that the run
    is recorded in, or None.

    Optional members:
        render_parts(result): Called instead of `render` by the command line: gives the same text in pieces, so that a
            long report is never in memory as a whole.
    """

    @property
    def name(self) -> str: ...

    def render(self, result: EvalResult) -> str: ...


@runtime_checkable
class MemorySystem(Protocol):
    """Takes in a conversation once, then answers questions about it.

    `reset()` empties it before each conversation, `ingest(turns)` brings some turns (`role`, `speaker`, `content`,
    `timestamp`, `session`, `id`, in the order of time), `query(question)` returns an answer. The date of a question
    stands in its text. Each method may be `async def`, or have an asynchronous variant (`aingest`, `aquery` and so on),
    which is then awaited instead; all calls of one object come one at a time. With several conversations
    at a time each has an object of its own.

    Optional members:
        retrieve(question, k=None, budget_tokens=None): The best first: a list of `{"text"}`, with the `ids` of the
            turns that each comes from. A turn counts as found where the text has its words. One reader then answers for
            all memory systems.
            `k` and `budget_tokens` are passed where it takes them.
        flush(): Returns when what was ingested can be found.
        memories(): A list of what it holds now: texts, or objects with `text`. With a parameter `user` it is asked for
            each user.
        forget(request): Deletes what the request (`{"what": ...}`) names; without it, a turn that asks for deletion is
            ingested as any other.
        restore(key): Called with a text that stands for a conversation before it is written: True when the memory of
            that conversation outlived an earlier process, and is in place now. What is ingested next belongs to that
            key. One that returns how many turns it holds instead of True is continued after them; without that, an
            interrupted conversation may be written again from its beginning.
        user: A parameter of `ingest`, `query` and `retrieve`: whose memory is meant. Without it, leaks between users
            are not measured.
        takes_dates: True when it reads the `timestamp` of turns; for others the date stands before their text.
        is_control: True for one that shows where others lie: it has no budget, and is not ranked.
        is_frozen: True for one that retrieves from a file, whatever is written: nothing is looked for in it.
        point_to(ids): Called before each `retrieve` of a control with the ids of the evidence, of one that is frozen
            with the id of the question.
        storage: The file or folder that it keeps its memory in, whose size is reported.
        one_at_a_time: True where it cannot be made twice, as it holds a port or a file: no conversations are then
            written at the same time.
        fingerprint: A text: what makes its answers differ; without it, its code and parameters are.

    A class (or a function that makes the system) whose parameters are called `base_url`, `model`, `embedding_model`,
    `api_key` or `seed` is given the address of its tap, and what the run says of the others.
    """

    @property
    def name(self) -> str: ...

    def reset(self) -> None: ...

    def ingest(self, turns: Sequence[dict[str, Any]]) -> None: ...

    def query(self, question: str) -> str: ...
