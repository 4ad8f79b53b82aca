"""`context-bench memory --dry-run`: estimate the cost of writing, asking, reading and judging. Nothing is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from context_bench.cli.output import table_width
from context_bench.core.call import measure_judge_request
from context_bench.memory.arm import ASSUMED_REPLY
from context_bench.memory.contexts import read_contexts
from context_bench.memory.conversations import plan_steps
from context_bench.memory.evaluation import is_asking
from context_bench.memory.members import is_control, is_factory
from context_bench.memory.options import MemoryOptions
from context_bench.memory.questions import Questions, open_conversations
from context_bench.memory.vendor_memories import DEFAULT_K, Vendor, is_vendor, read_vendor_config
from context_bench.output.layout import fit_grid, fit_listing
from context_bench.pricing import Prices, load_shipped_prices
from context_bench.refs import parse, resolve
from context_bench.text import count_things
from context_bench.text.masking import mask_reference
from context_bench.traits import find_model
from context_bench.types import Example
from context_bench.utils.tokens import get_tokenizer

EXTRACTED_TOKENS = 200  # assumed output of a model for one write
MEMORY_TOKENS = 50  # assumed length of one memory of a vendor
JUDGE_TOKENS = 100  # assumed length of a verdict with its reason


@dataclass
class _Phase:
    """Calls of one model, with their input and output tokens."""

    model: str | None
    calls: float = 0.0
    read: float = 0.0
    written: float = 0.0

    def add(self, calls: float, read: float, written: float) -> None:
        self.calls += calls
        self.read += read
        self.written += written

    def cost(self, prices: Prices) -> float | None:
        """Estimate the dollars; None if the model has no price."""
        if not self.calls:
            return 0.0
        price = prices.of(self.model)
        return None if price is None else self.calls * price.dollars(self.read / self.calls, self.written / self.calls)

    def describe(self) -> str:
        return f"{self.read + self.written:,.0f}" if self.calls else "–"


def dry_run(options: MemoryOptions, embedding_model: str, judges: list[Any]) -> int:
    """Count conversations, questions and tokens, and show the calls and cost of each system."""
    count = get_tokenizer(options.tokenizer)
    opened, tag = open_conversations(
        options.dataset,
        n=options.max_conversations,
        seed=options.seed,
        data_dir=options.data_dir,
        types=options.types,
        plant=options.plant,
    )
    questions = Questions(opened, tag, count, options.max_conversations, options.types)
    examples: list[Example] = []
    writes: dict[str, tuple[int, int]] = {}
    granularities = [options.granularity] if isinstance(options.granularity, str) else list(options.granularity)
    for example in questions:
        examples.append(example)
        about = example["memory"]
        history = questions.find(about["conversation"])
        for each in granularities:
            key = f"{about['conversation']}/{each}"
            if key not in writes:
                writes[key] = sum(1 for _ in plan_steps(history.turns, each)), history.count_tokens(None, count)
    prices = Prices.from_file(options.prices_file) if options.prices_file else load_shipped_prices()
    head = ["system", "writing, tokens", "embedding", "asking", "reading", "judging", "dollars"]
    lines, total, unpriced = [head], 0.0, ""
    for name, phases in _list_systems(
        options, embedding_model, judges, examples, list(writes.values()), len(granularities)
    ):
        costs = [each.cost(prices) for each in phases]
        unpriced = unpriced or next((str(each.model) for each, cost in zip(phases, costs) if cost is None), "")
        spent = sum(cost or 0.0 for cost in costs)
        total += spent
        lines.append([name, *(each.describe() for each in phases), "no price" if None in costs else f"{spent:,.2f}"])
    width = table_width(wide=options.wide)
    conversations = len({example["memory"]["conversation"] for example in examples})
    told = f"about ${total:,.2f}" if not unpriced else f"not priced: no price for {unpriced!r} (--prices FILE)"
    notes = [
        ["data", f"{count_things(conversations, 'conversation')}, {count_things(len(examples), 'question')}"],
        [
            "assumed",
            f"tokens that models write: {EXTRACTED_TOKENS} for a write, {ASSUMED_REPLY} for an answer, "
            f"{JUDGE_TOKENS} for a judgement; {MEMORY_TOKENS} in a vendor's memory",
        ],
        ["known", "for vendors, the calls and prompts of a write; for other systems, one reading of each turn"],
    ]
    if options.max_cost is not None and not unpriced:
        fits = "covers it" if total <= options.max_cost else "ends the run early"
        notes.append(["limit", f"--max-cost ${options.max_cost:,.2f} {fits}"])
    scripted = options.tap_reply or options.tap_model
    notes.append(["cost", f"nothing, as no API is called; with the model itself {told}" if scripted else told])
    sys.stdout.write(f"{fit_grid(lines, width)}\n\n{fit_listing(notes, width, head=False)}\n")
    return 0


def _list_named(options: MemoryOptions) -> Iterator[tuple[str, Any]]:
    """List the systems with their factories; systems from a file of contexts come last."""
    for text in options.system:
        for ref in parse("memory_system", text):
            yield mask_reference(ref.text), resolve("memory_system", ref)
    for make in read_contexts(options.contexts) if options.contexts else ():
        yield make().name, make


def _list_systems(
    options: MemoryOptions,
    embedding_model: str,
    judges: list[Any],
    examples: list[Example],
    writes: list[tuple[int, int]],
    copies: int,
) -> Iterator[tuple[str, list[_Phase]]]:
    """List each system with its phases: writing, embedding, asking, reading, judging."""
    reads = bool(options.reader or options.tap_forward or options.tap_model or options.tap_reply)
    histories = [int(example["memory"]["history_tokens"]) for example in examples]
    count = get_tokenizer(options.tokenizer)
    vendors = read_vendor_config(options.vendor_config)
    for name, found in _list_named(options):
        asks = is_factory(found) and is_asking(found)
        facts = found.vendor if is_vendor(found) else Vendor("", takes_dates=False)
        chosen = vendors.get(found.name, {}) if is_vendor(found) else {}
        model, embedder = chosen.get("model", options.model), chosen.get("embedding_model", embedding_model)
        control = is_control(found)
        most = chosen.get("k", DEFAULT_K) * MEMORY_TOKENS if is_vendor(found) else max(options.budgets)
        writing, embedding, asking, reading, judging = (
            _Phase(each) for each in (model, embedder, model, options.model, None)
        )
        if asks:
            for calls, tokens in writes:
                made = calls * facts.write_calls
                writing.add(made, tokens + made * facts.write_overhead, calls * EXTRACTED_TOKENS)
                embedding.add(calls * facts.write_embeddings, tokens, 0)
        budgets = [None] if control else list(options.budgets) if "reader" in options.answers else []
        own = 0 if control or isinstance(found, partial) else int("own" in options.answers)
        for example, history in zip(examples, histories):
            question = count(example["question"])
            for budget in (*budgets,) * copies:
                if reads:
                    reading.add(
                        1, question + (history if budget is None else min(budget, most, history)), ASSUMED_REPLY
                    )
            if asks:
                embedding.add(len(budgets) + own, (len(budgets) + own) * question, 0)
                asking.add(own, own * (question + min(history, most)), own * ASSUMED_REPLY)
            for judge in judges:
                size = measure_judge_request(judge, example, {"response": "-"}, count)
                answers = (len(budgets) + own) * copies
                if size is not None:
                    judging.model = find_model(judge)
                    judging.add(answers, answers * (size.prompt + ASSUMED_REPLY), answers * JUDGE_TOKENS)
        yield name, [writing, embedding, asking, reading, judging]
