"""Pages and figures from the records of the benchmarks."""
