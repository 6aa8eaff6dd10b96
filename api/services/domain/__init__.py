"""`gen-eval score domain`: a judge answers questions about generated videos."""
