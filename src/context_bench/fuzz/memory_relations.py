"""Relations about memories: facts must be found, however often and in whatever order they were told."""

from __future__ import annotations

import random

from context_bench.fuzz.cases import Case
from context_bench.fuzz.relations import Broken, Relation, Skipped
from context_bench.fuzz.targets import MemoryTarget

KIND = "memory"
_THINGS = ("bicycle", "canoe", "piano", "kettle", "ladder", "lantern", "tent", "violin")
_COLOURS = ("amber", "crimson", "indigo", "ivory", "olive", "scarlet", "teal", "violet")


def make_memory_case(seed: int) -> Case:
    """Make facts, one for each session; the question asks for the last fact."""
    source = random.Random(f"fuzz memory {seed}")
    things = source.sample(_THINGS, 5)
    facts = [
        f"My {thing} is {source.choice(_COLOURS)} and stands in room {source.randrange(100, 999)}." for thing in things
    ]
    thing, answer = things[-1], facts[-1].split()[-1].rstrip(".")
    return Case(KIND, tuple(facts), (4,), f"In which room does my {thing} stand?", answer, id=f"fuzz-{KIND}-{seed}")


async def _tell(target: MemoryTarget, case: Case, order: list[int] | None = None) -> str:
    await target.start()
    for place in order if order is not None else range(len(case.items)):
        await target.write([case.items[place]], f"session {place}")
    return await target.ask(case.question)


async def finds_fact(target: MemoryTarget, case: Case) -> bool:
    """Whether a memory finds the asked fact after all facts were told once, in order."""
    return case.answer in await _tell(target, case)


async def _require_found(target: MemoryTarget, case: Case) -> str:
    if not case.evidence:
        raise Skipped("the requested fact was not stated")
    before = await _tell(target, case)
    if case.answer not in before:
        raise Skipped("the fact is not found before any change")
    return before


async def _check_order(target: MemoryTarget, case: Case, source: random.Random) -> None:
    before = await _require_found(target, case)
    order = list(range(len(case.items)))
    source.shuffle(order)
    after = await _tell(target, case, order)
    if case.answer not in after:
        raise Broken(
            "a fact is lost when independent sessions are in another order", before, after, case.reorder(order)
        )


async def _check_repeat(target: MemoryTarget, case: Case, _: random.Random) -> None:
    before = await _require_found(target, case)
    await target.start()
    for _round in range(2):
        for place, fact in enumerate(case.items):
            await target.write([fact], f"session {place}")
    after = await target.ask(case.question)
    if case.answer not in after:
        raise Broken("a fact is lost when the sessions are written twice", before, after, case)


async def _check_asking(target: MemoryTarget, case: Case, _: random.Random) -> None:
    before = await _require_found(target, case)
    after = await target.ask(case.question)
    if case.answer not in after:
        raise Broken("asking changed the memory: the second answer lacks the fact", before, after, case)


async def _check_update(target: MemoryTarget, case: Case, source: random.Random) -> None:
    before = await _require_found(target, case)
    room = str(source.randrange(1000, 9999))
    thing = case.question.split()[-2]
    await target.write([f"I have moved my {thing}: from now on it is kept in room {room}."], "later session")
    after = await target.ask(case.question)
    if room not in after:
        raise Broken("an updated fact in other words is not found", before, after, case)


async def _check_deletion(target: MemoryTarget, case: Case, _: random.Random) -> None:
    if not target.can_forget:
        raise Skipped("the memory has no `forget`")
    before = await _require_found(target, case)
    await target.forget(case.items[case.evidence[0]])
    after = await target.ask(case.question)
    if case.answer in after:
        raise Broken("a fact is still found after `forget`", before, after, case)


async def _check_reset(target: MemoryTarget, case: Case, _: random.Random) -> None:
    before = await _require_found(target, case)
    await target.start()
    await target.write(["I like rain."], "another session")
    after = await target.ask(case.question)
    if case.answer in after:
        raise Broken("a fact is still found in another conversation after `reset`", before, after, case)


MEMORY_RELATIONS: dict[str, Relation] = {
    each.id: each
    for each in (
        Relation(
            "session-order",
            "Independent sessions have no order.",
            _check_order,
            (KIND,),
            keeps_evidence=True,
        ),
        Relation(
            "repeated-ingest",
            "A fact that is stated twice is as true as one stated once.",
            _check_repeat,
            (KIND,),
            keeps_evidence=True,
        ),
        Relation("asking", "Asking does not change the memory.", _check_asking, (KIND,), keeps_evidence=True),
        Relation("update", "The last statement counts, in any words.", _check_update, (KIND,), keeps_evidence=True),
        Relation("deletion", "Deleted facts are gone.", _check_deletion, (KIND,)),
        Relation("reset", "No fact of one conversation may reach another.", _check_reset, (KIND,)),
    )
}
"""Relations for memories."""
