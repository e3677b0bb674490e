// A decoder in the binding: its layout and weights, held alive.
#pragma once

#include "bind/views.hpp"
#include "lattice/decoder.hpp"

struct PyDecoder {
  nanobind::object layout_owner;
  Vector<double> weights;
  crfit::Decoder decoder;

  PyDecoder(nanobind::object layout_object, Vector<double> w)
      : layout_owner(layout_object), weights(w), decoder(view_of(layout_object, w), w.data()) {}

  static const crfit::LayoutView& view_of(const nanobind::object& layout_object, const Vector<double>& w) {
    const crfit::LayoutView& layout = nanobind::cast<Layout&>(layout_object).view;
    check_weights(w, layout);
    return layout;
  }
};
