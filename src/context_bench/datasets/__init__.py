"""Datasets: the catalog (data), loaders by family, local files and synthetic generators."""

from context_bench.datasets.catalog import Card, card_for, catalog
from context_bench.datasets.example_check import ExampleCheck
from context_bench.datasets.files import FileDataset
from context_bench.datasets.loaders import add_loader_modules, load_jsonl

__all__ = ["Card", "ExampleCheck", "FileDataset", "card_for", "catalog", "load_jsonl"]

add_loader_modules(__name__)
