"""Understanding tasks for vision-language models. The room is reserved; its tasks come with PAI-Bench-U."""
