"""Datasets: the catalog (data), loaders by family, local files and synthetic generators."""

from context_bench.datasets.catalog import Card, card_for, catalog
from context_bench.datasets.examples import ExampleCheck
from context_bench.datasets.files import FileDataset

__all__ = ["Card", "ExampleCheck", "FileDataset", "card_for", "catalog"]
