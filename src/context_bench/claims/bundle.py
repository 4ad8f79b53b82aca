"""Writer of bundles: one sealed file with a run's rows, replies, examples and settings, each with its SHA-256.

The same run gives the same bytes. The root hash covers the contents and their order, but not the compression. A private
bundle has hashes instead of the texts of examples and replies.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import orjson

from context_bench._version import __version__
from context_bench.errors import ContextBenchError, MissingExtra, UsageError
from context_bench.store import RunInfo, Store
from context_bench.store.backend import RunRecord, StoredAnswer, identify_row
from context_bench.store.records import pack_processed, to_bytes

FORMAT = "context-bench bundle 1"
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
PARTS = ("run.json", "environment.json", "examples.jsonl", "answers.jsonl", "rows.jsonl", "requests.jsonl")
"""All parts in file order; the manifest follows, then the signature."""
WINDOW, WINDOW_BYTES = 256, 64 << 20  # examples that a reader keeps in memory; those needed later are written again
MAX_PART_BYTES = (1 << 32) - 1  # limit on the size of a part
MAX_LINE_BYTES = 64 << 20  # limit on a line, and on a part that is read at once
MAX_PLAIN_CHARS = 48  # longest metadata text kept in a private bundle: names, not replies

RECORDING = {"id", "context", "digest", "meta"}  # fields of an example that represents a recorded session

_NAMES = frozenset(
    {"output", "upstream", "finish_reason", "question_type", "group", "cluster", "weight_field", "answer_unknown"}
    | {"uncounted_calls", "changed_settings", "injected_tools", "reconstructed", "thread"}
)
"""Metadata whose short texts are names, which a private bundle keeps."""
_WITHHELD = re.compile("sha256:[0-9a-f]{64}")
_RECORDED_APART = ("notes", "intervals", "comparison")
_PACKAGES = ("orjson", "rapidfuzz", "splintr-rs", "zstandard", "math-verify", "nltk", "langdetect")
_LEVEL = 1  # zlib's default takes several times as long


def canonical(value: Any) -> bytes:
    """Return canonical JSON: equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def hash_value(value: Any) -> str:
    return hash_bytes(canonical(value))


def hash_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Window(dict[Any, Any]):
    """The latest examples of a bundle; its writer and its readers keep the same examples."""

    def __init__(self) -> None:
        self._sizes: dict[Any, int] = {}

    def keep(self, key: Any, value: Any, size: int) -> None:
        """Add an example of `size` bytes, and drop the oldest ones beyond the limits."""
        for each in (self, self._sizes):
            each.pop(key, None)
        self[key], self._sizes[key] = value, size
        while len(self) > WINDOW or (len(self) > 1 and sum(self._sizes.values()) > WINDOW_BYTES):
            oldest = next(iter(self))
            del self[oldest], self._sizes[oldest]


def write_bundle(store: Store, info: RunInfo, out: Path, *, private: bool = False, key: Path | None = None) -> str:
    """Write a run as a bundle, and return its root hash.

    Args:
        store: Store of the run.
        info: The run, which must be finished.
        out: File to write.
        private: Write hashes instead of the texts of examples and replies.
        key: PEM file with the Ed25519 key that signs the bundle.

    Raises:
        UsageError: The run has no result, or the key cannot be used.
    """
    if not info.summary:
        raise UsageError(f"run {info.id} is not finished: finish it with --resume, then bundle it")
    signer = None if key is None else _load_key(key)
    with ExitStack() as opened:
        parts = {name: opened.enter_context(tempfile.TemporaryFile()) for name in PARTS}
        datasets = _write_rows(store, info, parts, private)
        for request in () if private else store.run_requests(info):
            parts["requests.jsonl"].write(to_bytes(request) + b"\n")
        parts["run.json"].write(to_bytes(_describe_run(info, datasets, private)))
        parts["environment.json"].write(canonical(_describe_environment()))
        partial = out.with_name(f"{out.name}.partial")
        try:
            with zipfile.ZipFile(partial, "w") as archive:
                listed = [_add_part(archive, name, file) for name, file in parts.items()]
                manifest: dict[str, Any] = {"format": FORMAT, "run": info.id, "private": private, "parts": listed}
                root = hash_value(manifest)
                archive.writestr(_name_entry(MANIFEST), canonical({**manifest, "root": root}))
                if signer is not None:
                    archive.writestr(_name_entry(SIGNATURE), canonical(_sign(signer, root)))
            partial.replace(out)
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror or error}") from error
        finally:
            partial.unlink(missing_ok=True)
    return root


def _describe_run(info: RunInfo, datasets: Mapping[str, Any], private: bool) -> dict[str, Any]:
    apart = {name: info.config.get(name) for name in _RECORDED_APART}
    if private:
        apart["notes"] = None  # they quote replies and errors
    config = {name: value for name, value in info.config.items() if name not in _RECORDED_APART}
    run = {"id": info.id, "created": info.created, "status": info.status, "rows": info.row_count, "config": config}
    document = {**run, "timing": info.timing, "summary": info.summary, **apart, "datasets": datasets}
    return orjson.loads(to_bytes(document))  # type: ignore[no-any-return]


def _describe_environment() -> dict[str, Any]:
    """Return the current versions of the packages that counts and scores depend on."""
    return {"context_bench": __version__, "packages": {name: _find_version(name) for name in _PACKAGES}}


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# --- rows, answers and examples


def _write_rows(store: Store, info: RunInfo, parts: Mapping[str, IO[bytes]], private: bool) -> dict[str, Any]:
    """Write all rows with their answers and examples; return the number and hash of each dataset's examples."""
    window = Window()
    digests: dict[str, dict[str, None]] = {}
    failed = store.failed_requests(info)
    seen = next(failed, None)
    for record in store.run_records(info):
        digest = window.get(record.example_key)
        new = digest is None or not record.example_key
        if digest is None or new:
            content = canonical(record.example)
            digest = hash_bytes(content)
            window.keep(record.example_key or digest, digest, 0 if private else len(content))
            digests.setdefault(record.row.dataset, {})[digest] = None
            parts["examples.jsonl"].write(_write_example(record, digest, private) + b"\n")
            if record.example.keys() == RECORDING:
                parts["requests.jsonl"].write(_write_session(record.example, private) + b"\n")
        answer = record.answer
        if seen is not None and identify_row(record.row).items() <= seen.items():
            answer = StoredAnswer({"tapped": seen["tapped"]}, {}, record.row.latency, "response")
            seen = next(failed, None)
        parts["answers.jsonl"].write(to_bytes(_describe_answer(answer, record.example, private)) + b"\n")
        parts["rows.jsonl"].write(to_bytes(_describe_row(record, digest, new, private)) + b"\n")
    return {
        tag: {"examples": len(found), "sha256": hashlib.sha256("".join(sorted(found)).encode()).hexdigest()}
        for tag, found in digests.items()
    }


def _write_example(record: RunRecord, digest: str, private: bool) -> bytes:
    if not private:
        return to_bytes(record.example)
    return to_bytes({"id": record.row.example_id, "dataset": record.row.dataset, "sha256": digest})


def _write_session(example: Mapping[str, Any], private: bool) -> bytes:
    """Write the recorded session of a replay's example; null if it is private, missing or changed."""
    from context_bench.replay.packing import digest_session, pack_session
    from context_bench.replay.replayer import open_session

    session = None
    with suppress(ContextBenchError, KeyError, TypeError, StopIteration):
        session = None if private else open_session(dict(example))
    known = session is not None and digest_session(session) == example["digest"]
    line = to_bytes({"session": pack_session(session) if session is not None and known else None})
    return line if len(line) < MAX_LINE_BYTES else to_bytes({"session": None})


def _describe_answer(answer: StoredAnswer | None, example: Mapping[str, Any], private: bool) -> dict[str, Any] | None:
    if answer is None:
        return None
    packed = pack_processed(answer.processed, example)
    told = {"processed": packed, "metadata": answer.metadata, "latency": answer.latency, "returns": answer.returns}
    return withhold_answer(orjson.loads(to_bytes(told))) if private else told


def withhold_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer in the form that a private bundle stores."""
    packed = answer["processed"]
    if packed["changed"]:
        packed = {**packed, "changed": {}, "withheld": hash_value(packed["changed"])}
    return {**answer, "processed": packed, "metadata": withhold_texts(answer["metadata"])}


def _describe_row(record: RunRecord, digest: str, new: bool, private: bool) -> dict[str, Any]:
    row = record.row.as_dict()
    del row["response"]  # the answer has it
    if private:
        row |= {"metadata": withhold_texts(row["metadata"]), "unscored": withhold_texts(row["unscored"], plain=True)}
        row["error"] = row["error"] and f"{row['error'].partition(':')[0]}: {withhold_texts(row['error'])}"
    return {**row, "example": digest, "new": new}


def withhold_texts(value: Any, *, plain: bool = False) -> Any:
    """Replace the texts in a value by their hashes, except short names; `plain` treats short texts as names."""
    if isinstance(value, str):
        kept = (plain and len(value) <= MAX_PLAIN_CHARS) or not value or _WITHHELD.fullmatch(value)
        return value if kept else f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    if isinstance(value, list):
        return [withhold_texts(each, plain=plain) for each in value]
    if isinstance(value, Mapping):
        return {key: withhold_texts(each, plain=plain or key in _NAMES) for key, each in value.items()}
    return value


# --- the file


def _name_entry(name: str) -> zipfile.ZipInfo:
    """Return an archive entry that is independent of time and machine."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
    entry._compresslevel = _LEVEL  # type: ignore[attr-defined] # an entry has no public name for it before Python 3.13
    return entry


def _add_part(archive: zipfile.ZipFile, name: str, file: IO[bytes]) -> dict[str, Any]:
    digest, size = hashlib.sha256(), file.tell()
    if size > MAX_PART_BYTES:
        raise UsageError(f"{name} of this run has {size:,} bytes; a part of a bundle may have {MAX_PART_BYTES:,}")
    file.seek(0)
    with archive.open(_name_entry(name), "w") as entry:
        for chunk in iter(lambda: file.read(1 << 18), b""):
            digest.update(chunk)
            entry.write(chunk)
    return {"name": name, "bytes": size, "sha256": digest.hexdigest()}


# --- the signature


def _load_key(path: Path) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise MissingExtra("--sign", "sign") from error
    wanted = f"{path}: --sign needs an Ed25519 key in PEM (openssl genpkey -algorithm ed25519 -out FILE)"
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError) as error:
        raise UsageError(wanted) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(wanted)
    return key


def _sign(key: Any, root: str) -> dict[str, str]:
    public = key.public_key().public_bytes_raw().hex()
    return {"algorithm": "ed25519", "public_key": public, "signature": key.sign(root.encode()).hex()}
