"""From what a caller names to memory systems that are ready to run, each behind a tap of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from context_bench.errors import UsageError
from context_bench.memory.host import Host, HostSettings
from context_bench.memory.inspection import Meter
from context_bench.memory.members import is_factory, read_members
from context_bench.pricing import Prices
from context_bench.refs import Ref, call_with, parse, resolve
from context_bench.store.fingerprints import fingerprint_of
from context_bench.store.origin import is_ours
from context_bench.tap.address import free_port
from context_bench.tap.answering import Answerer
from context_bench.text.masking import mask_reference
from context_bench.traits import find_fingerprint

_ASKS = "base_url"
"""The parameter of a constructor that says that a memory system asks a model."""


@dataclass(frozen=True)
class Models:
    """Settings for memory systems that ask models.

    Attributes:
        answerer: Who answers behind their taps; None where nobody does.
        model: The model that extracts and summarises.
        embedding_model: The model that embeds.
        api_key: Passed on by the tap to whom it forwards to.
        prices: For what they spend.
        seed: For those that take one.
    """

    answerer: Answerer | None = None
    model: str | None = None
    embedding_model: str | None = None
    api_key: str | None = None
    prices: Prices | None = None
    seed: int | None = None

    def list_arguments(self, url: str | None) -> dict[str, Any]:
        """List the arguments that a constructor may take."""
        given = {
            _ASKS: url,
            "model": self.model,
            "embedding_model": self.embedding_model,
            "api_key": (self.api_key or "unused") if url else None,
            "seed": self.seed,
        }
        return {name: value for name, value in given.items() if value is not None}


def build_hosts(given: Any, models: Models, settings: Sequence[HostSettings]) -> list[Host]:
    """Build every memory system, once for each granularity: they do not share what was written.

    Args:
        given: One or several: names with parameters, objects, classes.
        models: For those that ask models.
        settings: One for each granularity.
    """
    listed = given if isinstance(given, list | tuple) else [given]
    if not listed:
        raise UsageError("no memory system to measure: pass at least one")
    hosts: list[Host] = []
    for each in listed:
        refs = parse("memory_system", each) if isinstance(each, str) else [None]
        for ref in refs:
            for place, one in enumerate(settings):
                suffix = "" if len(settings) == 1 else f"/{one.granularity}"
                if place and not isinstance(each, str | type):
                    raise UsageError("several granularities need a memory system by its class or name, not one object")
                hosts.append(_build_host(each, ref, models, one, suffix))
    return hosts


def _build_host(given: Any, ref: Ref | None, models: Models, settings: HostSettings, suffix: str) -> Host:
    found = given if ref is None else resolve("memory_system", ref)
    if not is_factory(found):
        if ref is not None and (ref.parameters or ref.argument):
            raise UsageError(f"{ref.text!r}: this memory system is made already and takes no parameters")
        members = read_members(found)
        name = members.system.name if ref is None else mask_reference(ref.text)
        return Host(f"{name}{suffix}", members, fingerprint_of(found), settings, asks_nobody=False)
    takes = _list_parameters(found)
    meter = None
    if _ASKS in takes and models.answerer is not None:
        meter = Meter(models.answerer, free_port(), models.prices)
    if ref is None:
        ref = Ref(getattr(found, "__name__", "a memory system"), "", None, {})
        own_name = True
    else:
        own_name = "name" in ref.parameters
    filled = {
        key: value for key, value in models.list_arguments(None if meter is None else meter.url).items() if key in takes
    }
    _check_answered(found, ref, filled)
    system = call_with(found, Ref(ref.text, ref.target, ref.argument, {**filled, **ref.parameters}), _find_first(takes))
    members = read_members(system)
    name = members.system.name if own_name else mask_reference(ref.text)
    fingerprint = _identify(found, system, ref, {key: filled.get(key) for key in ("model", "embedding_model", "seed")})
    if meter is not None and fingerprint is not None:
        behind = models.answerer.fingerprint if models.answerer is not None else None
        fingerprint = None if behind is None else f"{fingerprint}, tap: {behind}"
    quiet = is_ours(type(system)) and _ASKS not in takes
    return Host(f"{name}{suffix}", members, fingerprint, settings, meter, asks_nobody=quiet)


def _list_parameters(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(factory).parameters)
    except (TypeError, ValueError):
        return {}


def _find_first(takes: dict[str, inspect.Parameter]) -> str | None:
    """Find the parameter that gets the text after the colon of a reference."""
    return next((name for name, each in takes.items() if each.kind is not each.KEYWORD_ONLY), None)


def _check_answered(found: Any, ref: Ref, filled: dict[str, Any]) -> None:
    """Refuse a system that cannot be made without somebody who answers."""
    needed = _list_parameters(found).get(_ASKS)
    if needed is not None and needed.default is needed.empty and _ASKS not in {**filled, **ref.parameters}:
        raise UsageError(
            f"{ref.text!r} asks a model: say who answers, by --tap-forward URL, --tap-model local or --tap-reply SCRIPT"
        )


def _identify(found: Any, system: Any, ref: Ref, filled: dict[str, Any]) -> str | None:
    """Describe what makes the answers of a system differ that was made here: the address of its tap does not."""
    own = find_fingerprint(system)
    if own != ():
        return own if isinstance(own, str) else None
    known = fingerprint_of(found)
    return (
        None if known is None else f"{known} {sorted(ref.parameters.items())} {ref.argument} {sorted(filled.items())}"
    )
