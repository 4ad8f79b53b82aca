"""The one place that names the version; read by the build and by `--version`."""

__version__ = "0.2.0"
