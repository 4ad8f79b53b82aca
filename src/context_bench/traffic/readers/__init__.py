"""Readers of recorded traffic: there is one for each format, and all of them return the same typed threads.

A reader has a `name`, a `title`, `sniff(head)` and `read(source)`. Other packages register readers as entry points of
the group `context_bench.traffic_readers`; these are tried before ours. Recordings never leave the machine.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from context_bench.errors import DataError, printable, suggest_file
from context_bench.registry import registry
from context_bench.text import count_things
from context_bench.traffic.readers.packed import open_archive
from context_bench.traffic.readers.sources import WRONG_SHAPE, FileReport, Head, Source
from context_bench.traffic.sessions import Session, Thread

__all__ = [
    "READERS",
    "FileReport",
    "Findings",
    "Head",
    "Reader",
    "Source",
    "find_reader",
    "read_sessions",
    "read_threads",
]


class Reader(Protocol):
    """Reader of one format of recorded traffic."""

    name: str  # name in reports
    title: str  # name in texts

    def sniff(self, head: Head) -> bool:
        """Whether a file with this start has the reader's format."""

    def read(self, source: Source) -> Iterator[Thread]:
        """Yield the threads of a file; report unusable lines to `source.skip`."""


_HERE = "context_bench.traffic.readers"

READERS = {
    "claude-code": f"{_HERE}.claude_code:ClaudeCode",
    "raw-bodies": f"{_HERE}.api_logs:RawBodies",
    "codex": f"{_HERE}.codex:Codex",
    "inspect": f"{_HERE}.inspect_logs:InspectLogs",
    "tokbench": f"{_HERE}.tokbench:Tokbench",
    "swe-agent": f"{_HERE}.trajectories:SweAgent",
    "openhands": f"{_HERE}.openhands:OpenHands",
    "har": f"{_HERE}.har:Har",
    "otel": f"{_HERE}.otel:OtelSpans",
    "litellm": f"{_HERE}.litellm:LiteLLM",
    "mini-swe-agent": f"{_HERE}.trajectories:MiniSweAgent",
    "api-log": f"{_HERE}.api_logs:ApiLogs",
}
"""Built-in readers, in the order in which they are tried."""


@dataclass
class Findings:
    """Results of reading files, with a report for each."""

    files: list[FileReport] = field(default_factory=list)
    bytes_read: int = 0
    bytes_in_all: int = 0
    seen: set[int] = field(default_factory=set)  # hashes of replies in earlier files

    @property
    def recordings(self) -> list[FileReport]:
        return [each for each in self.files if each.format]

    @property
    def others(self) -> list[FileReport]:
        """Files that are no recordings."""
        return [each for each in self.files if not each.format]

    def describe_skipped(self) -> str:
        """Describe the skipped lines by reason, and count the files that are no recordings; "" if there are none."""
        reasons = sum((report.skipped for report in self.files), Counter[str]())
        said = [f"{count_things(count, 'line')} left out ({reason})" for reason, count in reasons.items()]
        if self.others:
            said.append(f"{count_things(len(self.others), 'file')} skipped (no recordings)")
        return ", ".join(said)


def read_sessions(paths: Iterable[str | Path], findings: Findings | None = None) -> Iterator[Session]:
    """Yield the sessions of files and folders; a session may have threads from several files."""
    session: Session | None = None
    for thread in read_threads(paths, findings):
        if session is not None and session.id == thread.session:
            session.threads.append(thread)
            continue
        if session is not None:
            yield session
        session = Session(thread.session, [thread])
    if session is not None:
        yield session


def read_threads(paths: Iterable[str | Path], findings: Findings | None = None) -> Iterator[Thread]:
    """Yield the threads of files and folders, session by session; `findings` receives a report for each file.

    Raises:
        DataError: A file in `paths` is missing, or is no recording.
    """
    findings = Findings() if findings is None else findings
    named = [Path(path) for path in paths]
    for path in named:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder{suggest_file(path)}")
        if not (path.is_file() or path.is_dir()):
            raise DataError(f"{path}: a pipe or a device, which cannot be read twice: write it to a file first")
    stats = {file: file.stat() for path in named for file in _walk(path)}
    once = {
        (told.st_dev, told.st_ino): file for file, told in reversed(stats.items())
    }  # one name for each file, despite links
    found = [_Found(file, told.st_size) for file, told in stats.items() if once[told.st_dev, told.st_ino] == file]
    findings.bytes_in_all = sum(each.size for each in found)
    readers = _list_readers()
    sessions: dict[str, int] = {}
    opened = [(each, place) for place, each in enumerate(_bundle(found))]
    # files of one session are read together, at the place of the first
    for each, place in opened:
        each.place = sessions.setdefault(_peek_session(each), place)
    for each, _ in sorted(opened, key=lambda pair: (pair[0].place, pair[1])):
        known = len(findings.files)
        for source in _open_sources(each, findings):
            yield from _read_source(source, readers, findings)
        reports = findings.files[known:]
        if each.path in named and not any(report.format for report in reports):
            raise DataError(f"{each.path}: {reports[0].reason if len(reports) == 1 else 'contains no recording'}")
        findings.bytes_read += each.size


_PEEKED_BYTES = 16 << 10


@dataclass
class _Found:
    path: Path
    size: int
    bundle: list[Path] = field(default_factory=list)
    place: int = 0


def _walk(path: Path) -> Iterator[Path]:
    """Yield a folder's regular files in order, also hidden ones; a folder comes after the file of the same name."""
    if not path.is_dir():
        yield path
        return
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    yield from sorted((file for file in files if file.is_file()), key=lambda file: file.with_suffix("").parts)


def _bundle(found: list[_Found]) -> list[_Found]:
    """Bundle the raw bodies of each folder."""
    folders: dict[Path, _Found] = {}
    kept: list[_Found] = []
    for each in found:
        if not each.path.name.endswith((".request.json", ".response.json")):
            kept.append(each)
            continue
        first = folders.get(each.path.parent)
        if first is None:
            kept.append(each)
            first = folders[each.path.parent] = each
        else:
            first.size += each.size
        first.bundle.append(each.path)
    return kept


_SESSION_ID = re.compile(rb'"sessionId": ?"([^"]+)"')


def _peek_session(found: _Found) -> str:
    """Return the session id in the first lines of a file, else its path."""
    if not found.bundle and found.path.suffix == ".jsonl":
        with suppress(OSError), found.path.open("rb") as file:
            if named := _SESSION_ID.search(file.read(_PEEKED_BYTES)):
                return named[1].decode("utf-8", "replace")
    return str(found.path)


def _open_sources(found: _Found, findings: Findings) -> Iterator[Source]:
    """Open a file; an archive that is no recording as a whole yields its members."""
    try:
        archive = None if found.bundle else open_archive(found.path)
    except OSError as error:
        findings.files.append(FileReport(str(found.path), reason=f"cannot be read: {error.strerror or error}"))
        return
    if archive is None:
        with Source(found.path, bundle=found.bundle) as source:
            yield source
        return
    with archive:
        whole = Source(found.path, archive=archive)
        if any(reader.sniff(whole.head) for reader in _list_readers()):
            yield whole
            return
        for name in archive.namelist():
            if not name.endswith("/"):
                with Source(found.path, name, archive) as source:
                    yield source


def _list_readers() -> list[Reader]:
    """Return the readers of other packages, then ours."""
    names = [name for name in registry.list("traffic_reader") if name not in READERS]
    found = (registry.get("traffic_reader", name) for name in (*names, *READERS))
    return [each() if isinstance(each, type) else each for each in found]


def find_reader(path: Path, refuses: Callable[[Mapping[str, Any]], Any]) -> Reader | None:
    """Return the reader of a file; None if it is no recording, or if `refuses` is true for one of its first records."""
    try:
        for source in _open_sources(_Found(path, 0), Findings()) if path.is_file() else ():
            head = source.head
            if not find_reason(head) and not head.any(refuses):
                found = next((each for each in _list_readers() if each.sniff(head)), None)
                if found is not None:
                    return found
    except (OSError, DataError, *WRONG_SHAPE):
        pass
    return None


def _read_source(source: Source, readers: list[Reader], findings: Findings) -> Iterator[Thread]:
    report = source.report
    findings.files.append(report)
    try:
        head = source.head
        report.reason = find_reason(head)
        reader = None if report.reason else next((each for each in readers if each.sniff(head)), None)
        if reader is None:
            report.reason = report.reason or "unknown format of recorded traffic"
            return
        report.format = reader.name
        for thread in reader.read(source):
            _drop_known(thread, source, findings.seen)
            if thread.requests:
                report.threads += 1
                report.requests += len(thread.requests)
                yield thread
        findings.seen.update(source.replies)
        if not report.requests:
            said = f": {next(iter(report.skipped))}" if report.skipped else ""
            report.format, report.reason = "", f"{reader.title} without a request{said}"
    except OSError as error:
        _end_report(report, f"cannot be read: {printable(str(error.strerror or error))}")
    except DataError as error:
        _end_report(report, str(error).removeprefix(source.name).lstrip(":, "))
    except WRONG_SHAPE as error:
        _end_report(report, f"cannot be read: {type(error).__name__}: {printable(str(error))}")


def _end_report(report: FileReport, problem: str) -> None:
    """Record the problem that ended the reading of a file; earlier requests count."""
    if report.requests:
        report.skip(0, problem)
    else:
        report.format, report.reason = "", problem


def _drop_known(thread: Thread, source: Source, seen: set[int]) -> None:
    """Drop requests that an earlier file contains: a resumed session begins with a copy."""
    kept = []
    for request in thread.requests:
        known = hash((request.id, request.started, request.usage)) if request.id else None
        if known in seen:
            source.skip(request.line, "a copy of a request in an earlier file")
        else:
            kept.append(request)
            if known is not None:
                source.replies.append(known)
    thread.requests[:] = kept


# --- files next to recordings


def _holds(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: all(name in record for name in names)


def _is_type(*types: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: record.get("type") in types and "payload" not in record


_NO_SESSIONS: list[tuple[str, Callable[[Mapping[str, Any]], bool]]] = [
    ("terminal output of a run", lambda record: record.keys() == {"line"}),
    ("events of an orchestrator", _holds("kind", "ts")),
    ("a proxy's own count of tokens", _holds("request_id", "input_tokens_original")),
    ("a journal of a workflow", lambda record: record.get("type") in ("started", "result") and "agentId" in record),
    ("facts about a subagent", lambda record: "agentType" in record and len(record) < 5),
    ("the manifest of a run", _holds("arm", "task")),
    ("the manifest of a workflow", _holds("runId", "workflowName")),
    (
        "the output of codex exec --json, which has no prompts",
        _is_type("thread.started", "turn.started", "item.completed"),
    ),
    ("a proxy's statistics", lambda record: isinstance(record.get("summary"), dict) and "messages" not in record),
]
"""Known files next to recordings that repeat or summarize their content."""


def find_reason(head: Head) -> str:
    """Describe a file that is known to be no recording; "" for all others."""
    if head.members:
        return ""
    objects = [each for each in head.records if isinstance(each, Mapping)]
    if not objects:
        return "no JSON"
    return next((reason for reason, test in _NO_SESSIONS if all(map(test, objects[:5]))), "")
