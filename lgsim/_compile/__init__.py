"""Compilation of functions of one state to fast code: component algebra, JAX interpreters, programs and compilers.

This package is private. Its public part is ``lgsim.programs``, ``tiled_vmap``, ``xla_options`` and the switches.
"""
