"""What compilers bring on a real GPU, measured as the product measures it."""
