// Helpers of the binding files: array types, checks, and vectors passed to NumPy without a copy.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/checks.hpp"

// Borrowed one-dimensional NumPy arrays; the second kind is writable.
template <class T>
using Vector = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using OutVector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using NumpyVector = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

using crfit::require;

// The vector as a NumPy array that owns it.
template <class T>
NumpyVector<T> to_numpy(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NumpyVector<T>(owned->data(), {owned->size()}, owner);
}
