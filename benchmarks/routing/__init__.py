"""Policies that choose a replica are compared in a simulation; the server's own is the object that it uses itself."""
