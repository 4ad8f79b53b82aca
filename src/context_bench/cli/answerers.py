"""Who answers behind a tap, by the flags that say it: a server elsewhere, a model on this machine, or a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from context_bench.tap.answering import Answerer

__all__ = ["choose_answerer"]


def choose_answerer(forward: str | None, model: str | None, reply: str | None) -> Answerer:
    """Choose the one that is given."""
    if forward:
        from context_bench.tap.forward import Forward

        return Forward(forward)
    if model:
        from context_bench.local import LocalModel

        return LocalModel(model)
    from context_bench.tap.scripted import Scripted

    return Scripted.from_text(reply or "")
