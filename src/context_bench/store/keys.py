"""Keys: everything that can change a result, and nothing else.

An answer depends on the system and on what it may read of the example; a row also on the gold, the
evaluators and the tokenizer. A change of any of these is another key, so nothing stale is ever found.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

__all__ = ["GOLD_FIELDS", "digest", "example_digests", "fingerprint_of"]

GOLD_FIELDS = frozenset(
    {"answer", "answers", "correct_letter", "evidence", "ground_truth", "reference", "references"}
    | {"relevant_ids", "test", "test_list"}
)
"""Fields that a system does not read, so that a corrected gold answer costs no new request."""

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def digest(*parts: bytes | str) -> bytes:
    """Sixteen bytes that stand for these parts, in this order."""
    hasher = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def example_digests(example: Mapping[str, Any]) -> tuple[bytes, bytes, bytes]:
    """The whole example as JSON, its digest, and the digest of the part that a system may read."""
    body = _json(example)
    visible = _json({key: value for key, value in example.items() if key not in GOLD_FIELDS})
    return body, blake2b(body, digest_size=16).digest(), blake2b(visible, digest_size=16).digest()


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # lone surrogates, very large integers, objects: by their repr, which tells them apart
        return orjson.dumps(_spelled(value), option=_OPTIONS)


def _spelled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {ascii(key): _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return value if isinstance(value, bool | None) else ascii(value)


def fingerprint_of(component: Any) -> str | None:
    """What makes the results of a system or evaluator differ; None when that cannot be known.

    Its own `fingerprint` where it has one; `version` and parameters for an evaluator that has those;
    otherwise its source text and parameters.
    """
    component = getattr(component, "_system", component)
    own = getattr(component, "fingerprint", None)
    if isinstance(own, str):
        return own
    parts = getattr(component, "parts", None)
    if isinstance(parts, list):
        return joined(fingerprint_of(part) for part in parts)
    if isinstance(component, functools.partial):
        inner = fingerprint_of(component.func)
        return None if inner is None else _with_parameters(inner, [component.args, component.keywords])
    if inspect.isfunction(component):
        return _function_fingerprint(component)
    wrapped = getattr(component, "function", None)
    if callable(wrapped) and type(component).__module__.startswith("context_bench."):
        return fingerprint_of(wrapped)
    identity = _identity(component)
    return None if identity is None else _with_parameters(identity, _parameters(component))


def _identity(component: Any) -> str | None:
    kind = type(component)
    if hasattr(component, "version"):
        return f"{kind.__module__}.{kind.__qualname__}/{component.version}"
    try:
        return "\n".join(inspect.getsource(each) for each in kind.__mro__[:-1])
    except (OSError, TypeError):
        return None


def _parameters(component: Any) -> dict[str, Any]:
    return {key: value for key, value in getattr(component, "__dict__", {}).items() if not key.startswith("_")}


def _function_fingerprint(function: Any) -> str | None:
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return None
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return _with_parameters(source, [function.__defaults__, function.__kwdefaults__, cells])


def _with_parameters(identity: str, parameters: Any) -> str | None:
    try:
        described = orjson.dumps(parameters, option=_OPTIONS)
    except TypeError:
        return None
    return digest(identity, described).hex()


def joined(fingerprints: Iterable[str | None]) -> str | None:
    """One fingerprint for several components; None when one of them has none."""
    parts = list(fingerprints)
    return None if None in parts else "\n".join(part for part in parts if part is not None)
