"""What is raised where a machine cannot be."""


class ModelError(ValueError):
    """A machine that cannot be: the message names the body or joint, what was expected and what came."""
