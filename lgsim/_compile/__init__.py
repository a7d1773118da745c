"""How a function of one state becomes fast code: component algebra, JAX's interpreters, programs and their compilers.

Private. Users reach ``lgsim.programs``, and at the front door ``tiled_vmap``, ``xla_options`` and the switches.
"""
