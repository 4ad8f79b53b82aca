"""Simulated prompt caches, against the examples of the providers' documentation and cases worked out by hand."""

from __future__ import annotations

from context_bench.pricing.prompt_cache import FIVE_MINUTES, HOUR, Block, BreakpointCache, CacheUse, PrefixCache


def make_blocks(count: int, *marks: int, tokens: int = 100, first: str = "b") -> list[Block]:
    """Make `count` blocks with breakpoints for five minutes on the blocks of these numbers, counted from 1."""
    return [
        Block(f"{first}{number}".encode(), tokens, FIVE_MINUTES if number in marks else None)
        for number in range(1, count + 1)
    ]


def test_a_growing_conversation_reads_what_it_wrote() -> None:
    cache = BreakpointCache()
    assert cache.use(make_blocks(10, 10), 0) == CacheUse(0, 0, 1000)
    assert cache.use(make_blocks(15, 15), 10) == CacheUse(0, 1000, 500)


def test_the_last_write_is_out_of_reach_after_twenty_blocks() -> None:
    cache = BreakpointCache()
    cache.use(make_blocks(15, 15), 0)
    assert cache.use(make_blocks(35, 35), 10) == CacheUse(0, 0, 3500)


def test_a_second_breakpoint_reaches_it() -> None:
    cache = BreakpointCache()
    cache.use(make_blocks(15, 15), 0)
    assert cache.use(make_blocks(35, 15, 35), 10) == CacheUse(0, 1500, 2000)


def test_twenty_positions_include_the_breakpoint_itself() -> None:
    for added, read in ((19, 1500), (20, 0), (21, 0)):
        cache = BreakpointCache()
        cache.use(make_blocks(15, 15), 0)
        assert cache.use(make_blocks(15 + added, 15 + added), 10).read == read, added


def test_a_read_renews_an_entry_for_its_lifetime_from_the_start_of_the_request() -> None:
    cache = BreakpointCache()
    blocks = make_blocks(10, 10)
    assert cache.use(blocks, 0).write_5m == 1000
    assert cache.use(blocks, 299).read == 1000
    assert cache.use(blocks, 598).read == 1000
    assert cache.use(blocks, 899) == CacheUse(0, 0, 1000)


def test_mixed_lifetimes() -> None:
    blocks = [Block(b"system", 1000, HOUR), Block(b"history", 500, FIVE_MINUTES), Block(b"question", 50)]
    cache = BreakpointCache()
    assert cache.use(blocks, 0) == CacheUse(50, 0, 500, 1000)
    assert cache.use(blocks, 600) == CacheUse(50, 1000, 500, 0)


def test_a_change_early_on_loses_everything_behind_it() -> None:
    cache = BreakpointCache()
    cache.use(make_blocks(10, 2, 10), 0)
    changed = make_blocks(12, 2, 12)
    changed[4] = Block(b"rewritten", 60)
    # The entry at block 2 is still good: blocks 3 to 12 are written again, one of them 40 tokens shorter.
    assert cache.use(changed, 10) == CacheUse(0, 200, 960)


def test_prefixes_below_the_minimum_are_not_cached() -> None:
    cache = BreakpointCache(minimum=1024)
    assert cache.use(make_blocks(10, 10), 0) == CacheUse(1000)
    assert cache.use(make_blocks(10, 10), 1) == CacheUse(1000)
    assert cache.use(make_blocks(11, 5, 11), 2) == CacheUse(0, 0, 1100)
    assert cache.use(make_blocks(11, 11), 3).read == 1100


def test_without_breakpoints_nothing_is_cached() -> None:
    cache = BreakpointCache()
    assert [cache.use(make_blocks(20), at) for at in (0, 1)] == [CacheUse(2000)] * 2
    assert cache.use([], 2) == CacheUse(0)


def test_an_entry_is_found_only_where_a_request_wrote_one() -> None:
    cache = BreakpointCache()
    cache.use(make_blocks(10, 10), 0)
    assert cache.use(make_blocks(8, 8), 1) == CacheUse(0, 0, 800)  # the same text, but it ended at no breakpoint


def test_requests_in_parallel_on_a_cold_cache_all_write() -> None:
    cache = BreakpointCache()
    blocks = make_blocks(10, 10)
    assert cache.use(blocks, 0, answered=3) == CacheUse(0, 0, 1000)
    assert cache.use(blocks, 1, answered=4) == CacheUse(0, 0, 1000)
    assert cache.use(blocks, 3).read == 1000


def test_openai_reads_whole_steps_of_128_tokens() -> None:
    cache = PrefixCache()
    history = list(range(1500))
    assert cache.use(history, 0) == CacheUse(1500)
    assert cache.use([*history, *range(5000, 5500)], 10) == CacheUse(592, 1408)


def test_openai_reads_nothing_after_an_edit_in_the_first_1024_tokens() -> None:
    cache = PrefixCache()
    history = list(range(2000))
    cache.use(history, 0)
    history[700] = -1
    assert cache.use(history, 10) == CacheUse(2000)


def test_openai_caches_the_reply_too() -> None:
    cache = PrefixCache()
    prompt, reply = list(range(1100)), list(range(7000, 7200))
    cache.use(prompt, 0, reply)
    assert cache.use([*prompt, *reply, 1, 2, 3], 10).read == 1280


def test_openai_forgets_after_its_lifetime() -> None:
    cache = PrefixCache(lifetime=600)
    prompt = list(range(1200))
    cache.use(prompt, 0)
    assert cache.use(prompt, 599).read == 1152
    assert cache.use(prompt, 1199).read == 0
