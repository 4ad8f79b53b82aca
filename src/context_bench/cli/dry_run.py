"""`--dry-run`: estimate the requests and the cost of a run. Nothing is sent."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_bench.cli.output import format_json, table_width
from context_bench.config import RunOptions
from context_bench.core.cache import Cache
from context_bench.core.call import measure_judge_request, measure_request
from context_bench.core.examples import read_items
from context_bench.core.judge import Scorer
from context_bench.core.row import Job
from context_bench.monitors.progress import StatusLine
from context_bench.output.layout import fit_listing
from context_bench.pricing import Prices, load_shipped_prices
from context_bench.store import Store
from context_bench.systems.prompts import build_messages, list_turn_prompts, open_turns
from context_bench.text import count_things
from context_bench.text.masking import PROMPT_FIELDS, mask_document
from context_bench.traits import asks_model, find_model, is_endpoint, system_traits
from context_bench.types import Example
from context_bench.utils.tokens import count_prompt, get_tokenizer

MAX_TEXT_CHARS = 1200  # characters shown of a text

_GUESSED_REPLY = 300
_GUESSED_SECONDS = 2.0
_JUDGE_REPLY = 100  # tokens of a judge's verdict with its reason
_JUDGE_RETRIES = 3


@dataclass
class _Asked:
    """The requests to one system or judge, the tokens of their prompts, and the prices."""

    model: str | None
    reply: int
    retries: int
    requests: int = 0
    tokens: int = 0

    def add(self, requests: int, tokens: int) -> None:
        self.requests += requests
        self.tokens += tokens

    def cost(self, prices: Prices) -> float | None:
        """Estimate the dollars; None if the model has no price."""
        price = prices.of(self.model)
        if price is None or not self.requests:
            return None if self.requests else 0.0
        return self.requests * price.dollars(self.tokens / self.requests, self.reply)


@dataclass
class _Total:
    systems: dict[str, _Asked]
    judges: dict[str, _Asked]
    examples: int = 0
    known: int = 0
    first: Example | None = None
    asked: list[_Asked] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asked = [*self.systems.values(), *self.judges.values()]


def dry_run(options: RunOptions, systems: list[Any], datasets: Any, scorer: Scorer) -> int:
    """Count the requests, estimate their cost and time, and show the first prompt."""
    endpoints = [system for system in systems if is_endpoint(system)]
    judges = [each for each in scorer.chosen if asks_model(each)]
    reply = options.max_tokens or _GUESSED_REPLY
    total = _Total(
        {each.name: _Asked(find_model(each), reply, options.max_retries) for each in endpoints},
        {each.name: _Asked(find_model(each), _JUDGE_REPLY, _JUDGE_RETRIES) for each in judges},
    )
    with (
        StatusLine(
            lambda _: f"counting: {datasets.checked:,} examples checked, {total.examples:,} counted",
            enabled=not options.silent,
        ),
        ExitStack() as opened,
    ):
        datasets.check()
        _count(options, systems, scorer, datasets, _open_answers(options, scorer, opened), total)
    lines = [
        ["examples", f"{total.examples:,}"],
        ["systems", f"{len(systems)}, of which {len(endpoints)} over the network"],
        *_list_requests(total),
        *_list_costs(options, total),
        ["time", _estimate_time(options, total) if any(each.requests for each in total.asked) else "no requests"],
    ]
    width = table_width(wide=options.wide)
    sys.stdout.write(fit_listing(lines, width, head=False) + "\n")
    if total.first is not None:
        body = _build_first_body(endpoints, total.first, options.system_prompt)
        sys.stdout.write(f"\nthe first prompt:\n{format_json(body, longest=MAX_TEXT_CHARS, width=width)}\n")
    return 0


def _open_answers(options: RunOptions, scorer: Scorer, opened: ExitStack) -> Cache | None:
    if options.store_folder is None or not options.reuses_answers or not Path(options.store_folder).is_dir():
        return None
    store = opened.enter_context(Store(options.store_folder, create=False))
    runs = store.runs()
    if not runs:
        return None
    cache = Cache(store, runs[0], scorer, None, reuse=True, tag=options.cache_tag)  # a placeholder: nothing is stored
    if cache.looks_up:
        store.index_answers()
    return cache if cache.looks_up else None


def _count(
    options: RunOptions, systems: list[Any], scorer: Scorer, datasets: Any, cache: Cache | None, total: _Total
) -> None:
    count, reply = get_tokenizer(), options.max_tokens or _GUESSED_REPLY
    judges = [each for each in scorer.chosen if asks_model(each)]
    for item in read_items(datasets, None, scorer):
        example = item.example
        total.examples += 1
        total.first = total.first or example
        turns = example.get("turns") or ()
        prompts = list_turn_prompts(turns, ()) if open_turns(turns) > 1 else [example]
        replies_before = len(prompts) * (len(prompts) - 1) // 2
        jobs = [(system, Job(0, system, item, repeat)) for system in systems for repeat in range(options.repeats)]
        for system, job in jobs:
            known = cache.find_answer(job) if cache is not None else None
            asked = total.systems.get(system.name)
            if known is not None:
                total.known += 1
            elif asked is not None:
                sizes = [measure_request(system, each, count).prompt for each in prompts]
                asked.add(len(prompts), sum(sizes) + asked.reply * replies_before)
            for judge in judges:
                if known is not None and cache is not None and cache.memory(job, known.processed).find(judge):
                    continue
                # assume that an unknown answer has the length of a reply, but at most that of the context
                length = reply if is_endpoint(system) else count_prompt(example, count)
                answer, unknown = (known.processed, 0) if known is not None else ({"response": "-"}, length)
                size = measure_judge_request(judge, example, answer, count)
                if size is not None:
                    total.judges[judge.name].add(1, size.prompt + unknown)


def _list_requests(total: _Total) -> list[list[str]]:
    requests = sum(each.requests for each in total.systems.values())
    known = f"; {count_things(total.known, 'answer')} in the store cost nothing" if total.known else ""
    lines = [
        ["requests", f"{requests:,}{known}"],
        ["input tokens", f"{sum(each.tokens for each in total.systems.values()):,} before any compression"],
    ]
    for name, asked in total.judges.items():
        lines.append([name, f"{count_things(asked.requests, 'request')}, {asked.tokens:,} input tokens"])
    return lines


def _list_costs(options: RunOptions, total: _Total) -> list[list[str]]:
    """Estimate the cost, its upper bound with retries, and whether the cost is within the limit."""
    if not total.asked:
        return [["cost", "nothing"]]
    prices = Prices.from_file(options.prices_file) if options.prices_file else load_shipped_prices()
    costs = [(each, each.cost(prices)) for each in total.asked]
    judging = sum(each.cost(prices) or 0.0 for each in total.judges.values())
    if unpriced := [each.model for each, cost in costs if cost is None]:
        alone = f"; the judge alone costs about ${judging:,.2f}" if judging else ""
        return [["cost", f"not priced: no price for {unpriced[0]!r} (--prices FILE){alone}"]]
    expected = sum(cost or 0.0 for _, cost in costs)
    most = sum((cost or 0.0) * (1 + each.retries) for each, cost in costs)
    share = f", ${judging:,.2f} of it for the judge ({_JUDGE_REPLY} tokens a verdict)" if judging else ""
    bound = ["at most", f"${most:,.2f}"] if options.max_tokens else ["with retries", f"about ${most:,.2f}"]
    lines = [
        ["cost", f"about ${expected:,.2f}, with {options.max_tokens or _GUESSED_REPLY} tokens a reply{share}"],
        [bound[0], f"{bound[1]}, if every request uses all its retries and each is billed"],
    ]
    if options.max_cost is not None:
        lines.append(["limit", _compare_with_limit(expected, most, options.max_cost)])
    return lines


def _compare_with_limit(expected: float, most: float, limit: float) -> str:
    told = f"--max-cost ${limit:,.2f}"
    if expected > limit:
        return f"{told} would stop the run after about {limit / expected:.0%} of its cost"
    return f"{told} covers the estimate" + ("" if most <= limit else ", but not every retry")


def _estimate_time(options: RunOptions, total: _Total) -> str:
    """Estimate the minutes of the system or judge with the most requests; all run in parallel."""
    requests = max((each.requests for each in total.asked), default=0)
    tokens = max((each.tokens for each in total.asked), default=0)
    seconds = requests * _GUESSED_SECONDS / (options.max_workers or 8)
    if options.max_rpm:
        seconds = max(seconds, requests * 60 / options.max_rpm)
    if options.max_tpm:
        seconds = max(seconds, tokens * 60 / options.max_tpm)
    return f"about {seconds / 60:,.1f} min, at {_GUESSED_SECONDS:g} s a request"


def _build_first_body(endpoints: list[Any], example: dict[str, Any], system_prompt: str | None) -> Any:
    for system in endpoints:
        make_body = system_traits(system).request_body
        body = None if make_body is None else make_body(example)
        if body is not None:
            return {
                name: body[name] if name in PROMPT_FIELDS else mask_document({name: body[name]})[name] for name in body
            }
    return build_messages(example, system_prompt)
