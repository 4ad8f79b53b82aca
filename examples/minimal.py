"""The smallest benchmark: compare a two-line compressor with `passthrough` on generated data."""

from context_bench import evaluate
from context_bench.registry import load_dataset
from context_bench.reporters import TableReporter
from context_bench.systems import Passthrough


def every_other_sentence(example):
    sentences = example["context"].split(". ")
    return ". ".join(sentences[::2])


result = evaluate([Passthrough(), every_other_sentence], load_dataset("needle", length=2000, n=20))
print(TableReporter().render(result))
