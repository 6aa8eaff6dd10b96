"""The use cases, and the only place where tracks meet: scoring, extraction, reports, comparison, merging.

Doors import the module that they need when they need it; nothing heavy is imported by this package itself.
"""
