"""Replay of recorded sessions: what a proxy would have saved, and what it would have lost."""
