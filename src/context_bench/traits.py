"""Optional abilities of a part, beyond what its Protocol asks for: the one place that looks for them.

A part of a user's is asked for the optional members that `types.py` documents, and for nothing else: any other
attribute is its author's own. Our own parts tell the engine more, through one typed interface: a class hands it out by
the method `__context_bench_traits__`, a name that nobody uses by chance. It is looked for on the class, so that an
object that answers to every name (a stub, a proxy of a remote object) has no traits.
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


# -- what our own parts tell


@dataclass(slots=True)
class SystemTraits:
    """Traits of one of our own systems; a user's system has the defaults."""

    own_client: bool = False  # its requests are made by our client, so that what it says of them is taken at its word
    parts: Sequence[Any] = ()  # the components that its answers depend on, and that may read the gold for it
    max_workers: int | None = None  # requests in flight at once, unless the run says otherwise
    takes_turns: bool = False  # its answers are made on this machine: it does not run beside other systems that are
    queues: bool = False  # its calls wait for a turn of their own meanwhile: it needs slots beside those of others
    competes: bool = True  # False for a control, which is not ranked
    is_bound: bool = False  # a floor or a ceiling: it is ranked, and never wins
    sees_upstream: bool = False  # it knows what the model behind it was sent
    asks_model: bool = False  # it asks a model, also where it does not know the name of that model
    # the body that is sent for an example, or None
    request_body: Callable[[dict[str, Any]], Mapping[str, Any] | None] | None = None
    # the bodies that a reader is sent for an example, one for each of its replies
    list_requests: Callable[[dict[str, Any], Sequence[str]], list[Mapping[str, Any]]] | None = None
    # why nothing more needs to be sent after this failure or answer, or None
    stop_reason: Callable[[BaseException | None, Mapping[str, Any]], str | None] | None = None
    # what is to be said of the run beside its rows, given a tokenizer
    report: Callable[[Callable[[str], int]], dict[str, Any]] | None = None
    status_text: Callable[[], str] | None = None  # progress text while a slow system produces no rows; "" for none
    list_unmatched: Callable[[], Sequence[Any]] | None = None  # requests that its tap saw and that belong to no example
    # what waits for the rows of another system: its `system` is the name, `note` and `close` are told of them
    follows: Any = None
    # what a request for an example takes, where it is not the request of an API: prompt tokens, and those of the reply
    measure: Callable[[Mapping[str, Any], Callable[[str], int]], tuple[int, int]] | None = None
    # takes who counts what it spends outside of its answers (None without a limit), and who says if the run is stopped
    join_run: Callable[[Any, Callable[[], bool]], None] | None = None
    # takes what runs the first of its parts elsewhere, or None to run it here again
    place_compressor: Callable[[Any], None] | None = None


@dataclass(slots=True)
class MetricTraits:
    """Abilities of one of our own metrics that need more than the rows of one system."""

    rank: Callable[[Mapping[str, Mapping[str, float]]], dict[str, int]] | None = None  # ranks the systems of a summary
    cost_field: str = COST_OF_PASS  # what `rank` takes for the cost
    # gives numbers that hold the systems of a summary against each other
    compare: Callable[[Mapping[str, Mapping[str, float]]], dict[str, dict[str, float]]] | None = None


@dataclass(slots=True)
class DatasetTraits:
    """Abilities of one of our own datasets, beside giving its examples."""

    check: Callable[[], object] | None = None  # reads it in full and raises DataError on the first problem
    count_checked: Callable[[], int] = lambda: 0  # how many examples `check` has seen so far
    source: Callable[[], Mapping[str, Any]] | None = None  # where the examples come from, for the record of a run
    at_hand: bool = False  # it can be read whole, and again, at little cost: its records are on this machine
    # takes the examples read by tag, and says how they were chosen: `all`, `first`, `random`
    name_samples: Callable[[Mapping[str, int]], dict[str, str]] | None = None
    # says where an example stands in the result, where that is not the order in which it is read
    find_place: Callable[[Mapping[str, Any]], int] | None = None
    # counts what `check` has seen, by tag and by the fields that decide which score fits
    count_fields: Callable[[], Mapping[tuple[str, tuple[str, ...]], int]] = dict


@dataclass(frozen=True)
class ReferenceTraits:
    """How a reference to one of our own classes is read."""

    argument: str  # the parameter that gets the text after the colon that is not `key=value`
    verbatim: bool = False  # that text is taken as it is, commas and equals signs included


_PLAIN_SYSTEM, _PLAIN_METRIC, _PLAIN_DATASET = SystemTraits(), MetricTraits(), DatasetTraits()


def system_traits(system: Any) -> SystemTraits:
    """Ask a system for its traits; one of a user's has the defaults, which are only to be read."""
    ask = getattr(type(system), _METHOD, None)
    return _PLAIN_SYSTEM if ask is None else ask(system)


def never_wins(system: Any) -> bool:
    """Whether a system is a control, a floor or a ceiling: it shows where others lie, and is not a choice."""
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
    """Say how a reference to a class is read; None for the usual way."""
    found = getattr(factory, _REFERENCE, None) if isinstance(factory, type) else None
    return found if isinstance(found, ReferenceTraits) else None


def find_parts(component: Any) -> Sequence[Any]:
    """Return the components that one of our wrappers stands for."""
    ask = getattr(type(component), _METHOD, None)
    found = None if ask is None else ask(component)
    return found.parts if isinstance(found, SystemTraits) else ()


# -- what any part may have


def _read_member(part: Any, name: str, default: Any) -> Any:
    """Read an optional member of a part; a property that raises is a mistake that the author is told of."""
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
    """Return a member that is a text; anything else is the author's own."""
    found = _read_member(part, name, None)
    return found if isinstance(found, str) else None


def _call_method(name: str, part: Any) -> dict[str, Any]:
    action = _find_action(part, name)
    return {} if action is None else dict(action())


is_endpoint = partial(_has_method, "aprocess")
"""Whether a system waits for somebody else, so that many calls can be in flight at once."""
can_answer_turns = partial(_has_method, "process_conversation")
can_await_turns = partial(_has_method, "aprocess_conversation")
scores_asynchronously = partial(_has_method, "ascore")
sends_elsewhere = partial(_is_set, "sends_elsewhere")
"""Whether a system says that it sends its prompt to a server and returns the answer alone."""
is_script = partial(_is_set, "is_script")  # whether no model answers, but a script
reads_any_api = partial(_is_set, "reads_any_api")
"""Whether a system that edits messages reads those of every API; others get those of chat completions."""
find_label = partial(_read_text, "label")  # return what is to be said of every result that an answerer has a part in
find_model = partial(_read_text, "model")  # return the name of the model that a system asks
find_score_field = partial(_read_text, "score_field")  # return the score that a metric is made of, where it says
read_notes = partial(_call_method, "notes")  # return the sentences that a tally has on its values
read_unmeasured = partial(_call_method, "unmeasured")
"""Return the keys of a tally that stand on no row, with the reason."""
read_intervals = partial(_call_method, "intervals")  # return the intervals that a tally gives for its values


def find_need(evaluator: Any) -> Literal["answer", "context"] | None:
    """Find what an evaluator judges alone: answers, or what a model would be sent; None for one that judges both."""
    if _read_member(evaluator, "needs_answer", False) is True:
        return "answer"
    return "context" if _read_member(evaluator, "needs_context", False) is True else None


def find_name(part: Any) -> Any:
    """Return the `name` of a part; None when it has none."""
    return _read_member(part, "name", None)


def may_read_gold(system: Any) -> bool:
    """Whether a system leaves open that its answers depend on the gold."""
    return _read_member(system, "reads_gold", True) is not False


def find_fingerprint(part: Any) -> Any:
    """Return the `fingerprint` of a part; () when it has none."""
    return _read_member(part, "fingerprint", ())


def declares_fingerprint(kind: type) -> bool:
    """Whether a class says itself what makes the answers of its objects differ."""
    return hasattr(kind, "fingerprint")


def is_versioned(part: Any) -> bool:
    """Whether a part is an evaluator with a `version`, which is then its cache key."""
    return _read_member(part, "version", _ABSENT) is not _ABSENT and hasattr(part, "score")


def asks_model(system: Any) -> bool:
    """Whether a system asks a model, so that its requests have a price."""
    return find_model(system) is not None or system_traits(system).asks_model


def find_resources(part: Any) -> dict[str, float]:
    """Return what a worker of a cluster needs for a part, where it says: numbers by the names that Ray has for them."""
    found = _read_member(part, "resources", None)
    if not isinstance(found, Mapping):
        return {}
    known = all(isinstance(key, str) and isinstance(value, int | float) for key, value in found.items())
    return dict(found) if known else {}


def remembers(part: Any) -> bool:
    """Whether a part is a memory system: it takes conversations in, and answers from them later.

    A system that has `process` is one to be run on examples, whatever else it has.
    """
    asked = {method: callable(_read_member(part, method, None)) for method in ("ingest", "query", "process")}
    return asked["ingest"] and asked["query"] and not asked["process"]


def find_prepare(part: Any) -> Callable[[], Any] | None:
    """Return what a part does before the first example: `prepare`, when it is asynchronous and needs no arguments."""
    prepare = _find_action(part, "prepare")
    return prepare if inspect.iscoroutinefunction(prepare) else None


def has_plain_prepare(part: Any) -> bool:
    """Whether a part has a `prepare` that would be called, if it were asynchronous."""
    prepare = _find_action(part, "prepare")
    return prepare is not None and not inspect.iscoroutinefunction(prepare)


def find_finish(part: Any) -> Callable[[], Any] | None:
    """Return what a part does after the last example: `finish`, when it needs no arguments."""
    return _find_action(part, "finish")


def _find_action(part: Any, name: str, count: int = 0) -> Callable[..., Any] | None:
    """Return a method that can be called with so many arguments; one that needs more is for somebody else."""
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
    """Return the keys that an evaluator says it can emit; None when it does not say."""
    fields = _read_member(evaluator, "score_fields", None)
    if isinstance(fields, str):
        return (fields,)
    known = isinstance(fields, list | tuple | set | frozenset) and all(isinstance(key, str) for key in fields)
    return tuple(fields) if known and fields is not None else None


def is_slow(evaluator: Any) -> bool:
    """Whether an evaluator takes so long that a system should not wait for it."""
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
    """Return the keys of all numbers that a metric may give; None when it does not say."""
    keys = _read_member(metric, "keys", ())
    known = isinstance(keys, list | tuple) and all(isinstance(key, str) for key in keys)
    return tuple(keys) if known and keys else None


def find_columns(metric: Any) -> dict[str, str] | None:
    """Return the columns that a metric wants in the table, as key and format; None when it does not say."""
    columns = _read_member(metric, "columns", None)
    if not isinstance(columns, Mapping):
        return None
    known = all(isinstance(key, str) and isinstance(form, str) for key, form in columns.items())
    return dict(columns) if known else None


def find_threshold(metric: Any) -> float | None:
    """Return the score from which on an example passes, where a metric says."""
    threshold = _read_member(metric, "threshold", None)
    known = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    return threshold if known else None


def find_render_parts(reporter: Any) -> Callable[[Any], Any] | None:
    """Return the method of a reporter that gives its text in pieces, when it takes the result alone."""
    return _find_action(reporter, "render_parts", 1)


def find_secrets(answerer: Any) -> tuple[str, ...]:
    """Return the values of an answerer that must be shown and kept nowhere."""
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
