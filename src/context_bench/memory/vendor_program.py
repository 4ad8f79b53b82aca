"""The program that runs a vendor's memory system: `python vendor_program.py VENDOR`, by the vendor's own interpreter.

It imports only the standard library and the vendor's package: that environment does not have context_bench.
Each request and each reply is one line of JSON: `{"do": METHOD, ...arguments}` gets `{"value": ...}` or
`{"error": "Type: message"}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

Turn = dict[str, Any]

DEFAULT_USER = "user"
MAX_MEMORIES = 10_000


@dataclass(frozen=True)
class VendorSettings:
    """The settings of all vendors."""

    base_url: str  # server of the model and the embedder, with `/v1`
    api_key: str  # key of that server
    model: str  # the chat model
    embedding_model: str  # the embedder
    dimensions: int  # length of its vectors
    cut: bool  # whether to request that length, as the model has more dimensions; not all models allow it
    directory: str  # folder for its files
    more: dict[str, dict[str, Any]]  # the user's vendor settings by kind; they take precedence


def _merge(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Merge settings into ours, table by table."""
    merged = dict(ours)
    for key, value in theirs.items():
        known = merged.get(key)
        merged[key] = _merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


class VendorBackend(ABC):
    package: str

    def __init__(self, settings: VendorSettings) -> None:
        self.settings = settings
        os.environ.update(self.environment(), OPENAI_API_KEY=settings.api_key)  # before the vendor is imported
        self.open()

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return the variables that the vendor reads when it is imported."""

    @abstractmethod
    def open(self) -> None:
        """Open an empty memory."""

    def more(self, kind: str, **ours: Any) -> dict[str, Any]:
        """Return our settings of one kind, overridden by the user's."""
        return _merge(ours, self.settings.more.get(kind, {}))

    def reset(self) -> None:
        self.open()

    @abstractmethod
    def ingest(self, turns: list[Turn], user: str | None) -> None:
        """Write the turns in one call of the vendor."""

    @abstractmethod
    def retrieve(self, question: str, k: int, user: str | None) -> list[dict[str, Any]]:
        """Search the memories, best first."""


class Mem0Backend(VendorBackend):
    """mem0 with its local vector store."""

    package = "mem0ai"

    def environment(self) -> dict[str, str]:
        os.environ.pop("OPENROUTER_API_KEY", None)  # with it, all data would be sent there
        return {"MEM0_TELEMETRY": "False", "MEM0_DIR": self.settings.directory}

    def open(self) -> None:
        from mem0 import Memory

        given = self.settings
        server = {"openai_base_url": given.base_url, "api_key": given.api_key}
        files = Path(given.directory)
        vectors = {"path": str(files / "qdrant"), "on_disk": True, "embedding_model_dims": given.dimensions}
        # the number of dimensions is sent if it is set
        cut = {"embedding_dims": given.dimensions if given.cut else None}
        config = self.more(
            "config",
            llm={"provider": "openai", "config": {"model": given.model, "temperature": 0, **server}},
            embedder={"provider": "openai", "config": {"model": given.embedding_model, **cut, **server}},
            vector_store={"provider": "qdrant", "config": vectors},
            history_db_path=str(files / "history.db"),
        )
        self._memory = Memory.from_config(config)

    def reset(self) -> None:
        self._memory.reset()

    def ingest(self, turns: list[Turn], user: str | None) -> None:
        ids = [turn["id"] for turn in turns if turn.get("id")]
        named = self.more("add", user_id=user or DEFAULT_USER, metadata={"ids": ids})
        self._memory.add(_make_messages(turns), **named)

    def retrieve(self, question: str, k: int, user: str | None) -> list[dict[str, Any]]:
        named = self.more("search", filters={"user_id": user or DEFAULT_USER}, top_k=k)
        found = self._memory.search(question, **named)["results"]
        return [
            {"text": each["memory"], "ids": (each.get("metadata") or {}).get("ids") or [], "score": each.get("score")}
            for each in found
        ]

    def memories(self, user: str | None) -> list[str]:
        found = self._memory.get_all(filters={"user_id": user or DEFAULT_USER}, top_k=MAX_MEMORIES)["results"]
        return [each["memory"] for each in found]


class GraphitiBackend(VendorBackend):
    """graphiti with kuzu in this process. The turns of one call are an episode, dated by the first turn."""

    package = "graphiti-core"

    def environment(self) -> dict[str, str]:
        self._loop = asyncio.new_event_loop()
        return {"GRAPHITI_TELEMETRY_ENABLED": "false", "EMBEDDING_DIM": str(self.settings.dimensions)}

    def open(self) -> None:
        import kuzu
        from graphiti_core import Graphiti
        from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
        from graphiti_core.driver.driver import GraphProvider
        from graphiti_core.driver.kuzu_driver import KuzuDriver
        from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
        from graphiti_core.graph_queries import get_fulltext_indices
        from graphiti_core.llm_client.config import LLMConfig
        from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient

        given = self.settings
        server = {"api_key": given.api_key, "base_url": given.base_url}
        config = LLMConfig(**self.more("llm", model=given.model, small_model=given.model, **server))
        self._driver = KuzuDriver(db=":memory:")
        connection = kuzu.Connection(self._driver.db)
        for query in get_fulltext_indices(GraphProvider.KUZU):  # the driver of this version does not create it
            connection.execute(query)
        embedder = OpenAIEmbedderConfig(
            api_key=given.api_key,
            base_url=given.base_url,
            embedding_model=given.embedding_model,
            embedding_dim=given.dimensions,
        )
        self._graph = Graphiti(
            graph_driver=self._driver,
            llm_client=OpenAIGenericClient(config),
            embedder=OpenAIEmbedder(embedder),
            cross_encoder=OpenAIRerankerClient(config),  # without one, a default client requires a key
        )
        self._ids: dict[str, list[str]] = {}

    def reset(self) -> None:
        self._loop.run_until_complete(self._graph.close())
        self.open()

    def ingest(self, turns: list[Turn], user: str | None) -> None:
        from graphiti_core.nodes import EpisodeType

        ids = [turn["id"] for turn in turns if turn.get("id")]
        added = self._loop.run_until_complete(
            self._graph.add_episode(
                name=ids[0] if ids else "turns",
                episode_body="\n".join(_render_turn(turn) for turn in turns),
                reference_time=_read_moment(turns[0].get("timestamp")),
                source=EpisodeType.message,
                group_id=self._choose_group(user),
                **self.more("episode", source_description="chat"),
            )
        )
        self._ids[added.episode.uuid] = ids

    def retrieve(self, question: str, k: int, user: str | None) -> list[dict[str, Any]]:
        named = self.more("search", group_ids=[self._choose_group(user)], num_results=k)
        edges = self._loop.run_until_complete(self._graph.search(question, **named))
        # It returns a ranking without scores.
        found = []
        for rank, edge in enumerate(edges, 1):
            ids = dict.fromkeys(each for episode in edge.episodes for each in self._ids.get(episode, []))
            found.append({"text": _render_edge(edge), "ids": list(ids), "score": 1 / rank})
        return found

    def memories(self, user: str | None) -> list[str]:
        from graphiti_core.edges import EntityEdge
        from graphiti_core.errors import GroupsEdgesNotFoundError

        try:
            edges = self._loop.run_until_complete(EntityEdge.get_by_group_ids(self._driver, [user or DEFAULT_USER]))
        except GroupsEdgesNotFoundError:
            return []
        return [edge.fact for edge in edges]

    def _choose_group(self, user: str | None) -> str:
        """Return the user's group. In this version, the kuzu driver lacks the attribute that names the group."""
        self._driver._database = user or DEFAULT_USER
        return user or DEFAULT_USER


class LangMemBackend(VendorBackend):
    """langmem with its store in memory."""

    package = "langmem"

    def environment(self) -> dict[str, str]:
        return {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

    def open(self) -> None:
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore
        from langmem import create_memory_store_manager

        given = self.settings
        server = {"base_url": given.base_url, "api_key": given.api_key}
        embedder = OpenAIEmbeddings(
            model=given.embedding_model,
            dimensions=given.dimensions if given.cut else None,
            check_embedding_ctx_length=False,  # otherwise it sends token ids
            **server,
        )
        self._store = InMemoryStore(index={"dims": given.dimensions, "embed": embedder})
        self._manager = create_memory_store_manager(
            ChatOpenAI(**self.more("llm", model=given.model, temperature=0, **server)),
            namespace=("memories", "{user}"),
            store=self._store,
            **self.more("manager", enable_deletes=True),
        )

    def ingest(self, turns: list[Turn], user: str | None) -> None:
        config = {"configurable": {"user": user or DEFAULT_USER}}
        self._manager.invoke({"messages": _make_messages(turns)}, config=config)

    def retrieve(self, question: str, k: int, user: str | None) -> list[dict[str, Any]]:
        found = self._store.search(("memories", user or DEFAULT_USER), query=question, limit=k)
        return [{"text": _render_item(item), "score": item.score} for item in found]

    def memories(self, user: str | None) -> list[str]:
        found = self._store.search(("memories", user or DEFAULT_USER), limit=MAX_MEMORIES)
        return [_render_item(item) for item in found]


class CogneeBackend(VendorBackend):
    """cognee with its files in a directory. The turns of one call are one document."""

    package = "cognee"

    def environment(self) -> dict[str, str]:
        given, self._loop = self.settings, asyncio.new_event_loop()
        places = {f"{part}_ROOT_DIRECTORY": str(Path(given.directory, part)) for part in ("DATA", "SYSTEM", "CACHE")}
        return {
            "TELEMETRY_DISABLED": "1",
            "LLM_PROVIDER": "openai",  # other modes ask for JSON in the prompt and retry 30 times
            "LLM_MODEL": f"openai/{given.model}",
            "LLM_ENDPOINT": given.base_url,
            "LLM_API_KEY": given.api_key,
            "EMBEDDING_PROVIDER": "openai",
            "EMBEDDING_MODEL": f"openai/{given.embedding_model}",
            "EMBEDDING_ENDPOINT": given.base_url,
            "EMBEDDING_API_KEY": given.api_key,
            "EMBEDDING_DIMENSIONS": str(given.dimensions),
            "ENABLE_BACKEND_ACCESS_CONTROL": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "COGNEE_SKIP_CONNECTION_TEST": "true",
            **places,
            **{key: str(value) for key, value in self.more("environment").items()},
        }

    def open(self) -> None:
        import cognee

        self._cognee = cognee

    def reset(self) -> None:
        self._loop.run_until_complete(self._cognee.prune.prune_data())
        self._loop.run_until_complete(self._cognee.prune.prune_system(metadata=True))

    def ingest(self, turns: list[Turn], user: str | None) -> None:
        text = "\n".join(_render_turn(turn) for turn in turns)
        self._loop.run_until_complete(self._cognee.add(text, dataset_name=user or DEFAULT_USER))
        self._loop.run_until_complete(self._cognee.cognify(datasets=[user or DEFAULT_USER]))

    def retrieve(self, question: str, k: int, user: str | None) -> list[dict[str, Any]]:
        named = self.more("search", query_type="CHUNKS", top_k=k)
        named["query_type"] = self._cognee.SearchType[named["query_type"]]
        found = self._loop.run_until_complete(
            self._cognee.search(query_text=question, datasets=[user or DEFAULT_USER], **named)
        )
        return [{"text": each["text"] if isinstance(each, dict) else str(each)} for each in found]


_VENDORS: dict[str, type[VendorBackend]] = {
    "mem0": Mem0Backend,
    "graphiti": GraphitiBackend,
    "langmem": LangMemBackend,
    "cognee": CogneeBackend,
}


def _make_messages(turns: list[Turn]) -> list[dict[str, str]]:
    return [{"role": turn.get("role") or "user", "content": _render_turn(turn)} for turn in turns]


def _render_turn(turn: Turn) -> str:
    """Render a turn as text; for vendors without dates, the text already has the date."""
    return f"{turn['speaker']}: {turn['content']}" if turn.get("speaker") else str(turn["content"])


def _render_edge(edge: Any) -> str:
    moments = (("from", edge.valid_at), ("until", edge.invalid_at))
    dates = [f"{word} {moment:%Y-%m-%d}" for word, moment in moments if moment]
    return f"{edge.fact} ({', '.join(dates)})" if dates else str(edge.fact)


def _render_item(item: Any) -> str:
    content = item.value.get("content", item.value)
    if isinstance(content, dict) and set(content) == {"content"}:
        content = content["content"]
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _read_moment(text: str | None) -> datetime:
    """Return the time of a turn, else the current time, since an episode requires a time."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else datetime.now(timezone.utc)
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def main() -> None:
    """Open the memory with the settings of the first request, then answer requests until stdin ends."""
    # The vendor's prints must not look like replies: redirect its stdout to stderr.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    kind, memory = _VENDORS[sys.argv[1]], None
    for line in sys.stdin:
        request = json.loads(line)
        method = request.pop("do")
        reply: dict[str, Any]
        try:
            if method == "open":
                memory = kind(VendorSettings(**request))
                reply = {"value": {"version": version(kind.package)}}
            else:
                reply = {"value": getattr(memory, method)(**request)}
        except Exception as error:  # noqa: BLE001 - whatever a vendor raises is the reply
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply, default=str), file=replies, flush=True)


if __name__ == "__main__":
    main()
