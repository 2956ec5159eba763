"""Ouzel's own operations for the CPU plugin, from the package `ouzel-kernels`."""
