"""Runs a file of requests as a batch, for `ouzel batch`."""
