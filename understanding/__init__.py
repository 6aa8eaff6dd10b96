"""Tasks for vision-language models: data, messages, reading, scoring.

>>> import understanding
>>> bound = understanding.task("pai/u")
>>> question = {"id": "q1", "question": "Which way?", "options": {"A": "Left.", "B": "Right."}, "answer": "B"}
>>> reading = bound.parse("It is not A, so B.", question)
>>> bound.score(reading, question).value
1.0
"""

from understanding.task import Task, task, task_names

__all__ = ["Task", "task", "task_names"]
