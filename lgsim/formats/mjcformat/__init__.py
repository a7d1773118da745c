"""Parts of MJCF files: compiled values, joints, loops, tendons, actuators, keyframes."""
