"""What a row says: the scores of an answer, its tokens by our own count, its cost, and the facts of its call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from context_bench.engine.call import Outcome, is_endpoint
from context_bench.engine.jobs import Item, Job
from context_bench.engine.scoring import Judgement
from context_bench.golds import turn_responses
from context_bench.pricing import Prices
from context_bench.results import EvalRow
from context_bench.systems.prompts import merge
from context_bench.tap.numbers import count_request, tapped_numbers
from context_bench.utils.tokens import Tokenizer, count_prompt

__all__ = ["RowMaker"]


class RowMaker:
    """Makes rows.

    Args:
        count: Counts tokens.
        text_fields: The fields that count as the prompt; None for the usual ones.
        prices: For the cost of a request.
        find_threshold: The threshold that the card of a dataset tag recommends, if it does.
    """

    def __init__(
        self,
        count: Tokenizer,
        text_fields: Sequence[str] | None,
        prices: Prices | None,
        find_threshold: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        self._count, self._text_fields, self._prices = count, text_fields, prices
        self._find_threshold = cache(find_threshold)
        self._unpriced: set[str] = set()
        self._ignored: set[str] = set()

    def row(self, job: Job, outcome: Outcome, judgement: Judgement) -> EvalRow:
        """The row of a job."""
        example, processed = job.item.example, outcome.processed
        metadata = {**outcome.metadata, **judgement.details}
        if "meta" in example:
            metadata |= _read_aggregation_fields(example["meta"])
        threshold = self._find_threshold(job.item.tag)
        if threshold is not None:
            metadata["card_threshold"] = threshold
        self.price(job, metadata, failed=outcome.error is not None)
        if "ignored_usage" in metadata:
            self._warn_ignored_usage(job)
        if "tapped" in processed and outcome.returns == "response":
            metadata |= tapped_numbers(processed["tapped"], self._count)
        upstream = metadata.pop("upstream_tokens", None)
        if metadata.pop("upstream", None) == "context":  # a reader behind it was sent the context that it returned
            upstream, metadata["sent_tokens"] = self._reader_tokens(job, processed)
        output_tokens = response_tokens = 0
        response = processed.get("response", "")
        if outcome.error is None:
            metadata["output"] = outcome.returns
            if outcome.returns == "context":
                output_tokens = count_prompt(merge(example, processed), self._count, self._text_fields)
                response_tokens = self._count(response)
            else:
                replies = turn_responses(processed) or (response,)
                output_tokens = response_tokens = sum([self._count(reply) for reply in replies if reply])
        metadata["response_tokens"] = response_tokens
        return EvalRow(
            system=job.system.name,
            example_id=example["id"],
            scores=judgement.scores,
            input_tokens=self.count_input(job.item),
            output_tokens=output_tokens,
            metadata=metadata,
            latency=outcome.latency,
            dataset=job.item.tag,
            response=response,
            error=outcome.error,
            repeat=job.repeat,
            unscored=judgement.unscored,
            upstream_tokens=upstream if isinstance(upstream, int) else None,
        )

    def _reader_tokens(self, job: Job, processed: Mapping[str, Any]) -> tuple[int, int]:
        """Tokens that the reader was sent, and what it would have been sent for the example as it came."""
        system: Any = job.system
        replies = turn_responses(processed) or (processed.get("response", ""),)
        passed_on, sent = (
            sum(count_request(body, self._count) for body in system.list_requests(each, replies))
            for each in (merge(job.item.example, processed), job.item.example)
        )
        return passed_on, sent

    def count_input(self, item: Item) -> int:
        """Count the prompt of an example, once for all systems."""
        if item.tokens is None:
            item.tokens = count_prompt(item.example, self._count, self._text_fields)
        return item.tokens

    def _warn_ignored_usage(self, job: Job) -> None:
        """Say once for each system that its server tells numbers that cannot be."""
        if job.system.name not in self._ignored:
            self._ignored.add(job.system.name)
            message = (
                f"{job.system.name!r} tells token usage that cannot be, which is ignored (`ignored_usage` in its rows)"
            )
            warnings.warn(message, stacklevel=2)

    def price(self, job: Job, metadata: dict[str, Any], *, failed: bool = False) -> bool:
        """Put the cost in by the prices of this run, whatever an earlier one reckoned with; False without prices.

        What failed has cost what its usage says, if that is known.
        """
        if self._prices is None:
            return False
        price = self._prices.of(getattr(job.system, "model", None))
        cost = None if price is None else price.cost(metadata)
        if cost is not None:
            metadata["cost"] = cost
        elif price is not None and not failed and is_endpoint(job.system) and job.system.name not in self._unpriced:
            self._unpriced.add(job.system.name)
            warnings.warn(f"{job.system.name!r} tells no token usage, so what it costs is not known", stacklevel=2)
        return True


def _read_aggregation_fields(meta: Any) -> dict[str, Any]:
    """Return group, weight and weight_field, for official scores that are not a mean over rows."""
    if not isinstance(meta, Mapping):
        return {}
    standing = {key: meta[key] for key in ("group", "weight", "weight_field") if key in meta}
    if not isinstance(standing.get("weight", 1), int | float):
        del standing["weight"]
    return standing
