"""Records from the Hugging Face hub: tables as a stream, or single files, at a revision that is resolved first.

No code of a repository is ever run. Whatever goes wrong is one sentence that says what to do: no network,
terms to accept, a revision that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from context_bench.datasets.catalog import Card, Config
from context_bench.datasets.sources.records import Placed, expand, find_reader, read_files
from context_bench.errors import ContextBenchError, DataError, MissingExtra, UsageError, printable

__all__ = ["HubFiles", "HubTable"]

T = TypeVar("T")

_SECONDS = 30.0


class _Hub:
    """What tables and files share: the repository, and the commit that is read."""

    def __init__(self, card: Card, config: Config, split: str, revision: str | None) -> None:
        self._card, self._config, self._split, self._revision = card, config, split, revision
        self._commit = ""

    @property
    def commit(self) -> str:
        """The commit behind the revision, asked for once; it pins everything that is read after."""
        if not self._commit:
            self._commit = self._asked(self._resolve)
        return self._commit

    @property
    def facts(self) -> Mapping[str, Any]:
        """Repository and revision; asks the hub."""
        facts = {"hub": self._config.hub, "revision": self.commit}
        return facts | ({"asked_revision": self._revision} if self._revision else {})

    def _resolve(self) -> str:
        return _commit(self._config.hub, self._revision)

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except ContextBenchError:
            raise
        except ImportError as error:
            raise MissingExtra(f"{self._card.name}: loading from the hub", "datasets") from error
        except Exception as error:
            raise _explained(error, self._card, self._config, self._revision) from error


class HubTable(_Hub):
    """The rows of one split, streamed: what is not asked for is not downloaded."""

    def __iter__(self) -> Iterator[Placed]:
        rows = iter(self._asked(self._opened))
        number, end = 0, object()
        while (record := self._asked(lambda: next(rows, end))) is not end:
            number += 1
            yield f"{self._config.hub} at {self.commit[:10]}, split {self._split}, record {number}", record

    def _opened(self) -> Any:
        import datasets

        datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # nobody asked for that request
        return datasets.load_dataset(
            self._config.hub,
            self._config.hub_config or None,
            split=self._split,
            streaming=True,
            revision=self.commit,
        )


class HubFiles(_Hub):
    """The records of single files, for repositories that are no table."""

    def __iter__(self) -> Iterator[Placed]:
        files = []
        for name in self._config.hub_files:
            outer, _, member = name.partition("!")
            files += expand(self.path(outer), member or "*")
        return read_files(files, find_reader(self._config.reader))

    def path(self, name: str) -> Path:
        """A file of the repository, downloaded once into the client's own cache."""
        return Path(self._asked(lambda: self._download(name)))

    def _download(self, name: str) -> str:
        from huggingface_hub import hf_hub_download

        return str(hf_hub_download(self._config.hub, name, repo_type="dataset", revision=self.commit))


@cache
def _commit(repository: str, revision: str | None) -> str:
    """Asked for once, so that all configurations of a repository are read at the same commit."""
    from huggingface_hub import HfApi

    return str(HfApi().dataset_info(repository, revision=revision, timeout=_SECONDS).sha)


def _explained(error: BaseException, card: Card, config: Config, revision: str | None) -> UsageError:
    """What happened and what to do, from whatever the client raised."""
    chain = list(_causes(error))
    kinds = {kind.__name__ for each in chain for kind in type(each).__mro__}
    page = f"huggingface.co/datasets/{config.hub}"
    local = f"put its files under DIR/{card.name}/ and add --data-dir DIR"
    absent = kinds & {"RepositoryNotFoundError", "DatasetNotFoundError"}
    refused = "GatedRepoError" in kinds or any("gated dataset" in str(each) for each in chain)
    if refused or (card.gated and (absent or _statuses(chain) & {401, 403})):
        return DataError(
            f"{card.name} is gated: accept its terms on {page} with your account, then log in with "
            f"`hf auth login` (or set HF_TOKEN); or {local}"
        )
    if "RevisionNotFoundError" in kinds:
        return DataError(f"{card.name}: {config.hub} has no revision {revision!r}")
    if absent:
        return DataError(f"{card.name}: the hub shows no {config.hub} (moved, private or removed); {local}")
    if kinds & {"OfflineModeIsEnabled", "ConnectionError", "TransportError", "TimeoutException", "TimeoutError"}:
        return DataError(
            f"{card.name}: the hub cannot be reached; without a network, run `context-bench datasets fetch {card.name} "
            f"--to DIR` on a machine that has one, then add --data-dir DIR"
        )
    return DataError(f"{card.name}: {config.hub} cannot be read: {type(error).__name__}: {printable(str(error))[:300]}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _statuses(chain: list[BaseException]) -> set[int | None]:
    return {getattr(getattr(each, "response", None), "status_code", None) for each in chain}
