"""Small histories and examples for tests of memory systems, in the shapes that the pipeline hands over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.memory.conversations import Conversation, Question


def make_turns(*texts: str, speaker: str = "Ana", session: str = "s1", user: str = "") -> list[dict[str, Any]]:
    """Make turns of one speaker in one session, a day apart."""
    return [
        {
            "id": f"{session}:{number}",
            "role": "user",
            "speaker": speaker,
            "content": text,
            "timestamp": f"2024-05-{number:02d}T09:00:00",
            "session": session,
            **({"user": user} if user else {}),
        }
        for number, text in enumerate(texts, 1)
    ]


def make_example(question: Mapping[str, Any], conversation: str = "c1") -> dict[str, Any]:
    """Make the example of a question, as the engine hands it to evaluators."""
    example: dict[str, Any] = {
        "id": f"{conversation}/{question.get('id', 'q1')}",
        "question": question.get("question", ""),
        "context": "",
        "meta": {"group": conversation, "type": question.get("type")},
        "memory": {key: value for key, value in question.items() if key != "question"},
    }
    return example | {key: question[key] for key in ("answer", "answers") if key in question}


def run_system(system: Any, conversation: Conversation, k: int = 10) -> list[tuple[Question, dict[str, Any]]]:
    """Ingest a conversation, user by user, and ask all of its questions; there is no reader."""
    system.reset()
    for turn in conversation["turns"]:
        system.ingest([turn], user=turn.get("user", ""))
    answered: list[tuple[Question, dict[str, Any]]] = []
    for question in conversation["questions"]:
        if hasattr(system, "point_to"):
            system.point_to(question.get("evidence_ids", []))
        user = question.get("user", "")
        found = system.retrieve(question["question"], k=k, user=user)
        context = "\n".join(item["text"] for item in found)
        answered.append((question, {"retrieved": found, "context": context, "response": context}))
    return answered
