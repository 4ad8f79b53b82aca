"""Why something about a memory was not measured."""

from __future__ import annotations

__all__ = ["NO_IDS", "READ_BY_SCRIPT", "STOOD_IN", "UNSEEN"]

READ_BY_SCRIPT = "a script read, not a model: it does not know when to refuse"
STOOD_IN = "a script stood in for the model that the memory asks"
UNSEEN = "no fact that was told is seen in memories() or storage, so what is missing there proves nothing"
NO_IDS = "the retrieved memories name no turns (ids)"
