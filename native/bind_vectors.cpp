// Binding of the weight-sized vector work: lengths are checked here, the GIL is released, the core is called.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bind.hpp"
#include "vectors.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(message);
}

template <class First, class... Rest>
int64_t common_length(const First& first, const Rest&... rest) {
  require(((rest.size() == first.size()) && ...), "the vectors differ in length");
  return static_cast<int64_t>(first.size());
}

std::pair<double, double> as_pair(const crfit::Norms& norms) { return {norms.inf, std::sqrt(norms.square)}; }

void pair_products(Rows s, Rows y, int n_used, int slot, Vector w_new, Vector w_old, Vector g_new, Vector g_old,
                   Vector v, Table products, OutVector scalars, int n_threads) {
  const int64_t n = common_length(w_new, w_old, g_new, g_old, v);
  require(s.shape(1) == w_new.size() && y.shape(1) == w_new.size(), "the stored pairs differ in length");
  require(slot >= 0 && slot < n_used && static_cast<std::size_t>(n_used) <= s.shape(0) && s.shape(0) == y.shape(0),
          "slot or n_used is out of range");
  require(products.shape(0) == 3 && products.shape(1) == static_cast<std::size_t>(2 * n_used) && scalars.size() == 3,
          "products or scalars have a wrong shape");
  nb::gil_scoped_release release;
  crfit::pair_products(n_threads, n, n_used, slot, s.data(), y.data(), w_new.data(), w_old.data(), g_new.data(),
                       g_old.data(), v.data(), products.data(), scalars.data());
}

double combine_pairs(Rows s, Rows y, Vector c_s, Vector c_y, double c_v, Vector w, Vector v, double step, OutVector d,
                     std::optional<OutVector> w_out, int n_threads) {
  const int64_t n = common_length(w, v, d);
  require(!w_out || w_out->size() == w.size(), "the vectors differ in length");
  require(s.shape(1) == w.size() && y.shape(1) == w.size(), "the stored pairs differ in length");
  require(c_s.size() == c_y.size() && c_s.size() <= s.shape(0) && s.shape(0) == y.shape(0), "too many coefficients");
  nb::gil_scoped_release release;
  return crfit::combine_pairs(n_threads, n, static_cast<int>(c_s.size()), s.data(), y.data(), c_s.data(), c_y.data(),
                              c_v, w.data(), v.data(), step, d.data(), w_out ? w_out->data() : nullptr);
}

}  // namespace

void bind_vectors(nb::module_& m) {
  m.def("dot",
        [](Vector a, Vector b, int n_threads) {
          const int64_t n = common_length(a, b);
          nb::gil_scoped_release release;
          return crfit::dot(n_threads, n, a.data(), b.data());
        },
        "a"_a, "b"_a, "n_threads"_a, "Inner product.");
  m.def("sum_abs",
        [](Vector x, int n_threads) {
          nb::gil_scoped_release release;
          return crfit::sum_abs(n_threads, static_cast<int64_t>(x.size()), x.data());
        },
        "x"_a, "n_threads"_a, "Sum of absolute values.");
  m.def("norms",
        [](Vector x, int n_threads) {
          nb::gil_scoped_release release;
          return as_pair(crfit::norms(n_threads, static_cast<int64_t>(x.size()), x.data()));
        },
        "x"_a, "n_threads"_a, "Maximum norm and Euclidean norm.");
  m.def("axpy",
        [](Vector w, double step, Vector d, OutVector out, int n_threads) {
          const int64_t n = common_length(w, d, out);
          nb::gil_scoped_release release;
          crfit::axpy(n_threads, n, w.data(), step, d.data(), out.data());
        },
        "w"_a, "step"_a, "d"_a, "out"_a, "n_threads"_a, "out = w + step d.");
  m.def("pseudo_gradient",
        [](Vector w, Vector g, double l1, OutVector out, int n_threads) {
          const int64_t n = common_length(w, g, out);
          nb::gil_scoped_release release;
          return crfit::pseudo_gradient(n_threads, n, w.data(), g.data(), l1, out.data());
        },
        "w"_a, "g"_a, "l1"_a, "out"_a, "n_threads"_a, "Write the pseudo-gradient; return the non-zero weights.");
  m.def("pseudo_gradient_norms",
        [](Vector w, Vector g, double l1, int n_threads) {
          const int64_t n = common_length(w, g);
          nb::gil_scoped_release release;
          return as_pair(crfit::pseudo_gradient_norms(n_threads, n, w.data(), g.data(), l1));
        },
        "w"_a, "g"_a, "l1"_a, "n_threads"_a, "Maximum and Euclidean norm of the pseudo-gradient.");
  m.def("align",
        [](OutVector d, Vector v, int n_threads) {
          const int64_t n = common_length(d, v);
          nb::gil_scoped_release release;
          return crfit::align(n_threads, n, d.data(), v.data());
        },
        "d"_a, "v"_a, "n_threads"_a, "Zero d where it does not go against v; return v.d.");
  m.def("project_orthant",
        [](Vector w, Vector d, double step, Vector v, OutVector out, int n_threads) {
          const int64_t n = common_length(w, d, v, out);
          nb::gil_scoped_release release;
          return crfit::project_orthant(n_threads, n, w.data(), d.data(), step, v.data(), out.data());
        },
        "w"_a, "d"_a, "step"_a, "v"_a, "out"_a, "n_threads"_a, "out = w + step d cut at the orthant; return v.(out - w).");
  m.def("pair_products", &pair_products, "s"_a, "y"_a, "n_used"_a, "slot"_a, "w_new"_a, "w_old"_a, "g_new"_a, "g_old"_a,
        "v"_a, "products"_a, "scalars"_a, "n_threads"_a, "Form a curvature pair and all products with the stored ones.");
  m.def("combine_pairs", &combine_pairs, "s"_a, "y"_a, "c_s"_a, "c_y"_a, "c_v"_a, "w"_a, "v"_a, "step"_a, "d"_a,
        "w_out"_a.none(), "n_threads"_a, "d = c_s.s + c_y.y + c_v v and w + step d; return v.d.");
}
