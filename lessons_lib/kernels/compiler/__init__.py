"""What Triton's compiler makes of a kernel for a GPU that need not be there."""
