"""Compares policies that choose a replica, among them the server's, in a simulation."""
