"""sparsemean inside the engines people use, each an extra of its own."""
