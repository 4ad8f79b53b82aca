"""A job (one system on one example), and the row that is made from its answer.

A row has the scores of the answer, its tokens by our own count, its cost, and the facts of the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_bench.core.call import Outcome, measure_request
from context_bench.core.examples import Item
from context_bench.core.judge import Judgement, is_unread
from context_bench.errors import warn
from context_bench.evaluators.evidence_map import locate_evidence
from context_bench.pricing import COSTS, PRICED_BY_CALL, Prices, load_shipped_prices, price_row
from context_bench.results import EvalRow
from context_bench.store.backend import Keys
from context_bench.systems.prompts import merge
from context_bench.text.golds import turn_responses
from context_bench.traffic.exchanges import read_exchanges
from context_bench.traffic.row_facts import count_request, measure_row
from context_bench.traits import find_model, is_endpoint, system_traits
from context_bench.types import System
from context_bench.utils.tokens import Tokenizer, count_prompt, read_token_count

_COSTS = frozenset(COSTS)
_PRICED = _COSTS | PRICED_BY_CALL | {"timed_out_attempts"}
"""Metadata fields about money, which matter even if the system's model has no price."""


@dataclass(slots=True)
class Job:
    """One system on one example; `order` is its place in the result."""

    order: int
    system: System
    item: Item
    repeat: int = 0
    keys: Keys | None = None


class RowMaker:
    """Makes rows.

    Args:
        count: Counts tokens.
        text_fields: The fields of the prompt; None for the usual ones.
        prices: Prices of models.
        systems: All systems of the run; the price of each is looked up once.
        repeats: Whether examples are answered several times; these answers are not independent.
    """

    def __init__(
        self,
        count: Tokenizer,
        text_fields: Sequence[str] | None,
        prices: Prices | None,
        systems: Sequence[System],
        repeats: bool = False,
    ) -> None:
        self._count, self._text_fields, self._prices = count, text_fields, prices
        self._repeats = repeats
        self._warns = prices is not None and prices is not load_shipped_prices()
        self._price_of = {} if prices is None else {each.name: prices.of(find_model(each)) for each in systems}
        self._warned: set[tuple[str, str]] = set()

    def row(self, job: Job, outcome: Outcome, judgement: Judgement) -> EvalRow:
        """Make the row of a job from its outcome and its scores."""
        item, error, is_context = job.item, outcome.error, outcome.returns == "context"
        example, processed, wiring = item.example, outcome.processed, item.wiring
        meta, asks_memory = example.get("meta"), "memory" in example
        metadata = {**outcome.metadata, **judgement.details}
        if meta is not None:
            metadata |= _read_aggregation_fields(meta)
        if asks_memory:
            metadata |= _read_question_facts(example)
        if self._repeats or meta is not None or "cluster" in metadata:
            self.set_cluster(job, metadata)
        threshold = None if wiring is None else wiring.threshold
        if threshold is not None and not (is_context and is_unread(processed, outcome.metadata)):
            metadata["card_threshold"] = threshold
        if "ignored_usage" in metadata:
            self._warn_once(job, "impossible token usage, which is ignored (`ignored_usage` in its rows)")
        if "tapped" in processed and not is_context:
            seen = read_exchanges(processed["tapped"])
            metadata |= measure_row(seen, self._count, repeated=self._repeats).as_metadata()
        upstream = metadata.pop("upstream_tokens", None)
        if "upstream" in metadata and metadata.pop("upstream") == "context":
            # a reader received the context that it returned
            upstream, metadata["sent_tokens"] = self._reader_tokens(job, processed)
        output_tokens = response_tokens = 0
        response = processed.get("response", "")
        if error is None:
            metadata["output"] = outcome.returns
            if is_context:
                passed_on = merge(example, processed)
                if all(passed_on.get(key) == value for key, value in example.items()):
                    metadata["unchanged"] = True
                output_tokens = count_prompt(passed_on, self._count, self._text_fields)
                response_tokens = self._count(response)
            else:
                if "turn_responses" in processed or "responses" in processed:
                    replies = turn_responses(processed) or (response,)
                    output_tokens = sum([self._count(reply) for reply in replies if reply])
                elif response:
                    output_tokens = self._count(response)
                response_tokens = output_tokens
        metadata["response_tokens"] = response_tokens
        upstream_tokens = upstream if isinstance(upstream, int) else None
        if error is None and not asks_memory:
            if is_context and upstream is None:
                metadata |= self._describe_cuts(item, self.count_input(item) - output_tokens)
            elif upstream_tokens is not None and isinstance(sent := metadata.get("sent_tokens"), int):
                metadata |= self._describe_cuts(item, sent - upstream_tokens, is_read=True)
        self.price(job, metadata, upstream_tokens, failed=error is not None)
        row = EvalRow(  # positional arguments take half the time
            job.system.name,
            example["id"],
            judgement.scores,
            self.count_input(item),
            output_tokens,
            metadata,
            outcome.latency,
            item.tag,
            response,
            error,
            job.repeat,
            judgement.unscored,
            upstream_tokens,
        )
        if meta is not None:
            row.meta = meta
        return row

    def _describe_cuts(self, item: Item, saved: int, *, is_read: bool = False) -> dict[str, Any]:
        """Return the place of the evidence, and the share of it that naive cuts of the same size would keep.

        Empty if the example has no evidence or its context does not contain it. If a model reads, an answer at several
        places is not evidence of any one place, because most occurrences are chance.
        """
        if item.evidence is None:
            item.evidence = locate_evidence(item.example, self._count) or False
        if not item.evidence or (is_read and not item.example.get("evidence") and item.evidence.count_places() > 1):
            return {}
        return item.evidence.describe_cut(item.evidence.whole - saved)

    def set_cluster(self, job: Job, metadata: dict[str, Any]) -> None:
        """Set `cluster`: the document or conversation that examples share, or the repeated example itself.

        The latter is `["example", id]`, because a group may have the same name as an example.
        """
        example, wiring = job.item.example, job.item.wiring
        meta, field = example.get("meta"), "group" if wiring is None else wiring.cluster_field
        cluster = meta.get(field) if isinstance(meta, Mapping) else None
        metadata.pop("cluster", None)
        if isinstance(cluster, str | int):
            metadata["cluster"] = cluster
        elif cluster is None and self._repeats:
            metadata["cluster"] = ["example", example["id"]]

    def _reader_tokens(self, job: Job, processed: Mapping[str, Any]) -> tuple[int | None, int | None]:
        """Count the tokens sent to the reader, and the tokens of the same request with the unchanged example."""
        list_requests = system_traits(job.system).list_requests
        if list_requests is None:  # a stored answer of a system that no longer has a reader
            return None, None
        replies = turn_responses(processed) or (processed.get("response", ""),)
        passed_on, sent = (
            sum(count_request(body, self._count) for body in list_requests(each, replies))
            for each in (merge(job.item.example, processed), job.item.example)
        )
        return passed_on, sent

    def count_input(self, item: Item) -> int:
        """Count the prompt of an example, once for all systems."""
        if item.tokens is None:
            history = _read_question_facts(item.example).get("history_tokens", 0) if "memory" in item.example else 0
            item.tokens = count_prompt(item.example, self._count, self._text_fields) + history
        return item.tokens

    def _warn_once(self, job: Job, message: str) -> None:
        """Warn about a system's usage, once per message."""
        if (job.system.name, message) not in self._warned:
            self._warned.add((job.system.name, message))
            warn(f"{job.system.name!r} reports {message}")

    def price(self, job: Job, metadata: dict[str, Any], upstream_tokens: int | None, *, failed: bool = False) -> bool:
        """Set the cost of a row by the prices of this run, even if an earlier run had other prices.

        A failed row costs what its usage costs, if the usage is known.

        Returns:
            Whether the row has changed.
        """
        if self._prices is None:
            return False
        price = self._price_of[job.system.name]
        if price is None and _PRICED.isdisjoint(metadata):
            return False
        costs = price_row(self._prices, price, metadata, upstream_tokens)
        if "timed_out_attempts" in metadata:
            costs |= self._bound_timed_out(job, metadata)
        # A note of the summary explains why rows with these fields have no cost.
        explained = failed or not metadata.keys().isdisjoint({"saved_by_repeating", "most_usage"})
        if self._warns and price is not None and not explained and "cost_usd" not in costs and is_endpoint(job.system):
            self._warn_once(job, "no token usage, so its cost is unknown")
        if not costs and _COSTS.isdisjoint(metadata):
            return False
        if costs.items() <= metadata.items() and not any(key in metadata for key in COSTS if key not in costs):
            return False
        for key in COSTS:
            metadata.pop(key, None)
        metadata |= costs
        return True

    def _bound_timed_out(self, job: Job, metadata: Mapping[str, Any]) -> dict[str, float]:
        """Return the largest cost of attempts without an answer; empty if no bound is known.

        The prompt's tokens are the server's count for a later attempt, or our own count if that is larger.
        """
        price = self._price_of[job.system.name]
        size = measure_request(job.system, job.item.example, self._count)
        if price is None or size.reply is None:
            return {}
        prompt = max(size.prompt, read_token_count(metadata.get("prompt_tokens")) or 0)
        return {"timed_out_cost_usd": metadata["timed_out_attempts"] * price.dollars(prompt, size.reply)}


def _read_aggregation_fields(meta: Any) -> dict[str, Any]:
    """Return group, weight and weight_field, for official scores that are not means of rows."""
    if not isinstance(meta, Mapping):
        return {}
    standing = {key: meta[key] for key in ("group", "weight", "weight_field") if key in meta}
    if not isinstance(standing.get("weight", 1), int | float):
        del standing["weight"]
    return standing


def _read_question_facts(example: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of a memory question, the tokens of its history, and its number of evidence turns."""
    about, meta = example["memory"], example.get("meta")
    tokens = read_token_count(about.get("history_tokens")) if isinstance(about, Mapping) else None
    if tokens is None or not isinstance(meta, Mapping):
        return {}
    named = {str(each) for each in about.get("evidence_ids") or ()}
    return {"question_type": str(meta.get("type") or ""), "history_tokens": tokens, "evidence_count": len(named)}
