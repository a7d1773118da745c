"""What a control engineer asks of a machine's formulas: linear models, Lie derivatives, feedback."""
