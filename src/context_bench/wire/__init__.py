"""The forms of OpenAI's and Anthropic's APIs, defined only here: requests, replies, streams and usage.

This package is pure: it reads and writes text, makes no requests and keeps no state.
"""
