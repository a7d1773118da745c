"""Model predictive control: the controller that keeps a plan, and the iteration of a step with constraints."""
