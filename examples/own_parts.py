"""Your own system, evaluator and metric, on your own data."""

from context_bench import evaluate
from context_bench.evaluators import ContextRecall
from context_bench.metrics import CompressionRatio, MeanScore

TICKETS = [
    {
        "id": number,
        "context": f"Ticket {number}. Printer {number} is on fire. Please send help. Best regards, the third floor.",
        "question": f"What is wrong with printer {number}?",
        "answer": "on fire",
        "evidence": [f"Printer {number} is on fire."],
    }
    for number in range(10)
]


class NoGreetings:
    """Drop the last sentence."""

    name = "no-greetings"

    def process(self, example):
        return {"context": example["context"].rpartition("Best regards")[0]}


class Politeness:
    """Score 1 if the greeting is still there."""

    name = "politeness"
    score_fields = ("polite",)

    def score(self, original, processed):
        return {"polite": float("regards" in processed["context"])}


class Worst:
    """Report the lowest score."""

    name = "worst"

    def __init__(self, score_field="evidence_recall"):
        self.score_field = score_field

    def compute(self, rows):
        scores = [row.scores[self.score_field] for row in rows if self.score_field in row.scores]
        return {"worst": min(scores, default=float("nan"))}  # NaN: not measured


result = evaluate(
    systems=[NoGreetings()],
    dataset=TICKETS,
    evaluators=[ContextRecall(), Politeness()],
    metrics=[MeanScore(score_field="evidence_recall"), CompressionRatio(), Worst()],
)
for key, value in result.summary["no-greetings"].items():
    print(f"{key:22}{value:.3f}")
