"""Vendors' memory systems, each in a separate process and environment.

Vendors' packages read the environment at import, leave threads behind and need conflicting versions, so they are not
imported here. There is no fallback: a vendor that cannot be started is an error.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from context_bench.errors import UsageError, printable
from context_bench.memory.inspection import PROBE_PREFIX
from context_bench.processes.child import LastLines, describe_exit, kill_group, start_child
from context_bench.processes.started_proxy import find_program
from context_bench.systems.chat import OpenAIProxy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PROGRAM = Path(__file__).with_name("vendor_program.py")
_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH")
MAX_ERROR_LINES = 20
DEFAULT_K = 10  # memories for a question


class VendorFailed(Exception):
    """The vendor's own error, or the end of its process."""


@dataclass(frozen=True)
class Vendor:
    """The facts of a vendor that affect its measured numbers."""

    package: str  # the package to install
    takes_dates: bool  # whether it takes the time of a turn separately
    tables: tuple[str, ...] = ()  # kinds of vendor settings: see docs/memory-vendors.md
    write_calls: float = 1.0  # model calls for one write, measured with the version of tools/memory-vendors
    write_overhead: int = 0  # tokens of its own prompt in each call
    write_embeddings: float = 2.0  # embedding requests for one write


class VendorMemory:
    """A vendor's memory system, started at first use. Its calls go to a tap, which counts them."""

    name: str
    vendor: Vendor

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "none",
        model: str = "gpt-4o-mini",
        embedding_model: str = "text-embedding-3-small",
        dimensions: int | None = None,
        k: int = DEFAULT_K,
        timeout: float = 600.0,
        more: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.k = k
        self._more = {name: dict(table) for name, table in (more or {}).items()}
        unknown = [name for name in self._more if name not in self.vendor.tables]
        if unknown:
            known = ", ".join(self.vendor.tables)
            raise UsageError(f"{self.name}: no settings of the kind {unknown[0]!r}; it has {known}")
        self.timeout = timeout
        self._python = _find_python(self.name, self.vendor.package)
        server = base_url.rstrip("/").removesuffix("/v1")
        self._answerer = OpenAIProxy(server, model=model, api_key=api_key)
        self._settings = {
            "base_url": f"{server}/v1",
            "api_key": api_key,
            "model": model,
            "embedding_model": embedding_model,
        }
        self._dimensions = dimensions
        self._process: _Process | None = None
        self._lost = False

    @property
    def takes_dates(self) -> bool:
        """Whether the vendor takes the time of a turn separately."""
        return self.vendor.takes_dates

    @property
    def version(self) -> str | None:
        """The installed version; None if unknown."""
        distribution = self.vendor.package.partition("[")[0].replace("-", "_")
        home = Path(self._python).absolute().parent.parent
        found = sorted(home.glob(f"lib/python*/*-packages/{distribution}-*.dist-info"))
        return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else None

    @property
    def fingerprint(self) -> str:
        """The settings that affect its answers, without the address of the tap."""
        models = f"{self._settings['model']}, {self._settings['embedding_model']} {self._dimensions or ''}".rstrip()
        more = f", {json.dumps(self._more, sort_keys=True)}" if self._more else ""
        return f"{self.vendor.package} {self.version or '(unknown version)'}: {models}, k={self.k}{more}"

    @property
    def storage(self) -> Path | None:
        return None if self._process is None else self._process.directory

    def reset(self) -> None:
        self._ask("reset")

    def ingest(self, turns: Sequence[dict[str, Any]], user: str | None = None) -> None:
        self._ask("ingest", turns=list(turns), user=user)

    def retrieve(self, question: str, k: int | None = None, user: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("retrieve", question=question, k=k or self.k, user=user)
        return found

    def query(self, question: str, user: str | None = None) -> str:
        """Let the model answer from the retrieved items, since no vendor's system answers questions itself."""
        found = "\n".join(each["text"] for each in self.retrieve(question, user=user))
        return str(self._answerer.process({"id": "query", "context": found, "question": question})["response"])

    def finish(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _ask(self, method: str, **arguments: Any) -> Any:
        if self._process is not None and not self._process.alive:
            self.finish()
            if method != "reset":  # a new process would have an empty memory
                self._lost = True
        if self._lost and method != "reset":
            raise VendorFailed(f"{self.name}: its process has ended, and its memory is lost")
        self._lost = False
        if self._process is None:
            size = self._dimensions or self._measure_vector()
            settings = {
                **self._settings,
                "dimensions": size,
                "cut": self._dimensions is not None,
                "more": self._more,
            }
            self._process = _Process(self.name, self._python, settings, self.timeout)
        return self._process.call({"do": method, **arguments}, self.timeout)

    def _measure_vector(self) -> int:
        """Measure the length of the embedder's vectors, since a list of known models would soon be incomplete."""
        asked = {"model": self._settings["embedding_model"], "input": f"{PROBE_PREFIX} How long is your vector?"}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._settings['api_key']}"}
        request = Request(f"{self._settings['base_url']}/embeddings", json.dumps(asked).encode(), headers)
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=self.timeout) as reply:
                return len(json.load(reply)["data"][0]["embedding"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            model = self._settings["embedding_model"]
            raise VendorFailed(f"{self.name}: the embedder {model} gave no vector: {printable(str(error))}") from error


class ListingVendorMemory(VendorMemory):
    def memories(self, user: str | None = None) -> list[str]:
        listed: list[str] = self._ask("memories", user=user)
        return listed


class Mem0(ListingVendorMemory):
    """mem0, which only adds: outdated facts remain next to new ones."""

    name = "mem0"
    vendor = Vendor(
        "mem0ai", takes_dates=False, tables=("config", "add", "search"), write_calls=1, write_overhead=8_000
    )


class Graphiti(ListingVendorMemory):
    """graphiti, whose facts have the time range in which they held."""

    name = "graphiti"
    vendor = Vendor(
        "graphiti-core[kuzu]",
        takes_dates=True,
        tables=("llm", "episode", "search"),
        write_calls=4.3,
        write_overhead=1_300,
        write_embeddings=4,
    )


class LangMem(ListingVendorMemory):
    """langmem, which updates and deletes with tool calls; its store is lost at exit."""

    name = "langmem"
    vendor = Vendor(
        "langmem", takes_dates=False, tables=("llm", "manager"), write_calls=1, write_overhead=1_400, write_embeddings=3
    )


class Cognee(VendorMemory):
    """cognee, which returns pieces of documents."""

    name = "cognee"
    vendor = Vendor(
        "cognee",
        takes_dates=False,
        tables=("environment", "search"),
        write_calls=2,
        write_overhead=800,
        write_embeddings=7,
    )


_VENDORS = (Mem0, Graphiti, LangMem, Cognee)
_PLAIN = ("model", "embedding_model", "dimensions", "k", "timeout")


def is_vendor(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, VendorMemory)


def read_vendor_config(given: Any) -> dict[str, dict[str, Any]]:
    """Read the settings of vendors from a TOML file or a mapping, as arguments of their classes by name."""
    if given is None:
        return {}
    where, tables = "vendor_config", given
    if not isinstance(given, Mapping):
        where, path = str(given), Path(given)
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"{where}: cannot be read as TOML: {printable(str(error))}") from error
    kinds = {kind.name: kind.vendor for kind in _VENDORS}
    read: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        if name not in kinds or not isinstance(table, Mapping):
            raise UsageError(f"{where}: {name!r} is not the table of a vendor: choose from {', '.join(kinds)}")
        known = (*_PLAIN, *kinds[name].tables)
        wrong = [
            key for key, value in table.items() if key not in known or (key in _PLAIN) == isinstance(value, Mapping)
        ]
        if wrong:
            raise UsageError(f"{where}: {name} has no setting {wrong[0]!r}; it has {', '.join(known)}")
        plain = {key: value for key, value in table.items() if key in _PLAIN}
        read[name] = {**plain, "more": {key: value for key, value in table.items() if key not in _PLAIN}}
    return read


class _Process:
    def __init__(self, name: str, python: str, settings: dict[str, Any], seconds: float) -> None:
        self._name = name
        self.directory = Path(tempfile.mkdtemp(prefix=f"context-bench-{name}-"))
        environment = {key: os.environ[key] for key in _PASSED_VARIABLES if key in os.environ}
        environment |= {"PYTHONUNBUFFERED": "1", "DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "False"}
        self._child = start_child(
            [python, str(_PROGRAM), name], stderr=subprocess.PIPE, env=environment, cwd=str(self.directory)
        )
        assert self._child.stderr is not None
        self._said = LastLines(self._child.stderr, MAX_ERROR_LINES)
        self._end = weakref.finalize(self, _clean_up, self._child, self.directory)
        try:
            self.call({"do": "open", "directory": str(self.directory), **settings}, seconds)
        except BaseException:
            self.stop()
            raise

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def call(self, request: dict[str, Any], seconds: float) -> Any:
        """Send a request and wait for its reply. After a timeout, kill the process, because its late reply could be
        taken for the next one.
        """
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None
        assert stdout is not None
        late = threading.Event()
        timer = threading.Timer(seconds, self._end_late, [late])
        timer.daemon = True
        timer.start()
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            line = stdout.readline()
        except OSError:
            line = b""
        finally:
            timer.cancel()
        if late.is_set():
            raise VendorFailed(f"{self._name} did not answer {request['do']!r} within {seconds:g} s")
        if not line:
            self._said.wait(2.0)
            last = self._said.lines[-1] if self._said.lines else "no message"
            raise VendorFailed(f"{self._name}: its process {describe_exit(self._child.wait())} ({last})")
        reply = json.loads(line)
        if "error" in reply:
            raise VendorFailed(f"{self._name}: {printable(reply['error'])}")
        return reply["value"]

    def _end_late(self, late: threading.Event) -> None:
        late.set()
        kill_group(self._child)

    def stop(self) -> None:
        self._end()


def _clean_up(child: subprocess.Popen[bytes], directory: Path) -> None:
    kill_group(child)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):  # unsent input of a process that has exited
                pipe.close()
    shutil.rmtree(directory, ignore_errors=True)


def _find_python(vendor: str, package: str) -> str:
    found = find_program("python", home=f"memory-{vendor}")
    if found is None:
        raise UsageError(
            f"the memory system {vendor} is not installed: run `make memory-vendors` in a checkout of context-bench, "
            f"or create an environment memory-{vendor} with {package} in the directory of CONTEXT_BENCH_VENDORS"
        )
    return found
