"""What a word is, in any script: for everything that compares or retrieves by words."""

from __future__ import annotations

import re

__all__ = ["split_words"]

# Scripts without spaces between words count by character.
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Accents and vowel signs are no letters to `re`, but belong to the word that they stand in.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u1000-\u1049\u1780-\u17d3"
)
_LETTER = rf"[^\W_{_UNSPACED}]"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:[{_MARKS}]+{_LETTER}*)*")


def split_words(text: str) -> list[str]:
    """The words of a text, case-folded, without punctuation."""
    return _WORD.findall(text.casefold())
