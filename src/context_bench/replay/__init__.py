"""Replay of recorded sessions: how much a proxy would have saved, and which text it would have lost."""
