"""lgsim's own algorithms as formulas."""
