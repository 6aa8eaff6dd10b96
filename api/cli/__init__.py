"""The command line: reads arguments, calls `api.services`, prints; nothing heavy is imported before a command runs."""

from api.cli.app import app, main

__all__ = ["app", "main"]
