"""Records from the hub, and a folder of records for machines without a network.

Tables of the hub are read as a stream. Single files are read at a revision that is resolved first. No code of a
repository is ever run. Every failure is one sentence that says what to do: no network, terms to accept, a missing
revision. `fetch` writes what the hub has as files that `--data-dir` reads:

DIR/<dataset>/<config>/<split>.jsonl    a table, one record a line
DIR/<dataset>/<file>                    a repository's own files, unchanged
DIR/<dataset>/SOURCE                    repository and revision of each configuration, as JSON
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from context_bench.datasets.catalog import Card, Config, find_public_card
from context_bench.datasets.public.raw_files import (
    NOTE,
    LocalFiles,
    Placed,
    RawFile,
    Records,
    expand,
    find_reader,
    read_files,
)
from context_bench.errors import ContextBenchError, DataError, MissingExtra, UsageError, printable
from context_bench.text.formats import FORMATS

BLOCK_BYTES = 2 << 20
MAX_CACHED_BLOCKS = 16  # columns of a table lie apart and are read in turns: each needs a block of its own


@dataclass(frozen=True)
class RemoteFile(RawFile):
    """One file of a dataset's repository at a commit; its path is `datasets/<repository>@<commit>/<file>`."""

    @classmethod
    def at(cls, address: str) -> RemoteFile | None:
        """Return the file at an address of the hub; None if the file cannot be read in part."""
        file = cls(Path(address.removeprefix("hf://")))
        return file if file.suffix in FORMATS and "::" not in address else None

    def _open_stored(self, stack: ExitStack) -> BinaryIO:
        from huggingface_hub import HfFileSystem

        kept = {"maxblocks": MAX_CACHED_BLOCKS}
        system, name = HfFileSystem(), self.path.as_posix()
        blocks = system.open(name, "rb", block_size=BLOCK_BYTES, cache_type="blockcache", cache_options=kept)
        return cast(BinaryIO, io.BufferedReader(stack.enter_context(blocks)))


T = TypeVar("T")

HUB_TIMEOUT = 30.0
_JSON = {".json", ".jsonl"}
JSON_CHUNK_BYTES = 1 << 20
_NETWORK = {"OfflineModeIsEnabled", "ConnectionError", "TransportError", "TimeoutException", "TimeoutError"}
"""Names of network errors, because the library that defines these errors depends on the client's version."""


class _Hub:
    """A repository and the commit to read; tables and files share it."""

    def __init__(self, card: Card, config: Config, split: str, revision: str | None) -> None:
        self._card, self._config, self._split, self._revision = card, config, split, revision
        self._find_commit = ""

    @property
    def commit(self) -> str:
        """The commit of the revision, requested once; everything after is read at this commit."""
        if not self._find_commit:
            self._find_commit = self._ask_hub(lambda: _find_commit(self._config.hub, self._revision))
        return self._find_commit

    @property
    def facts(self) -> Mapping[str, Any]:
        facts = {"hub": self._config.hub, "revision": self.commit}
        return facts | ({"asked_revision": self._revision} if self._revision else {})

    def _iterate(self, opened: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield the items; reading an item may need a request to the hub, which may fail."""
        rows = iter(self._ask_hub(opened))
        end = object()
        while (row := self._ask_hub(lambda: next(rows, end))) is not end:
            yield cast(T, row)

    def _ask_hub(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except ContextBenchError as error:
            if not _is_broken_off(error):
                raise
            raise _explain_failure(error, self._card, self._config, self._revision) from error
        except ImportError as error:
            raise MissingExtra(f"{self._card.name}: loading from the hub", "datasets") from error
        except Exception as error:
            raise _explain_failure(error, self._card, self._config, self._revision) from error


class HubTable(_Hub):
    """The rows of one split, streamed: only the requested rows are downloaded."""

    def __iter__(self) -> Iterator[Placed]:
        place = f"{self._config.hub} at {self.commit[:10]}, split {self._split}"
        for number, record in enumerate(self._iterate(self._open_table), 1):
            yield f"{place}, record {number}", record

    def _open_table(self) -> Iterable[Any]:
        import datasets

        datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # the user did not ask for that request
        builder = datasets.load_dataset_builder(self._config.hub, self._config.hub_config or None, revision=self.commit)
        return _open_rows(builder, self._split)


class HubFiles(_Hub):
    """The records of single files, for repositories that are not a table.

    A plain file is read only as far as needed; an archive, or a file with its own reader, is downloaded completely.
    """

    def __iter__(self) -> Iterator[Placed]:
        return self._iterate(lambda: read_files(self._list_files(), find_reader(self._config.reader)))

    def _list_files(self) -> list[RawFile]:
        files: list[RawFile] = []
        for name in self._config.hub_files:
            outer, _, member = name.partition("!")
            remote = None if self._config.reader else self._find_remote(outer)
            files += [remote] if remote else expand(self.path(outer), member or "*")
        return files

    def _find_remote(self, name: str) -> RemoteFile | None:
        from huggingface_hub import try_to_load_from_cache

        known = try_to_load_from_cache(self._config.hub, name, repo_type="dataset", revision=self.commit)
        at = f"datasets/{self._config.hub}@{self.commit}/{name}"
        return None if isinstance(known, str) else RemoteFile.at(at)

    def path(self, name: str) -> Path:
        """Return a file of the repository, downloaded once into the client's own cache."""
        return Path(self._ask_hub(lambda: self._download(name)))

    def _download(self, name: str) -> str:
        from huggingface_hub import hf_hub_download

        return str(hf_hub_download(self._config.hub, name, repo_type="dataset", revision=self.commit))


def _open_rows(builder: Any, split: str) -> Iterable[Any]:
    """Open the rows of a split, with our own readers if they give the same rows, because they read nothing ahead."""
    config, declared = builder.config, builder.info.features
    found = [RemoteFile.at(address) for address in (config.data_files or {}).get(split, ())]
    files = [file for file in found if file]
    kinds = {file.suffix for file in files} if len(files) == len(found) else set()
    as_json = bool(kinds) and kinds <= _JSON
    if kinds == {".parquet"} or (as_json and not declared and not getattr(config, "field", None)):
        return (record for _, record in read_files(files))
    if as_json and declared:
        config.chunksize = JSON_CHUNK_BYTES  # no type has to be guessed, so nothing is lost by looking at less
    rows: Iterable[Any] = builder.as_streaming_dataset(split=split)
    return rows


def _is_broken_off(error: ContextBenchError) -> bool:
    """Whether the hub, not the file, is the reason why reading a file failed."""
    kinds = {kind.__name__ for each in _list_causes(error) for kind in type(each).__mro__}
    return bool(kinds & {"HfHubHTTPError", "HTTPError", *_NETWORK})


@cache
def _find_commit(repository: str, revision: str | None) -> str:
    """Return the commit; it is requested once, so that all configurations are read at the same commit."""
    from huggingface_hub import HfApi

    return str(HfApi().dataset_info(repository, revision=revision, timeout=HUB_TIMEOUT).sha)


def _explain_failure(error: BaseException, card: Card, config: Config, revision: str | None) -> UsageError:
    """Turn any exception of the client into an error that says what happened and what to do."""
    chain = list(_list_causes(error))
    kinds = {kind.__name__ for each in chain for kind in type(each).__mro__}
    page = f"huggingface.co/datasets/{config.hub}"
    local = f"put its files under DIR/{card.name}/ and add --data-dir DIR"
    absent = kinds & {"RepositoryNotFoundError", "DatasetNotFoundError"}
    statuses = {getattr(getattr(each, "response", None), "status_code", None) for each in chain}
    refused = "GatedRepoError" in kinds or any("gated dataset" in str(each) for each in chain)
    if refused or (card.gated and (absent or statuses & {401, 403})):
        return DataError(
            f"{card.name} is gated: accept its terms on {page} with your account, then log in with "
            f"`hf auth login` (or set HF_TOKEN); or {local}"
        )
    if "RevisionNotFoundError" in kinds:
        return DataError(f"{card.name}: {config.hub} has no revision {revision!r}")
    if absent:
        return DataError(f"{card.name}: the hub shows no {config.hub} (moved, private or removed); {local}")
    if kinds & _NETWORK:
        return DataError(
            f"{card.name}: the hub cannot be reached; if you have its files, {local}; else run "
            f"`context-bench datasets fetch {card.name} --to DIR` on a machine with a network, then add --data-dir DIR"
        )
    first = next((each for each in chain if not isinstance(each, ContextBenchError)), error)
    return DataError(f"{card.name}: {config.hub} cannot be read: {type(first).__name__}: {printable(str(first))[:300]}")


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def fetch(
    reference: str,
    to: Path,
    revision: str | None = None,
    n: int | None = None,
    on_record: Callable[[], None] = lambda: None,
) -> Iterator[Path]:
    """Write the records of `name`, `name:config` or `name:*` under the folder; yield each path once it is complete."""
    name, _, wanted = reference.partition(":")
    card = find_public_card(name)
    folder = to / card.name
    for config in _choose_configs(card, wanted):
        if not config.hub:
            raise UsageError(f"{card.name}:{config.name} is not on the hub: get its files from the authors")
        yield from _fetch(card, config, folder, revision or config.revision or None, n, on_record)


def _choose_configs(card: Card, wanted: str) -> list[Config]:
    if wanted == "*":
        return [config for config in card.configs.values() if not config.parts]
    chosen = card.config(wanted or None)
    return [card.config(part) for part in chosen.parts] or [chosen]


def _fetch(
    card: Card, config: Config, folder: Path, revision: str | None, n: int | None, on_record: Callable[[], None]
) -> Iterator[Path]:
    if config.hub_files:
        files = HubFiles(card, config, config.split, revision)
        for name in dict.fromkeys(each.partition("!")[0] for each in config.hub_files):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(files.path(name), target)
            yield target
        _note(folder, config, files.facts)
        return
    table = HubTable(card, config, config.split, revision)
    target = folder / config.name / f"{config.split}.jsonl"
    _write(target, (record for _, record in islice(table, n)), on_record)
    _note(folder, config, table.facts)
    yield target


def _write(target: Path, records: Iterable[Any], on_record: Callable[[], None]) -> None:
    """Write a file as a whole or not at all: a download that breaks off leaves no file that looks complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("w", encoding="utf-8") as out:
        for record in records:
            out.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
            on_record()
    os.replace(unfinished, target)


def _note(folder: Path, config: Config, facts: Mapping[str, Any]) -> None:
    path = folder / NOTE
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    path.write_text(json.dumps({**known, config.name: dict(facts)}, indent=2) + "\n", encoding="utf-8")


DATA_DIR = "CONTEXT_BENCH_DATA"  # the variable that names the folder of local records


def find_data_folder(data_dir: str | Path | None) -> Path | None:
    """Return the folder of local records: the given folder, else the environment's, else None."""
    chosen = str(data_dir) if data_dir else os.environ.get(DATA_DIR)
    if not chosen:
        return None
    folder = Path(chosen)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder ({'--data-dir' if data_dir else DATA_DIR})")
    return folder


def open_records(
    card: Card,
    config: Config,
    split: str | None = None,
    data_dir: str | Path | None = None,
    revision: str | None = None,
) -> Records:
    """Open the records of one configuration; nothing is read or requested before they are iterated."""
    folder = find_data_folder(data_dir)
    places = [folder / card.name, folder / card.name.replace("-", "_")] if folder else []
    local = next((path for path in places if path.is_dir()), None)
    split = split or config.split
    if local is not None:
        if revision:
            raise UsageError(f"--revision is for the hub: {card.name} is read from {local}")
        return LocalFiles(local, card, config, split)
    if not config.hub:
        route = f"put its files under DIR/{card.name}/ and add --data-dir DIR"
        raise UsageError(
            f"{card.name}:{config.name} is not on the hub: {route} (context-bench datasets show {card.name})"
        )
    kind = HubFiles if config.hub_files else HubTable
    return kind(card, config, split, revision or config.revision or None)
