"""Files that tasks read: samples, predictions, and what other harnesses write."""
