"""All benches, one after the other: ``python -m bench``."""

from bench import kernels, pipeline, stats

for bench in (kernels, stats, pipeline):
    print(f"\n{(bench.__doc__ or '').splitlines()[0]}")
    bench.main()
