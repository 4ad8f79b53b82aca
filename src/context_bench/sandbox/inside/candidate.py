"""The process of the program under test: loads it, provides the names that the tests use, and serves calls.

No other process trusts this one, because the program may rewrite all of it. It never sees the tests, only
the arguments of their calls.
"""

from __future__ import annotations

import sys

from context_bench.sandbox.inside.confine import confine, linger
from context_bench.sandbox.inside.peer import Gone, Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def main(job: dict[str, Any]) -> None:
    """Load the program and serve the tests until they close the stream."""
    confine(job)
    peer = Peer(job["stream"], allowed=_anything, exported=_anything)
    peer.send(("hello",))
    peer.receive()  # nothing of the program runs before its tests are there: it cannot keep them from starting
    module = sys.modules["solution"] = type(sys)("solution")
    try:
        load(job["blocks"], job["prompt"], job["entry"], module.__dict__)
    except BaseException as error:  # noqa: BLE001 - a program that cannot be loaded is an outcome
        peer.send(("failed", f"{type(error).__name__} while the program was loaded: {error}"[:300]))
        linger()
    peer.send(("ready", {name: module.__dict__[name] for name in job["names"] if name in module.__dict__}))
    try:
        while True:
            peer.serve(peer.receive())
    except Gone:
        linger()


def _anything(*_: object) -> bool:
    return True


# --- loading: choose which pieces of a reply to run, and fit them to the prompt. It happens in this process, so that
# hostile source text, which can crash the parser, harms only the program.

_TREE_ONLY = 0x400  # ast.PyCF_ONLY_AST, without importing ast
_DEFINITIONS = {"FunctionDef", "AsyncFunctionDef", "ClassDef"}
_IMPORTS = {"Import", "ImportFrom"}
_HARMLESS = _DEFINITIONS | _IMPORTS | {"Assign", "AnnAssign"}
_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)


def load(blocks: list[str], prompt: str, entry: str, namespace: dict[str, Any]) -> None:
    """Run the first arrangement of the blocks that is valid Python and defines the entry point; raise SyntaxError if
    none is. The likeliest block comes first; `prompt` is the code that the reply continues, or "".
    """
    parsed = [(block, _parse(block)) for block in blocks]
    # A block of tests may import the entry point, which another block defines.
    ranked = sorted(
        enumerate(parsed), key=lambda each: each[1][1] is not None and not _defines(each[1][1], entry, False)
    )
    for index, (_, tree) in ranked:
        if tree is not None and _defines(tree, entry):
            others = [other for at, (_, other) in enumerate(parsed) if at != index]
            _prepare(prompt, [other for other in reversed(others) if _only_defines(other, entry)], namespace)
            _run(tree, namespace)
            return
    for text in _continue_prompt(prompt, blocks):
        tree = _parse(text)
        if tree is not None:
            _run(tree, namespace)
            return
    tree = next((tree for _, tree in parsed if tree is not None), None)
    _run(tree or compile(blocks[0], "<program>", "exec", dont_inherit=True), namespace)  # without a tree it raises


def _prepare(prompt: str, others: list[Any], namespace: dict[str, Any]) -> None:
    """Run the code that the reply may rely on: the prompt's imports and helpers, and the reply's other blocks."""
    stub = _parse(prompt) or _parse(f"{prompt}\n{_find_indent(prompt)}pass\n")
    for tree in [stub, *others]:
        if tree is not None:
            try:
                _run(tree, namespace)
            except Exception:  # noqa: BLE001, S110 - a help, not a need: the main block may do without
                pass


def _continue_prompt(prompt: str, blocks: list[str]) -> Iterator[str]:
    """Complete the prompt with each block as its body, indented in the ways that models use."""
    if not prompt:
        return
    head = prompt if prompt.endswith("\n") else f"{prompt}\n"
    indent = _find_indent(prompt)
    for block in blocks:
        if block[:1] in (" ", "\t"):
            yield head + block
            yield head + _indent(_dedent(block), indent)
        else:
            yield head + indent + block  # only the first line lost its indentation
            yield head + _indent(block, indent)


def _find_indent(prompt: str) -> str:
    """Find the indentation of the prompt's last function, which the reply completes."""
    indent = ""
    for line in prompt.splitlines():
        if line.startswith(("def ", "async def ")):
            indent = ""
        elif not indent and line.strip():
            indent = line[: len(line) - len(line.lstrip())]
    return indent or "    "


def _dedent(text: str) -> str:
    lines = text.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)


def _indent(text: str, indent: str) -> str:
    return "\n".join(indent + line if line.strip() else line for line in text.splitlines()) + "\n"


def _parse(text: str) -> Any:
    try:
        tree = compile(text, "<program>", "exec", _TREE_ONLY, dont_inherit=True)
        compile(tree, "<program>", "exec", dont_inherit=True)  # finds a return outside of a function, too
    except _BROKEN:
        return None
    return tree


def _run(tree: Any, namespace: dict[str, Any]) -> None:
    exec(compile(tree, "<program>", "exec", dont_inherit=True), namespace)


def _defines(tree: Any, name: str, by_import: bool = True) -> bool:
    statements = [each for each in tree.body if by_import or type(each).__name__ not in _IMPORTS]
    return any(name in _list_bound_names(statement) for statement in statements)


def _only_defines(tree: Any, entry: str) -> bool:
    if tree is None or _defines(tree, entry):
        return False
    return all(type(statement).__name__ in _HARMLESS for statement in tree.body)


def _list_bound_names(statement: Any) -> list[str]:
    kind = type(statement).__name__
    if kind in _DEFINITIONS:
        return [statement.name]
    if kind == "Assign":
        return [target.id for target in statement.targets if hasattr(target, "id")]
    if kind in _IMPORTS:
        return [alias.asname or alias.name for alias in statement.names]
    return []
