"""Systems under test: proxies over HTTP, programs, and reference systems that need no network."""

from context_bench.systems.adapt import adapt, rename_system
from context_bench.systems.chat import AnthropicProxy, OpenAIProxy
from context_bench.systems.messages import MessagesSystem
from context_bench.systems.programs import ClaudeCLI, Command
from context_bench.systems.reference import BM25, ClosedBook, Minify, Oracle, Passthrough, RandomDrop, Truncate
from context_bench.systems.with_reader import WithReader

__all__ = [
    "BM25", "AnthropicProxy", "ClaudeCLI", "ClosedBook", "Command", "MessagesSystem", "Minify", "OpenAIProxy", "Oracle",
    "Passthrough", "RandomDrop", "Truncate", "WithReader", "adapt", "rename_system",
]  # fmt: skip
