"""Six parts for context-bench, one of each kind, that import nothing from it."""


class NoGreetings:
    """Drop the greeting and all text after it."""

    name = "no-greetings"
    fingerprint = "no-greetings/1"
    reads_gold = False

    def process(self, example):
        return {"context": example["context"].partition("Best regards")[0]}


def tickets(n: int = 10):
    """Generate tickets about printers, each with a greeting."""
    for number in range(n):
        yield {
            "id": number,
            "context": f"Printer {number} is on fire. Best regards, the third floor.",
            "question": f"What is wrong with printer {number}?",
            "answer": "on fire",
        }


class Politeness:
    """Score 1 if the greeting is still there."""

    name = "politeness"
    version = 1
    score_fields = ("polite",)

    def score(self, original, processed):
        if "regards" not in original["context"]:
            return {}
        return {"polite": float("regards" in (processed.get("response") or ""))}


class Worst:
    """Report the lowest score."""

    name = "worst"
    columns = {"worst": ".1%"}  # noqa: RUF012 - the format of its column in the table

    def __init__(self, score_field: str = "score"):
        self.score_field = score_field

    def compute(self, rows):
        scores = [row.scores[self.score_field] for row in rows if self.score_field in row.scores]
        return {"worst": min(scores, default=float("nan"))}  # NaN: not measured


class OneLine:
    """Write one line for each system, for a chat or a commit message."""

    name = "one-line"

    def render(self, result):
        scores = {name: values.get("mean_score", float("nan")) for name, values in result.summary.items()}
        lines = [f"{name!a}: {score:.2f}" for name, score in scores.items()]
        return "\n".join(lines) + "\n"


class LastWords:
    """Remember only the last turn."""

    name = "last-words"

    def reset(self):
        self._last = None

    def ingest(self, turns):
        self._last = turns[-1]

    def retrieve(self, question, k=None):
        return [{"text": self._last["content"], "ids": [self._last["id"]]}] if self._last else []

    def query(self, question):
        return "".join(found["text"] for found in self.retrieve(question))
