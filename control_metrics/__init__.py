"""PAI-Bench-C: how well a generated clip follows its control signals."""
