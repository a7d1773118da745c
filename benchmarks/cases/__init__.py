"""What the benchmarks of the folder above measure, by subject."""
