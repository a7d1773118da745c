"""Cases of the benchmarks, by subject."""
