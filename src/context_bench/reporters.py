"""Reporters: a finished result as text. Two of them are functions too, for scripts."""

from context_bench._lazy import add_module
from context_bench.output.files import CsvReporter, JsonReporter
from context_bench.output.tables import TableReporter
from context_bench.results import EvalResult

__all__ = ["CsvReporter", "JsonReporter", "TableReporter", "to_json", "to_markdown"]


def to_markdown(result: EvalResult) -> str:
    """Return the tables and notes of a result as Markdown."""
    return TableReporter().render(result)


def to_json(result: EvalResult) -> str:
    """Return the whole result as strict JSON, which `EvalResult.from_json` reads back."""
    return result.to_json()


for _name, _function in (("markdown", to_markdown), ("json_out", to_json)):
    add_module(f"{__name__}.{_name}", _function.__doc__ or "", (_function.__name__,), globals().__getitem__)
