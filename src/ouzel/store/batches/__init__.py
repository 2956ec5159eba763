"""Stores batches of requests with their lines and results."""
