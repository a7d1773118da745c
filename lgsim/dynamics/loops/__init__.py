"""Dynamics and kinematics of models with closed kinematic loops (closed chains)."""
