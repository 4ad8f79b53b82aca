"""Optional abilities of a part beyond its Protocol; only this module looks for them.

A user's part is asked only for the optional members that `types.py` documents: any other attribute is its author's own.
Built-in parts pass more facts to the engine, by the method `__context_bench_traits__` of their class. It is looked up
on the class, so that an object that has every attribute (a stub, a proxy of a remote object) has no traits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from context_bench.errors import UsageError, describe
from context_bench.numbers import COST_OF_PASS

_METHOD = "__context_bench_traits__"
_REFERENCE = "__context_bench_reference__"
_ABSENT = object()


# -- facts about our own parts


@dataclass(slots=True)
class SystemTraits:
    """Traits of a built-in system; a user's system has the defaults."""

    own_client: bool = False  # our client makes its requests, so its facts about them are trusted
    parts: Sequence[Any] = ()  # components that its answers depend on, and that may read the gold
    max_workers: int | None = None  # requests in flight at once, unless the run says otherwise
    takes_turns: bool = False  # it answers on this machine: such systems do not run at the same time
    queues: bool = False  # its calls queue themselves: it needs its own slots
    competes: bool = True  # False for a control, which is not ranked
    is_bound: bool = False  # a floor or a ceiling: it is ranked, and never wins
    sees_upstream: bool = False  # it knows the request that the model behind it received
    asks_model: bool = False  # it asks a model, even if it does not know the model's name
    # the body that is sent for an example, or None
    request_body: Callable[[dict[str, Any]], Mapping[str, Any] | None] | None = None
    # the bodies that a reader is sent for an example, one for each of its replies
    list_requests: Callable[[dict[str, Any], Sequence[str]], list[Mapping[str, Any]]] | None = None
    # why nothing more needs to be sent after this failure or answer, or None
    stop_reason: Callable[[BaseException | None, Mapping[str, Any]], str | None] | None = None
    # makes its report at the end of the run, given a tokenizer
    report: Callable[[Callable[[str], int]], dict[str, Any]] | None = None
    status_text: Callable[[], str] | None = None  # progress text while a slow system produces no rows; "" for none
    list_unmatched: Callable[[], Sequence[Any]] | None = None  # requests that its tap saw and that belong to no example
    # waits for the rows of another system (`system`), which go to its `note` and `close`
    follows: Any = None
    # what a request for an example takes, where it is not the request of an API: prompt tokens, and those of the reply
    measure: Callable[[Mapping[str, Any], Callable[[str], int]], tuple[int, int]] | None = None
    # takes who counts what it spends outside of its answers (None without a limit), and who says if the run is stopped
    join_run: Callable[[Any, Callable[[], bool]], None] | None = None
    # takes what runs the first of its parts elsewhere, or None to run it here again
    place_compressor: Callable[[Any], None] | None = None


@dataclass(slots=True)
class MetricTraits:
    """Abilities of a built-in metric that need more than the rows of one system."""

    rank: Callable[[Mapping[str, Mapping[str, float]]], dict[str, int]] | None = None  # ranks the systems of a summary
    cost_field: str = COST_OF_PASS  # what `rank` takes for the cost
    # computes numbers that compare the systems of a summary
    compare: Callable[[Mapping[str, Mapping[str, float]]], dict[str, dict[str, float]]] | None = None


@dataclass(slots=True)
class DatasetTraits:
    """Abilities of a built-in dataset, apart from yielding its examples."""

    check: Callable[[], object] | None = None  # reads it in full and raises DataError on the first problem
    count_checked: Callable[[], int] = lambda: 0  # how many examples `check` has seen so far
    source: Callable[[], Mapping[str, Any]] | None = None  # where the examples come from, for the record of a run
    at_hand: bool = False  # its records are on this machine, so it can be read whole and again at little cost
    # takes the number of examples read by tag, and returns how they were chosen: `all`, `first`, `random`
    name_samples: Callable[[Mapping[str, int]], dict[str, str]] | None = None
    # returns the place of an example in the result, if it is not the order of reading
    find_place: Callable[[Mapping[str, Any]], int] | None = None
    # counts the examples of `check` by tag and by the fields that decide which score fits
    count_fields: Callable[[], Mapping[tuple[str, tuple[str, ...]], int]] = dict


@dataclass(frozen=True)
class ReferenceTraits:
    """How a reference to a built-in class is read."""

    argument: str  # the parameter that gets the text after the colon that is not `key=value`
    verbatim: bool = False  # that text is taken literally, including commas and equals signs


_PLAIN_SYSTEM, _PLAIN_METRIC, _PLAIN_DATASET = SystemTraits(), MetricTraits(), DatasetTraits()


def system_traits(system: Any) -> SystemTraits:
    """Return the traits of a system; a user's system has the defaults, which must not be changed."""
    ask = getattr(type(system), _METHOD, None)
    return _PLAIN_SYSTEM if ask is None else ask(system)


def never_wins(system: Any) -> bool:
    """Whether a system is a control, a floor or a ceiling, which serve for comparison only."""
    traits = system_traits(system)
    return traits.is_bound or not traits.competes


def metric_traits(metric: Any) -> MetricTraits:
    """Ask a metric for its traits."""
    ask = getattr(type(metric), _METHOD, None)
    return _PLAIN_METRIC if ask is None else ask(metric)


def dataset_traits(dataset: Any) -> DatasetTraits:
    """Ask a dataset for its traits."""
    ask = getattr(type(dataset), _METHOD, None)
    return _PLAIN_DATASET if ask is None else ask(dataset)


def reference_traits(factory: Any) -> ReferenceTraits | None:
    """Return how a reference to a class is read; None for the usual way."""
    found = getattr(factory, _REFERENCE, None) if isinstance(factory, type) else None
    return found if isinstance(found, ReferenceTraits) else None


def find_parts(component: Any) -> Sequence[Any]:
    """Return the components inside a built-in wrapper."""
    ask = getattr(type(component), _METHOD, None)
    found = None if ask is None else ask(component)
    return found.parts if isinstance(found, SystemTraits) else ()


# -- what any part may have


def _read_member(part: Any, name: str, default: Any) -> Any:
    """Read an optional member of a part; a property that raises is reported as a mistake."""
    try:
        return getattr(part, name, default)
    except Exception as error:
        kind = type(part).__name__
        raise UsageError(f"`{name}` of a {kind} must be readable (it raised {describe(error)})") from error


def _has_method(name: str, part: Any) -> bool:
    return callable(_read_member(part, name, None))


def _is_set(name: str, part: Any) -> bool:
    return _read_member(part, name, False) is True


def _read_text(name: str, part: Any) -> str | None:
    """Return a member that is a text; ignore anything else."""
    found = _read_member(part, name, None)
    return found if isinstance(found, str) else None


def _call_method(name: str, part: Any) -> dict[str, Any]:
    action = _find_action(part, name)
    return {} if action is None else dict(action())


is_endpoint = partial(_has_method, "aprocess")
"""Whether a system is awaited, so that many calls can be in flight at once."""
can_answer_turns = partial(_has_method, "process_conversation")
can_await_turns = partial(_has_method, "aprocess_conversation")
scores_asynchronously = partial(_has_method, "ascore")
sends_elsewhere = partial(_is_set, "sends_elsewhere")
"""Whether a system says that it sends its prompt to a server and returns the answer alone."""
is_script = partial(_is_set, "is_script")  # whether no model answers, but a script
reads_any_api = partial(_is_set, "reads_any_api")
"""Whether a system that edits messages reads those of every API; others get those of chat completions."""
find_label = partial(_read_text, "label")  # return the note on every result with an answerer's answers
find_model = partial(_read_text, "model")  # return the name of the model that a system asks
find_score_field = partial(_read_text, "score_field")  # return the score that a metric is computed from, if declared
read_notes = partial(_call_method, "notes")  # return the sentences that a tally has on its values
read_unmeasured = partial(_call_method, "unmeasured")
"""Return the keys of a tally that are based on no row, each with the reason."""
read_intervals = partial(_call_method, "intervals")  # return the intervals that a tally gives for its values


def find_need(evaluator: Any) -> Literal["answer", "context"] | None:
    """Return the only thing that an evaluator judges: answers or contexts; None if it judges both."""
    if _read_member(evaluator, "needs_answer", False) is True:
        return "answer"
    return "context" if _read_member(evaluator, "needs_context", False) is True else None


def find_name(part: Any) -> Any:
    """Return the `name` of a part; None without a name."""
    return _read_member(part, "name", None)


def may_read_gold(system: Any) -> bool:
    """Whether a system's answers may depend on the gold."""
    return _read_member(system, "reads_gold", True) is not False


def find_fingerprint(part: Any) -> Any:
    """Return the `fingerprint` of a part; () when it has none."""
    return _read_member(part, "fingerprint", ())


def declares_fingerprint(kind: type) -> bool:
    """Whether a class itself declares what its objects' answers depend on."""
    return hasattr(kind, "fingerprint")


def is_versioned(part: Any) -> bool:
    """Whether a part is an evaluator with a `version`, which is then its cache key."""
    return _read_member(part, "version", _ABSENT) is not _ABSENT and hasattr(part, "score")


def asks_model(system: Any) -> bool:
    """Whether a system asks a model, so that its requests have a price."""
    return find_model(system) is not None or system_traits(system).asks_model


def find_resources(part: Any) -> dict[str, float]:
    """Return the resources that a cluster worker needs for a part, by Ray's names; empty if undeclared."""
    found = _read_member(part, "resources", None)
    if not isinstance(found, Mapping):
        return {}
    known = all(isinstance(key, str) and isinstance(value, int | float) for key, value in found.items())
    return dict(found) if known else {}


def remembers(part: Any) -> bool:
    """Whether a part is a memory system: it takes in conversations, and answers from them later.

    A system that has `process` is run on examples, even if it has these methods too.
    """
    asked = {method: callable(_read_member(part, method, None)) for method in ("ingest", "query", "process")}
    return asked["ingest"] and asked["query"] and not asked["process"]


def find_prepare(part: Any) -> Callable[[], Any] | None:
    """Return the `prepare` of a part if it is asynchronous and needs no arguments."""
    prepare = _find_action(part, "prepare")
    return prepare if inspect.iscoroutinefunction(prepare) else None


def has_plain_prepare(part: Any) -> bool:
    """Whether a part has a `prepare` that would be called, if it were asynchronous."""
    prepare = _find_action(part, "prepare")
    return prepare is not None and not inspect.iscoroutinefunction(prepare)


def find_finish(part: Any) -> Callable[[], Any] | None:
    """Return the `finish` of a part if it needs no arguments."""
    return _find_action(part, "finish")


def _find_action(part: Any, name: str, count: int = 0) -> Callable[..., Any] | None:
    """Return a method that accepts `count` arguments; None for others."""
    found = _read_member(part, name, None)
    if not callable(found):
        return None
    with suppress(ValueError):  # built in, with no signature to look at
        try:
            inspect.signature(found).bind(*[None] * count)
        except TypeError:
            return None
    return found  # type: ignore[no-any-return]


def find_score_fields(evaluator: Any) -> tuple[str, ...] | None:
    """Return the keys that an evaluator declares; None if it declares none."""
    fields = _read_member(evaluator, "score_fields", None)
    if isinstance(fields, str):
        return (fields,)
    known = isinstance(fields, list | tuple | set | frozenset) and all(isinstance(key, str) for key in fields)
    return tuple(fields) if known and fields is not None else None


def is_slow(evaluator: Any) -> bool:
    """Whether an evaluator is so slow that a system should not wait for it."""
    return _read_member(evaluator, "slow", False) is True or scores_asynchronously(evaluator)


def find_judge_request(evaluator: Any) -> Callable[[Any, Any], Mapping[str, Any] | None] | None:
    """Return the method of a judge that writes its request for an example and an answer, if it has one."""
    write = _read_member(evaluator, "write_request", None)
    return write if callable(write) else None


def can_start(metric: Any) -> bool:
    """Whether a metric has `start()`, which gives a tally."""
    return _find_action(metric, "start") is not None


def list_by_dataset(metric: Any) -> tuple[str, ...]:
    """Return the keys that a metric gives for each dataset too; none for a metric without `start`."""
    keys = _read_member(metric, "by_dataset", ())
    known = isinstance(keys, list | tuple) and all(isinstance(key, str) for key in keys)
    return tuple(keys) if known and can_start(metric) else ()


def find_keys(metric: Any) -> tuple[str, ...] | None:
    """Return the declared keys of all numbers of a metric; None if undeclared."""
    keys = _read_member(metric, "keys", ())
    known = isinstance(keys, list | tuple) and all(isinstance(key, str) for key in keys)
    return tuple(keys) if known and keys else None


def find_columns(metric: Any) -> dict[str, str] | None:
    """Return the table columns that a metric declares, as key and format; None if undeclared."""
    columns = _read_member(metric, "columns", None)
    if not isinstance(columns, Mapping):
        return None
    known = all(isinstance(key, str) and isinstance(form, str) for key, form in columns.items())
    return dict(columns) if known else None


def find_threshold(metric: Any) -> float | None:
    """Return the lowest passing score, if a metric declares it."""
    threshold = _read_member(metric, "threshold", None)
    known = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    return threshold if known else None


def find_render_parts(reporter: Any) -> Callable[[Any], Any] | None:
    """Return the method of a reporter that gives its text in pieces, if its only argument is the result."""
    return _find_action(reporter, "render_parts", 1)


def find_secrets(answerer: Any) -> tuple[str, ...]:
    """Return the values of an answerer that must never be shown or stored."""
    secrets = getattr(answerer, "secrets", ())
    return tuple(secrets) if isinstance(secrets, list | tuple | set | frozenset) else ()


def find_edit(system: Any) -> Callable[..., Any] | None:
    """Return the `edit` of a system that edits messages: it takes messages and tools, and returns both."""
    edit = getattr(system, "edit", None)
    return edit if callable(edit) else None


def find_breaks(part: Any) -> tuple[str, ...]:
    """Find the relations that a system or memory declares to break."""
    declared = _read_member(part, "breaks", ())
    return (declared,) if isinstance(declared, str) else tuple(map(str, declared or ()))
