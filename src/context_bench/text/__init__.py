"""Texts as every part of the package reads them: gold answers, words, replies, escapes and masked secrets."""
