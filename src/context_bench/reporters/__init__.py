"""Reporters: a finished result as text. One file each."""

from context_bench._lazy import add_module
from context_bench.reporters import functions
from context_bench.reporters.csv_rows import CsvReporter
from context_bench.reporters.functions import to_json, to_markdown
from context_bench.reporters.json_document import JsonReporter
from context_bench.reporters.table import TableReporter

__all__ = ["CsvReporter", "JsonReporter", "TableReporter", "to_json", "to_markdown"]

for _name, _function in (("markdown", "to_markdown"), ("json_out", "to_json")):
    add_module(f"{__name__}.{_name}", functions.__doc__ or "", (_function,), vars(functions).__getitem__)
