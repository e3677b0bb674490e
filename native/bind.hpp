// The parts of the binding, one function per file. Binding files check shapes, release the GIL and call the core.
#pragma once

#include <nanobind/nanobind.h>

void bind_text(nanobind::module_& m);         // alphabets, templates, file readers
void bind_sequences(nanobind::module_& m);    // Python lists and dicts to arrays
void bind_engine(nanobind::module_& m);       // objective and inference
void bind_vectors(nanobind::module_& m);      // weight-sized vectors of trainers
void bind_online(nanobind::module_& m);       // steps of on-line trainers
void bind_online_meta(nanobind::module_& m);  // the same with learned rates
void bind_margin(nanobind::module_& m);       // mistake-driven steps
void bind_dual(nanobind::module_& m);         // the dual of the objective
