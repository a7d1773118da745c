"""What benchmarks/symbolic.py measures beside lgsim: generated C in a loop, Pinocchio without Python, adam's CasADi."""
