"""Robot logs (MCAP files, ROS 2 bags and LeRobot data sets) as columns of a recording."""
