// Binding of the basics: CPU level and threads, views of datasets and layouts, weight-sized vectors. Each function
// checks lengths, releases the GIL and calls the core. No argument is converted: a copy of an output would be lost, and
// a copy of an input would cost a sweep over memory.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "base/vectors.hpp"
#include "bind/bind.hpp"
#include "bind/views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Rows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class First, class... Rest>
int64_t common_length(const First& first, const Rest&... rest) {
  require(((rest.size() == first.size()) && ...), "the vectors differ in length");
  return static_cast<int64_t>(first.size());
}

std::pair<double, double> as_pair(const crfit::Norms& norms) { return {norms.inf, std::sqrt(norms.square)}; }

void pair_products(Rows s, Rows y, int n_used, int slot, Vector<double> w_new, Vector<double> w_old,
                   Vector<double> g_new, Vector<double> g_old, Vector<double> v, Table products,
                   OutVector<double> scalars, int n_threads) {
  const int64_t n = common_length(w_new, w_old, g_new, g_old, v);
  require(s.shape(1) == w_new.size() && y.shape(1) == w_new.size(), "the stored pairs differ in length");
  require(slot >= 0 && slot < n_used && static_cast<std::size_t>(n_used) <= s.shape(0) && s.shape(0) == y.shape(0),
          "slot or n_used is out of range");
  require(products.shape(0) == 3 && products.shape(1) == static_cast<std::size_t>(2 * n_used) && scalars.size() == 2,
          "products or scalars have a wrong shape");
  nb::gil_scoped_release release;
  crfit::pair_products(n_threads, n, n_used, slot, s.data(), y.data(), w_new.data(), w_old.data(), g_new.data(),
                       g_old.data(), v.data(), products.data(), scalars.data());
}

double combine_pairs(Rows s, Rows y, Vector<double> c_s, Vector<double> c_y, double c_v, Vector<double> w,
                     Vector<double> v, double step, OutVector<double> d, std::optional<OutVector<double>> w_out,
                     int n_threads) {
  const int64_t n = common_length(w, v, d);
  require(!w_out || w_out->size() == w.size(), "the vectors differ in length");
  require(s.shape(1) == w.size() && y.shape(1) == w.size(), "the stored pairs differ in length");
  require(c_s.size() == c_y.size() && c_s.size() <= s.shape(0) && s.shape(0) == y.shape(0), "too many coefficients");
  nb::gil_scoped_release release;
  return crfit::combine_pairs(n_threads, n, static_cast<int>(c_s.size()), s.data(), y.data(), c_s.data(), c_y.data(),
                              c_v, w.data(), v.data(), step, d.data(), w_out ? w_out->data() : nullptr);
}

double cg_residual(OutVector<double> res, double step, Vector<double> product, std::optional<Vector<double>> metric,
                   int n_threads) {
  const int64_t n = common_length(res, product);
  require(!metric || metric->size() == res.size(), "the vectors differ in length");
  nb::gil_scoped_release release;
  return crfit::cg_residual(n_threads, n, res.data(), step, product.data(), metric ? metric->data() : nullptr);
}

std::tuple<double, double, double> cg_direction(OutVector<double> s, double step, OutVector<double> d,
                                                Vector<double> res, double factor, std::optional<Vector<double>> metric,
                                                int n_threads) {
  const int64_t n = common_length(s, d, res);
  require(!metric || metric->size() == s.size(), "the vectors differ in length");
  nb::gil_scoped_release release;
  const crfit::MetricProducts products = crfit::cg_direction(n_threads, n, s.data(), step, d.data(), res.data(), factor,
                                                             metric ? metric->data() : nullptr);
  return {products.ss, products.sd, products.dd};
}

void bind_vectors(nb::module_& m) {
  m.def(
      "dot",
      [](Vector<double> a, Vector<double> b, int n_threads) {
        const int64_t n = common_length(a, b);
        nb::gil_scoped_release release;
        return crfit::dot(n_threads, n, a.data(), b.data());
      },
      "a"_a.noconvert(), "b"_a.noconvert(), "n_threads"_a, "Inner product.");
  m.def(
      "sum_abs",
      [](Vector<double> x, int n_threads) {
        nb::gil_scoped_release release;
        return crfit::sum_abs(n_threads, static_cast<int64_t>(x.size()), x.data());
      },
      "x"_a.noconvert(), "n_threads"_a, "Sum of absolute values.");
  m.def(
      "norms",
      [](Vector<double> x, int n_threads) {
        nb::gil_scoped_release release;
        return as_pair(crfit::norms(n_threads, static_cast<int64_t>(x.size()), x.data()));
      },
      "x"_a.noconvert(), "n_threads"_a, "Maximum norm and Euclidean norm.");
  m.def(
      "axpy",
      [](Vector<double> w, double step, Vector<double> d, OutVector<double> out, int n_threads) {
        const int64_t n = common_length(w, d, out);
        nb::gil_scoped_release release;
        crfit::axpy(n_threads, n, w.data(), step, d.data(), out.data());
      },
      "w"_a.noconvert(), "step"_a, "d"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "out = w + step d.");
  m.def(
      "pseudo_gradient",
      [](Vector<double> w, Vector<double> g, double l1, OutVector<double> out, int n_threads) {
        const int64_t n = common_length(w, g, out);
        nb::gil_scoped_release release;
        return crfit::pseudo_gradient(n_threads, n, w.data(), g.data(), l1, out.data());
      },
      "w"_a.noconvert(), "g"_a.noconvert(), "l1"_a, "out"_a.noconvert(), "n_threads"_a,
      "Write the pseudo-gradient; return the number of non-zero weights.");
  m.def(
      "pseudo_gradient_norms",
      [](Vector<double> w, Vector<double> g, double l1, int n_threads) {
        const int64_t n = common_length(w, g);
        nb::gil_scoped_release release;
        return as_pair(crfit::pseudo_gradient_norms(n_threads, n, w.data(), g.data(), l1));
      },
      "w"_a.noconvert(), "g"_a.noconvert(), "l1"_a, "n_threads"_a,
      "Maximum and Euclidean norm of the pseudo-gradient.");
  m.def(
      "align",
      [](OutVector<double> d, Vector<double> v, int n_threads) {
        const int64_t n = common_length(d, v);
        nb::gil_scoped_release release;
        return crfit::align(n_threads, n, d.data(), v.data());
      },
      "d"_a.noconvert(), "v"_a.noconvert(), "n_threads"_a, "Set d to 0 where d v >= 0; return v.d.");
  m.def(
      "project_orthant",
      [](Vector<double> w, Vector<double> d, double step, Vector<double> v, OutVector<double> out, int n_threads) {
        const int64_t n = common_length(w, d, v, out);
        nb::gil_scoped_release release;
        return crfit::project_orthant(n_threads, n, w.data(), d.data(), step, v.data(), out.data());
      },
      "w"_a.noconvert(), "d"_a.noconvert(), "step"_a, "v"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a,
      "out = w + step d, projected onto the orthant; return v.(out - w).");
  m.def("cg_residual", &cg_residual, "res"_a.noconvert(), "step"_a, "product"_a.noconvert(),
        "metric"_a.none().noconvert(), "n_threads"_a, "res -= step product; return res.res/M.");
  m.def("cg_direction", &cg_direction, "s"_a.noconvert(), "step"_a, "d"_a.noconvert(), "res"_a.noconvert(), "factor"_a,
        "metric"_a.none().noconvert(), "n_threads"_a,
        "s += step d; d = res/M + factor d; return the new s.Ms, s.Md and d.Md.");
  m.def("pair_products", &pair_products, "s"_a.noconvert(), "y"_a.noconvert(), "n_used"_a, "slot"_a,
        "w_new"_a.noconvert(), "w_old"_a.noconvert(), "g_new"_a.noconvert(), "g_old"_a.noconvert(), "v"_a.noconvert(),
        "products"_a.noconvert(), "scalars"_a.noconvert(), "n_threads"_a,
        "Compute a curvature pair and its products with all stored pairs.");
  m.def("combine_pairs", &combine_pairs, "s"_a.noconvert(), "y"_a.noconvert(), "c_s"_a.noconvert(), "c_y"_a.noconvert(),
        "c_v"_a, "w"_a.noconvert(), "v"_a.noconvert(), "step"_a, "d"_a.noconvert(), "w_out"_a.none().noconvert(),
        "n_threads"_a, "d = c_s.s + c_y.y + c_v v and w + step d; return v.d.");
}

void bind_level(nb::module_& m) {
  m.def(
      "cpu_level", [] { return std::string(crfit::cpu_level_name()); },
      "CPU level of the kernels in use: v2, v3 or v4.");
  m.def(
      "choose_cpu_level", [](const std::string& name) { crfit::choose_level(name.c_str()); }, "name"_a,
      "Switch to the kernels of another CPU level.");
  m.def("available_threads", &crfit::available_threads, "Number of cores that this process may use.");
}

void bind_views(nb::module_& m) {
  nb::class_<Data>(m, "Data", "Views of a dataset's arrays.")
      .def(nb::init<Vector<int64_t>, Vector<int64_t>, Vector<int32_t>, OptionalVector<double>, OptionalVector<int32_t>,
                    OptionalVector<int64_t>, OptionalVector<int32_t>, OptionalVector<double>>(),
           "seq_ptr"_a, "attr_ptr"_a, "attr_ids"_a, "attr_values"_a.none(), "labels"_a.none(), "edge_ptr"_a.none(),
           "edge_ids"_a.none(), "weights"_a.none());

  nb::class_<Layout>(m, "Layout", "Views of a weight layout's arrays.")
      .def(nb::init<int, int64_t, int64_t, OptionalVector<int64_t>, OptionalVector<int32_t>,
                    std::vector<OptionalVector<int64_t>>, OptionalVector<int64_t>, OptionalVector<int32_t>, bool,
                    int64_t, OptionalVector<uint8_t>, OptionalVector<uint8_t>, OptionalVector<uint8_t>>(),
           "n_labels"_a, "n_attributes"_a, "n_edge_attributes"_a, "state_ptr"_a.none(), "state_labels"_a.none(),
           "transition_codes"_a, "pair_ptr"_a.none(), "pair_codes"_a.none(), "boundary"_a, "n_free"_a = 0,
           "may_follow"_a = nb::none(), "may_begin"_a = nb::none(), "may_end"_a = nb::none())
      .def_prop_ro("n_weights", [](const Layout& self) { return self.view.n_weights; });
}

}  // namespace

void bind_base(nb::module_& m) {
  bind_level(m);
  bind_views(m);
  bind_vectors(m);
}
