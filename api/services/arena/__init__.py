"""The human study as commands: rating votes, correlating ratings with scores, agreement, what to ask next, the page."""
