"""The command line."""

from sl1max.cli._main import main

__all__ = ["main"]
