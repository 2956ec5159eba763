"""Runs the API on replicas of Ray Serve; no other package imports Ray."""
