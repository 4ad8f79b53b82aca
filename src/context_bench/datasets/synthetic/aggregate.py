"""`aggregate`: find the most frequent words of a long list, which needs all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from context_bench.datasets.synthetic.draw import Draw, check_cell, check_whole, words

LINE = 16

# Each of these is one cl100k_base token, both at the start of a line and after a space.
WORDS = words(
    """apple arm baby bag ball band bank bar bear bed bell belt bird block blood board boat body bone book boot
    border box boy brain branch bread bridge brush bucket building bus button cake camera camp card castle cat
    cell chain chair chalk channel chart chest child circle city class clock cloth cloud club coal coat coffee
    column corn corner country cow cream crew cross cup curve dance daughter deer desk diamond dish doctor dog
    door dream dress ear earth edge egg engine eye face factory family farm father field finger fire fish flag
    floor flower food foot forest fork frame friend frog fruit fuel game gate ghost gift girl glass goal gold
    grass ground guard guest guide hair hall hammer hand hat head heart hill hole home hook horn horse hospital
    hotel house ice image ink iron jar judge key king knife lab lake lamp land language law leaf leg letter
    library light lion lip lock machine map market mask meal memory metal mill mirror money moon mother motor
    mouse mouth movie music neck needle net night noise nut office oil orange oven page paint pan paper park party
    path pen phone photo picture pig pin pipe plane plant plate pool port pot price queen rabbit race radio rail
    rain rice ring river road rock roof room root rose route salt sand scale school sea seat seed shadow sheet
    shell ship shirt shop silver skin sky snake snow soap son song soup spring square stage stamp star station
    steam steel stick stone store storm story street string student suit summer sun table tail team tent thread
    throat ticket tin tool tower town toy track train tree truck tube voice wall water wave wheel window wine wing
    winter wire wolf wood worm yard"""
)


def aggregate(*, length: int = 4000, top: int = 3, n: int = 20, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for the `top` most frequent words of a shuffled list.

    Each of them occurs at least twice as often as any other word. The gold answer has parts, which may be given
    in any order. There is no `evidence`: no small part of the context holds the answer.

    Args:
        length: tokens (cl100k_base) of each context; never exceeded, and met within 2%.
        top: how many words are asked for, 1 to 20.
        n: how many examples.
        seed: the same seed gives the same bytes.
    """
    check_whole("top", top, 1, 20)
    check_cell(length, 30 + 30 * top, n, seed, what=f"a list with top={top}")
    return (_make_example(length, top, index, seed) for index in range(n))


def _make_example(length: int, top: int, index: int, seed: int) -> dict[str, Any]:
    draw = Draw("aggregate", length, top, seed, index)
    ranked = draw.shuffle(WORDS)
    size = _count_words_in(length)
    counts = _share_out(size, top)
    dealt = draw.shuffle([word for word, count in zip(ranked, counts) for _ in range(count)])
    answer = ranked[:top]
    lines = (" ".join(dealt[start : start + LINE]) for start in range(0, size, LINE))
    asked = (
        f"Which {top} words occur most often in the list?" if top > 1 else "Which word occurs most often in the list?"
    )
    return {
        "id": f"aggregate-{length}-top{top}-s{seed}-{index:03d}",
        "context": "\n".join(lines),
        "question": asked,
        "answer": ", ".join(answer),
        "answers": [answer],
        "dataset": "aggregate",
        "meta": {
            "length": length,
            "top": top,
            "seed": seed,
            "words": size,
            "counts": counts[:top],
            "next_count": counts[top],
        },
    }


def _count_words_in(length: int) -> int:
    """Return how many words fill `length` tokens: one token each, and one for each line break."""
    lines, rest = divmod(length + 1, LINE + 1)  # a full line takes LINE tokens and a break, but for the last
    return lines * LINE + max(rest - 1, 0)


def _share_out(size: int, top: int) -> list[int]:
    """Share `size` words out: two fifths to the top, one to as many runners-up, the rest evenly to the others."""
    average = 2 * size // (5 * top)
    step = average // (2 * top)
    leaders = [average + step * (top - 1 - 2 * rank) // 2 for rank in range(top)]
    runners = [leaders[-1] // 2] * top
    left = size - sum(leaders) - sum(runners)
    even, extra = divmod(left, len(WORDS) - 2 * top)
    others = [even + (rank < extra) for rank in range(len(WORDS) - 2 * top)]
    return leaders + runners + others
