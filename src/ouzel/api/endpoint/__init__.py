"""Defines the parts of an endpoint, and the record that describes it."""
