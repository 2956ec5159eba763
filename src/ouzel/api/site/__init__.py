"""Serves pages for a browser at the server's address."""
