"""`gen-eval understand`: asking vision-language models the questions of a task, and scoring what they say."""
