"""Systems and evaluators that tests run on a cluster; workers import this module by its name."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

__all__ = ["Deadly", "DiesAtStart", "Halve", "Made", "SlowLength", "Spin", "Tail", "count_letters"]


class Halve:
    """Keeps the first half of a context, and fails on an example whose context is `fail`."""

    name = "halve"
    fingerprint = "halve/1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["context"] == "fail":
            raise ValueError("asked to fail")
        return {"context": example["context"][: len(example["context"]) // 2], "metadata": {"note": "halved"}}


class Tail:
    """Keeps the second half of a context, slowly enough that a run can be disturbed."""

    name = "tail"
    fingerprint = "tail/1"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        time.sleep(self.seconds)
        return {"context": example["context"][len(example["context"]) // 2 :]}


class Deadly:
    """Ends its process on an example whose context is `kill`; each death leaves a line in a file."""

    name = "deadly"
    fingerprint = "deadly/1"

    def __init__(self, deaths: str) -> None:
        self.deaths = deaths

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        if example["context"] == "kill":
            with Path(self.deaths).open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
            os._exit(1)
        return {"response": example["context"].upper()}


class Made:
    """Answers with its process, and leaves a line in a file when it is prepared."""

    name = "made"
    fingerprint = "made/1"

    def __init__(self, file: str) -> None:
        self.file = file

    async def prepare(self) -> None:
        with Path(self.file).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02)
        return {"response": str(os.getpid())}


class DiesAtStart:
    """Ends its process when it is prepared, as a model does that needs more memory than there is."""

    name = "dies-at-start"
    fingerprint = "dies-at-start/1"

    async def prepare(self) -> None:
        os._exit(1)

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example


class Spin:
    """Keeps a processor busy for so many rounds of hashing."""

    name = "spin"
    fingerprint = "spin/1"

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        digest = example["context"].encode()
        for _ in range(self.rounds):
            digest = hashlib.sha256(digest).digest()
        return {"response": digest.hex()}


class SlowLength:
    """Scores the length of a response, slowly; fails on an empty one."""

    name = "slow-length"
    version = 1
    slow = True
    score_fields = ("length",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        time.sleep(0.005)
        return {"length": 1 / len(processed["response"])}


def count_letters(example: dict[str, Any]) -> dict[str, Any]:
    """A plain function as a system."""
    return {"response": str(len(example["context"]))}
