"""Endpoints of batches, and the application that answers their lines."""
