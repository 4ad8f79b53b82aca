"""Records from the Hugging Face hub: tables as a stream, or single files, at a revision that is resolved first.

No code of a repository is ever run. Whatever goes wrong is one sentence that says what to do: no network,
terms to accept, a revision that is not there.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from context_bench.datasets.catalog import Card, Config
from context_bench.datasets.formats import FORMATS
from context_bench.datasets.public.raw_files import Placed, RawFile, expand, find_reader, read_files
from context_bench.errors import ContextBenchError, DataError, MissingExtra, UsageError, printable

_BLOCK = 2 << 20
_BLOCKS_KEPT = 16
"""Columns of a table lie apart and are read in turns: each needs a block of its own."""


@dataclass(frozen=True)
class RemoteFile(RawFile):
    """One file of a dataset's repository at a commit; its path is `datasets/<repository>@<commit>/<file>`."""

    @classmethod
    def at(cls, address: str) -> RemoteFile | None:
        """Return the file behind an address of the hub; None if it cannot be read in part."""
        file = cls(Path(address.removeprefix("hf://")))
        return file if file.suffix in FORMATS and "::" not in address else None

    def _open_stored(self, stack: ExitStack) -> BinaryIO:
        from huggingface_hub import HfFileSystem

        kept = {"maxblocks": _BLOCKS_KEPT}
        system, name = HfFileSystem(), self.path.as_posix()
        blocks = system.open(name, "rb", block_size=_BLOCK, cache_type="blockcache", cache_options=kept)
        return cast(BinaryIO, io.BufferedReader(stack.enter_context(blocks)))


T = TypeVar("T")

_SECONDS = 30.0
_JSON = {".json", ".jsonl"}
_CHUNK = 1 << 20
_NETWORK = {"OfflineModeIsEnabled", "ConnectionError", "TransportError", "TimeoutException", "TimeoutError"}
"""Names, because it depends on the client's version which library they come from."""


class _Hub:
    """A repository and the commit that is read, shared by tables and files."""

    def __init__(self, card: Card, config: Config, split: str, revision: str | None) -> None:
        self._card, self._config, self._split, self._revision = card, config, split, revision
        self._find_commit = ""

    @property
    def commit(self) -> str:
        """The commit behind the revision, asked for once; it pins everything that is read after."""
        if not self._find_commit:
            self._find_commit = self._ask_hub(self._resolve)
        return self._find_commit

    @property
    def facts(self) -> Mapping[str, Any]:
        """Repository and revision; asks the hub."""
        facts = {"hub": self._config.hub, "revision": self.commit}
        return facts | ({"asked_revision": self._revision} if self._revision else {})

    def _resolve(self) -> str:
        return _find_commit(self._config.hub, self._revision)

    def _iterate(self, opened: Callable[[], Iterable[T]]) -> Iterator[T]:
        """Yield one after the other; the hub is asked for more whenever one is wanted, so any of them can fail."""
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
    """The rows of one split, streamed: what is not asked for is not downloaded."""

    def __iter__(self) -> Iterator[Placed]:
        place = f"{self._config.hub} at {self.commit[:10]}, split {self._split}"
        for number, record in enumerate(self._iterate(self._open_table), 1):
            yield f"{place}, record {number}", record

    def _open_table(self) -> Iterable[Any]:
        import datasets

        datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # nobody asked for that request
        builder = datasets.load_dataset_builder(self._config.hub, self._config.hub_config or None, revision=self.commit)
        return _open_rows(builder, self._split)


class HubFiles(_Hub):
    """The records of single files, for repositories that are not a table.

    A plain file is read as far as it is asked for; what is needed as a whole (an archive, a file with a reader of
    its own) is downloaded.
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
    """Open the rows of a split, with our own readers where the rows are the same: they read nothing ahead."""
    config, declared = builder.config, builder.info.features
    found = [RemoteFile.at(address) for address in (config.data_files or {}).get(split, ())]
    files = [file for file in found if file]
    kinds = {file.suffix for file in files} if len(files) == len(found) else set()
    as_json = bool(kinds) and kinds <= _JSON
    if kinds == {".parquet"} or (as_json and not declared and not getattr(config, "field", None)):
        return (record for _, record in read_files(files))
    if as_json and declared:
        config.chunksize = _CHUNK  # no type has to be guessed, so nothing is lost by looking at less
    rows: Iterable[Any] = builder.as_streaming_dataset(split=split)
    return rows


def _is_broken_off(error: ContextBenchError) -> bool:
    """Whether it was the hub that failed while a file was read, and not the file that is wrong."""
    kinds = {kind.__name__ for each in _list_causes(error) for kind in type(each).__mro__}
    return bool(kinds & {"HfHubHTTPError", "HTTPError", *_NETWORK})


@cache
def _find_commit(repository: str, revision: str | None) -> str:
    """Ask for the commit once, so that all configurations of a repository are read at the same commit."""
    from huggingface_hub import HfApi

    return str(HfApi().dataset_info(repository, revision=revision, timeout=_SECONDS).sha)


def _explain_failure(error: BaseException, card: Card, config: Config, revision: str | None) -> UsageError:
    """Make the error that says what happened and what to do, whatever the client raised."""
    chain = list(_list_causes(error))
    kinds = {kind.__name__ for each in chain for kind in type(each).__mro__}
    page = f"huggingface.co/datasets/{config.hub}"
    local = f"put its files under DIR/{card.name}/ and add --data-dir DIR"
    absent = kinds & {"RepositoryNotFoundError", "DatasetNotFoundError"}
    refused = "GatedRepoError" in kinds or any("gated dataset" in str(each) for each in chain)
    if refused or (card.gated and (absent or _list_statuses(chain) & {401, 403})):
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
            f"{card.name}: the hub cannot be reached; without a network, run `context-bench datasets fetch {card.name} "
            f"--to DIR` on a machine that has one, then add --data-dir DIR"
        )
    first = next((each for each in chain if not isinstance(each, ContextBenchError)), error)
    return DataError(f"{card.name}: {config.hub} cannot be read: {type(first).__name__}: {printable(str(first))[:300]}")


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _list_statuses(chain: list[BaseException]) -> set[int | None]:
    return {getattr(getattr(each, "response", None), "status_code", None) for each in chain}
