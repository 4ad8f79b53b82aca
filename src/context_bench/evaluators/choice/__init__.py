"""Reads which option of a multiple-choice question a reply chooses."""
