"""The forms of OpenAI's and Anthropic's APIs, known here and nowhere else: requests, replies, streams and usage.

Everything here is pure: it reads and writes text, and neither asks a server nor keeps anything.
"""
