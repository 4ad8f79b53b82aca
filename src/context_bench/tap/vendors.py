"""Recipes to start real proxies for a measurement, without telemetry or other network calls of their own.

Vendors' claims are kept separate from measurements: see `traffic/claims.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from context_bench.errors import UnknownName, UsageError
from context_bench.processes.started_proxy import find_program


@dataclass(frozen=True)
class Recipe:
    """The recipe to start one vendor's proxy."""

    name: str  # the value of `--vendor`
    package: str  # the package to install
    version: str | None  # of the installed package; None if unknown
    command: str  # for StartedProxy, with `{port}`, `{host}` and `{tap}` in it
    env: Mapping[str, str] = field(default_factory=dict)  # added to the environment; with placeholders
    paths: tuple[str, ...] = ("/v1/chat/completions", "/v1/messages")  # the APIs that it speaks
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every request to it
    claims: str = ""  # the reply header with its claimed savings in tokens
    notes: str = ""  # needed to interpret its numbers

    @property
    def known_as(self) -> str:
        """The settings that affect the proxy's answers: version, start and headers, but not its location."""
        arguments = " ".join(shlex.split(self.command)[1:])
        headers = "".join(f", {name}: {value}" for name, value in self.headers.items())
        return f"{self.package} {self.version or '(unknown version)'}: {arguments}{headers}"

    def describe(self) -> dict[str, Any]:
        """Describe the measured program and its use for the record of a run."""
        program, *arguments = shlex.split(self.command)
        return {
            "name": self.name,
            "package": self.package,
            "version": self.version,
            "command": " ".join([PurePath(program).name, *arguments]),
            "headers": dict(self.headers),
        }


def recipe(name: str) -> Recipe:
    """Return the recipe of a vendor whose program is installed here."""
    if name not in _RECIPES:
        raise UnknownName("vendor", name, _RECIPES)
    return _RECIPES[name](name)


def _make_kompact(name: str) -> Recipe:
    program = _find_installed(name, "kompact")
    upstream = "--openai-base-url {tap} --anthropic-base-url {tap}"
    return Recipe(
        name=name,
        package="kompact",
        version=_find_version(program, "kompact"),
        command=f"{shlex.quote(str(program))} proxy --host {{host}} --port {{port}} {upstream} --no-otel",
        env={"DO_NOT_TRACK": "1", "OTEL_SDK_DISABLED": "true"},
        # Otherwise it changes a configuration that all requests share: one short prompt, and it leaves the prose of
        # every later one alone. With this header, which disables nothing, each request gets a copy.
        headers={"X-Kompact-Disable": "none"},
        claims="x-kompact-tokens-saved",
        notes="Its claim is an estimate from characters. It passes on a fixed list of request headers.",
    )


def _make_headroom(name: str) -> Recipe:
    program = _find_installed(name, "headroom-ai[proxy]")
    upstream = "--openai-api-url {tap} --anthropic-api-url {tap}"
    quiet = "--no-telemetry --no-cache --no-rate-limit --no-subscription-tracking"
    return Recipe(
        name=name,
        package="headroom-ai",
        version=_find_version(program, "headroom_ai"),
        command=f"{shlex.quote(str(program))} proxy --host {{host}} --port {{port}} {upstream} --mode token {quiet}",
        env={**_HEADROOM_ENV, **_find_tokenizer_files(program)},
        claims="x-headroom-tokens-saved",
        notes="Its model for prose is used only if the Hugging Face cache has it. It may add a tool of its own.",
    )


_RECIPES: dict[str, Callable[[str], Recipe]] = {"headroom": _make_headroom, "kompact": _make_kompact}

VENDORS = tuple(_RECIPES)

_HEADROOM_ENV = {
    "DO_NOT_TRACK": "1",
    "HEADROOM_BEACON": "off",
    "HEADROOM_TELEMETRY": "off",
    "HEADROOM_UPDATE_CHECK": "off",
    "HEADROOM_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime sends telemetry by default
    "HEADROOM_WORKSPACE_DIR": "{scratch}",  # no state is passed to the next run
}


def _find_tokenizer_files(program: Path) -> dict[str, str]:
    """Find the token vocabularies in the program's dependency: without them, the program would try to download them,
    and compress nothing.
    """
    found = sorted(_find_environment(program).glob("lib/python*/*-packages/litellm/litellm_core_utils/tokenizers"))
    return {"TIKTOKEN_CACHE_DIR": str(found[0])} if found else {}


def _find_installed(name: str, package: str) -> Path:
    found = find_program(name)
    if found is None:
        raise UsageError(
            f"{name} is not installed: run `make vendors` in a checkout of context-bench (elsewhere, set "
            f"CONTEXT_BENCH_VENDORS to its .vendors directory), or `pip install '{package}'` in a separate "
            "environment whose bin directory is on the path"
        )
    return Path(found)


def _find_version(program: Path, distribution: str) -> str | None:
    found = sorted(_find_environment(program).glob(f"lib/python*/*-packages/{distribution}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else None


def _find_environment(program: Path) -> Path:
    """Find the environment of a program, even if the program is a link."""
    return program.resolve().parent.parent
