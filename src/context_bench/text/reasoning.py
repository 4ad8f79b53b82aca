"""Removes the reasoning that models write into their replies: what is left is the answer, for every evaluator.

A block whose end is missing was cut off by the token limit, and nothing in it is an answer. Where only the end is
there, the prompt held the beginning. A mark in quotes or backticks is a mention and stays.
"""

from __future__ import annotations

import re

__all__ = ["opens_with_reasoning", "remove_reasoning"]

_TAG = r"(?:seed:)?(?:think|thinking|thoughts?|reason|reasoning|analysis|scratchpad)\s*"
_MARK = re.compile(
    rf"<(?P<angle>/?){_TAG}>|\[(?P<square>/?)think\]|◁(?P<triangle>/?)think▷"
    r"|<\|(?:(?:begin_of_thought|start_thinking|think)|(?P<token>end_of_thought|end_thinking|/think))\|>",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")
_TURN_END = re.compile(r"<\|(?:end|return|call|start)\|>")
# The same channels from a server that drops special tokens: "analysisWe need ...assistantfinalParis".
_BARE_CHANNEL = re.compile(r"\s*analysis(?=[A-Z])")
_SPECIAL = re.compile(r"<\|[^|<>\n]{0,40}\|>|\A\s*<s>|</s>\s*\Z")


def remove_reasoning(reply: str) -> str:
    """Return the answer in a reply; empty where the reply is nothing but reasoning."""
    if "<|channel|>" in reply:
        return _SPECIAL.sub("", _read_final_channel(reply))
    if _BARE_CHANNEL.match(reply):
        return reply.rpartition("assistantfinal")[2] if "assistantfinal" in reply else ""
    answer = _drop_blocks(reply) if _MARK.search(reply) else reply
    return _SPECIAL.sub("", answer) if "<" in answer else answer


def opens_with_reasoning(reply: str) -> bool:
    """Whether a reply begins with the mark that opens its reasoning."""
    start = reply.lstrip()
    mark = _MARK.match(start)
    return not any(mark.groups()) if mark else start.startswith(("<|channel|>", "<|start|>assistant<|channel|>"))


def _read_final_channel(reply: str) -> str:
    """Return what stands in the last channel called final, and before the first channel, of a harmony reply."""
    channels = list(_CHANNEL.finditer(reply))
    finals = [channel for channel in channels if channel["name"] == "final"]
    if finals:
        return _TURN_END.split(reply[finals[-1].end() :], maxsplit=1)[0]
    return _TURN_END.split(reply[: channels[0].start()], maxsplit=1)[0] if channels else ""


def _drop_blocks(reply: str) -> str:
    outside: list[str] = []
    thinking = mentioned = False
    last = 0
    for mark in _MARK.finditer(reply):
        closes = any(mark.groups())
        before, after = reply[mark.start() - 1 : mark.start()], reply[mark.end() : mark.end() + 1]
        if not thinking and (mentioned or before == after == "`" if closes else before in {*"`\"'"}):
            mentioned = not closes
            continue
        if not thinking:
            outside.append(reply[last : mark.start()])
        if closes and not thinking:  # the prompt held the opening mark: all so far is reasoning
            outside.clear()
        thinking, last = not closes, mark.end()
    if not thinking:
        outside.append(reply[last:])
    # Indentation is kept: the answer may be a line of code.
    return "".join(outside).strip("\n")
