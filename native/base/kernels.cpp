// Compiled once per CPU level (CRFIT_LEVEL).
#include "base/kernels.hpp"

#include "base/vector_kernels.hpp"

const crfit::VectorKernels crfit::VectorKernels::CRFIT_LEVEL = {
    .pair_products = ::pair_products,
    .combine = ::combine,
};
