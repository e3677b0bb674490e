"""L-BFGS, BFGS and their variants: curvature from differences of gradients."""
