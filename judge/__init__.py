"""The judge of the G track: questions, prompts, domain score, calibration."""
