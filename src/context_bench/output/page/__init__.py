"""The report: one or several runs as one HTML file that opens offline and makes no request."""

from context_bench.output.page.html_page import HtmlReporter

__all__ = ["HtmlReporter"]
