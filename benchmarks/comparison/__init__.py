"""What `benchmarks.compare` is made of: workloads, a file for each product, rounds, figures, tables and plots."""
