"""All benches, one after the other: ``python -m bench``; exit code 1 when a target was missed."""

import sys

from bench import arena, asking, diversity, kernels, networks, pipeline, stats


def main() -> bool:
    """Run all of them, also after one that missed its target."""
    met = []
    for bench in (kernels, stats, pipeline, networks, diversity, asking, arena):
        print(f"\n{(bench.__doc__ or '').splitlines()[0]}\n", flush=True)
        met.append(bench.main([]))
    return all(met)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
