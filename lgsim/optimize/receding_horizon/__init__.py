"""Model predictive control: the controller with its stored plan, and the real-time iteration with constraints."""
