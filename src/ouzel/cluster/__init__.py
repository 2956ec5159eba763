"""The whole API on the replicas of somebody else's cluster; the only package that imports Ray."""
