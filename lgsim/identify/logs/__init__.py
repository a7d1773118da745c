"""Robot logs (MCAP files, ROS bags, PX4 logs and LeRobot data sets) as columns of a recording."""
