"""Parts of benchmarks/estimation.py."""
