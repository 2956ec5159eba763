"""Serves batches, and answers their lines with the endpoints of this server."""
