"""CUDA kernels from their source: assembled, compiled for the types of the arguments, launched."""
