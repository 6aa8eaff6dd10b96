"""The command line: it reads arguments, calls `api.services`, and prints. Nothing heavy is imported until a command runs."""

from api.cli.app import app, main

__all__ = ["app", "main"]
