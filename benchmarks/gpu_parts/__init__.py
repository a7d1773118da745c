"""Parts of the benchmarks for GPUs."""
