"""Memory systems: a conversation is ingested once, then its questions are examples like any other."""
