"""The parts of `benchmarks.compare`: workloads, a file for each product, rounds, figures and
tables.
"""
