"""The language of a text, by langdetect with a fixed seed: the same text always gets the same verdict."""

from __future__ import annotations

import threading
from typing import Any

from context_bench.errors import MissingExtra

__all__ = ["is_language"]

_lock = threading.Lock()
_factories: list[Any] = []


def is_language(text: str, code: str) -> bool:
    """Whether langdetect names that language; a text in which it finds nothing to go by passes.

    The benefit of the doubt is the benchmark's own rule. langdetect without a seed draws its trials at
    random, and short texts then change their verdict from run to run.
    """
    try:
        from langdetect import LangDetectException
    except ImportError as error:
        raise MissingExtra("checking the language of a reply", "ifeval") from error
    detector = _make_factory().create()
    try:
        detector.append(text)
        return bool(detector.detect() == code)
    except LangDetectException:
        return True


def _make_factory() -> Any:
    """A factory of our own: the seed of langdetect's shared one belongs to the user's program."""
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    with _lock:
        if not _factories:
            factory = DetectorFactory()
            factory.seed = 0
            factory.load_profile(PROFILES_DIRECTORY)
            _factories.append(factory)
        return _factories[0]
