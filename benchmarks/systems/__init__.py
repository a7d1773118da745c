"""Systems of single papers, for benchmarks, notebooks and tests: what `lgsim.systems` has not.

The folder `benchmarks` is on the path of all three: `from systems.three_body import three_body`.
"""
