"""Reporters: a finished result as text. One file each."""

from context_bench.reporters.csv_rows import CsvReporter
from context_bench.reporters.json_document import JsonReporter
from context_bench.reporters.table import TableReporter

__all__ = ["CsvReporter", "JsonReporter", "TableReporter"]
