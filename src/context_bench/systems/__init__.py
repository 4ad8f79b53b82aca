"""Systems: what is measured. Proxies over HTTP, and reference systems that need no network."""

from context_bench.systems.adapt import adapt, rename_system
from context_bench.systems.anthropic_proxy import AnthropicProxy
from context_bench.systems.bm25 import BM25
from context_bench.systems.bounds import ClosedBook, Oracle, Passthrough
from context_bench.systems.claude_cli import ClaudeCLI
from context_bench.systems.command import Command
from context_bench.systems.minify import Minify
from context_bench.systems.openai_proxy import OpenAIProxy
from context_bench.systems.random_drop import RandomDrop
from context_bench.systems.truncate import Truncate
from context_bench.systems.with_reader import WithReader

__all__ = [
    "BM25",
    "AnthropicProxy",
    "ClaudeCLI",
    "ClosedBook",
    "Command",
    "Minify",
    "OpenAIProxy",
    "Oracle",
    "Passthrough",
    "RandomDrop",
    "Truncate",
    "WithReader",
    "adapt",
    "rename_system",
]
