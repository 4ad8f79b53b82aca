"""The report: a run, or several, as one HTML file that opens offline and asks nothing of anybody."""

from context_bench.output.page.html_page import HtmlReporter

__all__ = ["HtmlReporter"]
