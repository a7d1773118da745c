"""Free times, initial states and parameters of a problem, and motions with several phases."""
