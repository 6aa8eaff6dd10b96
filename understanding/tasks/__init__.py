"""One module a task; each is found through the entry points ``gen_eval.tasks``."""
