"""Tasks for vision-language models: data, messages, reading, scoring."""
