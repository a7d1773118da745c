"""Logs of robots: MCAP files, ROS 2 bags and LeRobot data sets, as columns that a recording is made of."""
