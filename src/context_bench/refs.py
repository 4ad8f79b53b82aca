"""References: how a component is named in one line of text.

    REF[:ARG|key=value,...]     needle:length=8000|16000,n=50    mmlu:anatomy    bm25:ratio=0.3
                                package.module:object            file.py:object:key=value

REF is a registered name, `module:object` or `file.py:object`. `|` separates the values of a sweep: one reference then
stands for several, one per combination.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import CoroutineType, ModuleType
from typing import Any

from context_bench.errors import BadOutput, UsageError, describe, suggest, suggest_file
from context_bench.registry import registry
from context_bench.traits import reference_traits

_WORDS = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Ref:
    """A parsed reference: its target, and the parameters for calling it."""

    text: str
    target: str
    argument: str | None
    parameters: dict[str, Any]


def parse(kind: str, text: str) -> list[Ref]:
    """Split a reference into target and parameters; a sweep gives several."""
    target, arguments = _split(kind, text)
    if arguments and ":" not in target:
        factory = registry.get(kind, target)
        traits = reference_traits(factory)
        if traits is not None and traits.verbatim:
            return [_parse_verbatim(factory, traits.argument, text, target, arguments)]
    positional, swept = _arguments(text, arguments)
    refs: list[Ref] = []
    for values in itertools.product(*swept.values()):
        chosen = dict(zip(swept, values))
        label = text if len(refs) == 0 and all(len(each) == 1 for each in swept.values()) else None
        shown = ",".join(([positional] if positional else []) + [f"{key}={value}" for key, value in chosen.items()])
        parameters = {key: _value(value) for key, value in chosen.items()}
        refs.append(Ref(label or f"{target}:{shown}", target, positional, parameters))
    return refs


def _parse_verbatim(factory: Any, argument: str, text: str, target: str, arguments: str) -> Ref:
    """Parse a reference whose argument is taken verbatim, because a command line may have commas and equals signs.
    Parameters may precede it, as in `command:name=mine,./program --fast a=1,b=2`.
    """
    parameters: dict[str, Any] = {}
    known = set(_list_parameters(factory, 0) or ()) - {argument}
    while (item := arguments.partition(","))[1] and item[0].partition("=")[0] in known and "=" in item[0]:
        key, _, value = item[0].partition("=")
        parameters[key], arguments = _value(value), item[2]
    return Ref(text, target, arguments, parameters)


def _split(kind: str, text: str) -> tuple[str, str]:
    head, _, rest = text.partition(":")
    if (kind, head) in registry:
        return head, rest
    if head.endswith(".py") or (":" in text and _importable(head)):
        name, _, arguments = rest.partition(":")
        if not name:
            raise UsageError(f"{text!r} names no object: write {head}:OBJECT")
        return f"{head}:{name}", arguments
    raise registry.explain_unknown(kind, head)


def _importable(module: str) -> bool:
    """Whether this may name a module of an existing package; no code is run to find out."""
    names = module.split(".")
    try:
        return all(name.isidentifier() for name in names) and importlib.util.find_spec(names[0]) is not None
    except (ImportError, ValueError):
        return False


def _arguments(text: str, arguments: str) -> tuple[str | None, dict[str, list[str]]]:
    positional: str | None = None
    swept: dict[str, list[str]] = {}
    for item in filter(None, arguments.split(",")):
        key, equals, value = item.partition("=")
        if equals:
            if key in swept:
                raise UsageError(f"{text!r} gives {key!r} twice")
            swept[key] = value.split("|")
        elif positional is None and not swept:
            positional = item
        else:
            raise UsageError(f"{text!r}: {item!r} is not key=value")
    return positional, swept


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def resolve(kind: str, ref: Ref) -> Any:
    """Return the registered or imported object that a reference points at."""
    if ":" not in ref.target:
        return registry.get(kind, ref.target)
    source, _, name = ref.target.partition(":")
    module = import_code(source)
    try:
        return attrgetter(name)(module)
    except AttributeError:
        meant = suggest(name, [each for each in vars(module) if not each.startswith("_")])
        raise UsageError(f"{ref.text!r}: {source} has no {name!r}{meant and f'; {meant}'}") from None


def import_all(sources: Iterable[str]) -> None:
    """Import the modules and files of `--import`, which register components."""
    for source in sources:
        import_code(source)


def import_code(source: str) -> ModuleType:
    """Import a module by name, or a file by path."""
    if not source.endswith(".py"):
        try:
            return importlib.import_module(source)
        except (Exception, SystemExit) as error:
            raise UsageError(f"cannot import {source!r}: {describe(error)}") from error
    path = Path(source).resolve()
    if not path.is_file():
        raise UsageError(f"{source}: no such file{suggest_file(source)}")
    name = f"{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{source}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"{source}: cannot be run: {describe(error)}") from error
    return module


def call_with(factory: Callable[..., Any], ref: Ref, argument_name: str | None = None) -> Any:
    """Call a factory with the parameters of a reference."""
    parameters = check_parameters(factory, ref, argument_name)
    try:
        return factory(**parameters)
    except UsageError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"{ref.text!r}: {error}") from error
    except Exception as error:
        raise UsageError(f"{ref.text!r}: {describe(error)}") from error


def check_parameters(
    factory: Callable[..., Any], ref: Ref, argument_name: str | None = None, given: int = 0
) -> dict[str, Any]:
    """Return the parameters of a reference; an unknown one is an error that lists the known ones. The user cannot set
    the first `given` parameters of the factory.
    """
    parameters = dict(ref.parameters)
    known = _list_parameters(factory, given)
    if ref.argument is not None:
        if argument_name is None or (known is not None and argument_name not in known):
            meant = suggest(ref.argument, known or ())
            raise UsageError(f"{ref.text!r}: {ref.argument!r} is not key=value{meant and f'; {meant}'}")
        parameters[argument_name] = ref.argument
    check_names(factory, ref.text, parameters, given)
    return parameters


def check_names(factory: Callable[..., Any], text: str, parameters: Iterable[str], given: int = 0) -> None:
    """Refuse a parameter that a factory does not accept; the error lists the accepted ones. `text` is the user's
    reference."""
    known = _list_parameters(factory, given)
    for key in parameters:
        if known is not None and key not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            meant = suggest(key, known)
            raise UsageError(f"{text!r}: unknown parameter {key!r}; {meant and f'{meant} '}{takes}")


def takes_parameter(factory: Callable[..., Any], name: str) -> bool:
    """Whether a factory takes a parameter of this name, or of any name."""
    known = _list_parameters(factory, 0)
    return known is None or name in known


def _list_parameters(factory: Callable[..., Any], given: int) -> list[str] | None:
    """List the parameters of a factory; None if it accepts any name."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    return names[given:]


def read_signature(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name; empty if it is built in and has no signature."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def check_arguments(function: Any, count: int, rule: str) -> None:
    """Refuse a function that cannot be called with this number of arguments, before it fails on every row.

    Raises:
        UsageError: The message states the rule that the function breaks.
    """
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise UsageError(f"{name}{inspect.signature(function)} cannot be called: {rule}") from None
    except ValueError:  # built in, with no signature to look at
        return


def check_plain(part: Any, method: str, instead: str | None = None) -> None:
    """Refuse a part whose method is `async def`, because its result would be used without `await`.

    Args:
        part: A part, or a function used as one.
        method: The name of the method.
        instead: The name of the asynchronous variant, if there is one.

    Raises:
        UsageError: The message names the method, and says what to do.
    """
    function = part if inspect.isroutine(part) else getattr(part, method, None)
    if not inspect.iscoroutinefunction(function):
        return
    name = getattr(function, "__name__", type(part).__name__)
    what = f"the function {name}()" if function is part else f"{method}() of a {type(part).__name__}"
    advice = f": name it {instead}(), and add a plain {method}()" if instead else ""
    raise UsageError(f"{what} must not be `async def`{advice}")


def check_awaitable(made: Any, part: Any, method: str) -> Any:
    """Return the result of a part's asynchronous method, which must be awaitable.

    Raises:
        BadOutput: It cannot be awaited.
    """
    if type(made) is CoroutineType or inspect.isawaitable(made):
        return made
    given = "None" if made is None else f"a {type(made).__name__}"
    raise BadOutput(f"{method}() of {part.name} must be `async def` (it returned {given}, which cannot be awaited)")
