"""Compares policies that choose a replica, in a simulation; the server's own policy is among them."""
