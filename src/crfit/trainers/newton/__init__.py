"""Newton-CG: exact Hessian-vector products, conjugate gradients, trust region or line search."""
