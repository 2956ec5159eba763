"""Examines this machine: its hardware, its speed, the models that fit, and possible problems."""
