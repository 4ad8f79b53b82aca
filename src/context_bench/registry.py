"""Named components: built-in ones, those of plugins, and those that a user registers or references.

A name is looked up in this order: registered in this process, shipped, entry point of an installed
package (group `context_bench.<kind>s`). `_` and `-` in names are equivalent. Nothing is imported before its first use.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from context_bench.errors import UnknownName, UsageError

__all__ = [
    "KINDS", "Registry", "get_metric", "import_object", "load_dataset", "register_dataset", "register_evaluator",
    "register_memory_system", "register_metric", "register_reporter", "register_system", "registry",
]  # fmt: skip

KINDS = ("dataset", "system", "evaluator", "metric", "reporter", "memory_system", "memory_dataset", "traffic_reader")

_SYSTEMS = "context_bench.systems"
_EVALUATORS = "context_bench.evaluators"

BUILT_IN: dict[str, dict[str, str] | str] = {
    "dataset": "context_bench.datasets.public:list_loaders",
    "system": {
        "passthrough": f"{_SYSTEMS}:Passthrough",
        "truncate": f"{_SYSTEMS}:Truncate",
        "random-drop": f"{_SYSTEMS}:RandomDrop",
        "minify": f"{_SYSTEMS}:Minify",
        "bm25": f"{_SYSTEMS}:BM25",
        "closed-book": f"{_SYSTEMS}:ClosedBook",
        "oracle": f"{_SYSTEMS}:Oracle",
        "openai-proxy": f"{_SYSTEMS}:OpenAIProxy",
        "anthropic-proxy": f"{_SYSTEMS}:AnthropicProxy",
        "claude-cli": f"{_SYSTEMS}:ClaudeCLI",
        "command": f"{_SYSTEMS}:Command",
        "messages": f"{_SYSTEMS}:MessagesSystem",
        "clear-tool-results": f"{_SYSTEMS}.messages:ClearToolResults",
        "keep-last": f"{_SYSTEMS}.messages:KeepLast",
        "dedupe-reads": f"{_SYSTEMS}.messages:DedupeReads",
        "truncate-tool-results": f"{_SYSTEMS}.messages:TruncateToolResults",
        "langchain-context-editing": f"{_SYSTEMS}.messages:LangChainContextEditing",
    },
    "evaluator": {
        "answer-quality": f"{_EVALUATORS}:AnswerQuality",
        "bbh": f"{_EVALUATORS}:BBHScore",
        "code-execution": f"{_EVALUATORS}:CodeExecution",
        "context-recall": f"{_EVALUATORS}:ContextRecall",
        "drop": f"{_EVALUATORS}:DropScore",
        "evidence-survival": f"{_EVALUATORS}:EvidenceSurvival",
        "hotpot": f"{_EVALUATORS}:HotpotScore",
        "ifeval-checker": f"{_EVALUATORS}:IFEvalChecker",
        "ifeval-official": f"{_EVALUATORS}:IFEvalOfficial",
        "infinitebench": f"{_EVALUATORS}:InfiniteBenchScore",
        "llm-judge": f"{_EVALUATORS}:LLMJudge",
        "longbench": f"{_EVALUATORS}:LongBenchScore",
        "math-equivalence": f"{_EVALUATORS}:MathEquivalence",
        "mrcr": f"{_EVALUATORS}:MRCRScore",
        "multiple-choice-accuracy": f"{_EVALUATORS}:MultipleChoiceAccuracy",
        "next-action": f"{_EVALUATORS}:NextAction",
        "nli-label-match": f"{_EVALUATORS}:NLILabelMatch",
        "nolima": f"{_EVALUATORS}:NoLiMaScore",
        "patch-files": f"{_EVALUATORS}:PatchFiles",
        "reference-overlap": f"{_EVALUATORS}:ReferenceOverlap",
        "rouge-suite": f"{_EVALUATORS}:RougeSuite",
        "summarization-quality": f"{_EVALUATORS}:SummarizationQuality",
        "tool-call-match": f"{_EVALUATORS}:ToolCallMatch",
        "truthfulqa": f"{_EVALUATORS}:TruthfulQAScore",
    },
    "metric": "context_bench.metrics:METRICS",
    "reporter": {
        "table": "context_bench.reporters:TableReporter",
        "json": "context_bench.reporters:JsonReporter",
        "csv": "context_bench.reporters:CsvReporter",
        "csv-summary": "context_bench.output.files:SummaryCsvReporter",
        "github": "context_bench.output.files:GithubReporter",
        "latex": "context_bench.output.exports:LatexReporter",
        "md": "context_bench.output.tables:MarkdownReporter",
        "html": "context_bench.output.page:HtmlReporter",
    },
    "memory_system": "context_bench.memory.systems:SYSTEMS",
    "memory_dataset": "context_bench.memory.datasets:DATASETS",
    "traffic_reader": "context_bench.traffic.readers:READERS",
}


def _key(name: str) -> str:
    return name.replace("_", "-")


def import_object(path: str) -> Any:
    """Import `module:object`; an attribute path (`module:Class.method`) works too."""
    module, _, attribute = path.partition(":")
    target: Any = importlib.import_module(module)
    for part in attribute.split("."):
        target = getattr(target, part)
    return target


_COUNTERPARTS = {
    "dataset": "memory_dataset",
    "system": "memory_system",
    "memory_dataset": "dataset",
    "memory_system": "system",
}
"""The kind that a user may have meant."""


class Registry:
    """Looks up components by kind and name. Built-in ones are imported on first use."""

    def __init__(self) -> None:
        self._registered: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}

    def register(self, kind: str, name: str, obj: Any) -> None:
        """Make `obj` available under `name`; a later registration replaces an earlier one."""
        self._of(kind)[_key(name)] = obj

    def get(self, kind: str, name: str) -> Any:
        """Return the component of that name, or raise UnknownName (a KeyError) with the nearest names."""
        key = _key(name)
        own = self._of(kind)
        if key in own:
            return own[key]
        shipped = _list_shipped(kind)
        if key in shipped:
            found = shipped[key]
            return import_object(found) if isinstance(found, str) else found
        points = _entry_points(kind)
        if key in points:
            try:
                return points[key].load()
            except Exception as error:
                raise UsageError(f"the plugin {points[key].value!r} for {kind} {name!r} fails: {error}") from error
        raise self.explain_unknown(kind, name)

    def explain_unknown(self, kind: str, name: str) -> UsageError:
        """Make the error for an unknown name."""
        other = _COUNTERPARTS.get(kind)
        if other is None or (other, name) not in self:
            return UnknownName(kind, name, self.list(kind))
        command = "context-bench memory" if other.startswith("memory_") else "context-bench"
        runs = f"`{command} --{other.removeprefix('memory_')} {name}`"
        return UnknownName(kind, name, self.list(kind), f"it is a {other.replace('_', ' ')}, which {runs} runs")

    def __contains__(self, kind_and_name: tuple[str, str]) -> bool:
        kind, name = kind_and_name
        return _key(name) in self.list(kind)

    def list(self, kind: str) -> builtins.list[str]:
        """List all names of a kind, sorted."""
        return sorted({*self._of(kind), *_list_shipped(kind), *_entry_points(kind)})

    def _of(self, kind: str) -> dict[str, Any]:
        try:
            return self._registered[kind]
        except KeyError:
            raise UsageError(f"unknown kind of component {kind!r}: choose from {', '.join(KINDS)}") from None


@cache
def _list_shipped(kind: str) -> dict[str, Any]:
    built_in = BUILT_IN[kind]
    listed = import_object(built_in) if isinstance(built_in, str) else built_in
    return listed() if callable(listed) else listed


@cache
def _entry_points(kind: str) -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {_key(point.name): point for point in entry_points(group=f"context_bench.{kind}s")}


registry = Registry()


def register_dataset(name: str, loader: Callable[..., Any]) -> None:
    """Register a dataset loader: a callable that returns an iterable of examples."""
    registry.register("dataset", name, loader)


def load_dataset(name: str, **parameters: Any) -> Any:
    """Load a dataset by name, or a local file by its path; parameters go to its loader. `+` joins datasets.

    It can be read any number of times: a loader that returns a stream is called again for each pass.
    """
    if name.endswith((".jsonl", ".json", ".csv", ".tsv", ".parquet")):
        loaded = import_object("context_bench.datasets.files:FileDataset")(name, **parameters)
    else:
        loader = registry.get("dataset", name)
        import_object("context_bench.refs:check_names")(loader, name, parameters)
        loaded = loader(**parameters)
        if isinstance(loaded, Iterator):
            loaded = import_object("context_bench.datasets.joined:Reread")(partial(loader, **parameters), loaded)
    return loaded if hasattr(loaded, "__add__") else import_object("context_bench.datasets.joined:Joined")([loaded])


def register_system(name: str, system: Any) -> None:
    """Register a system: a class, an object with `process`, or a function of an example."""
    registry.register("system", name, system)


def register_evaluator(name: str, evaluator: Any) -> None:
    """Register an evaluator: a class, an object with `score`, or a function of both examples."""
    registry.register("evaluator", name, evaluator)


def register_reporter(name: str, reporter: Any) -> None:
    """Register a reporter: a class, an object with `render`, or a function of a result."""
    registry.register("reporter", name, reporter)


def register_memory_system(name: str, system: Any) -> None:
    """Register a memory system: a class, or an object with `reset`, `ingest` and `query`."""
    registry.register("memory_system", name, system)


def register_metric(name: str, metric: Any) -> None:
    """Register a metric, or a factory of one."""
    registry.register("metric", name, metric)


def get_metric(name: str) -> Any:
    """Return the metric of that name: a class for the built-in ones."""
    return registry.get("metric", name)
