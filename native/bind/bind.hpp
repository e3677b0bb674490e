// One binding function per folder of the core. Binding files check shapes, release the GIL and call the core. Loops
// over data belong in the core, because the binding is compiled for size.
#pragma once

#include <nanobind/nanobind.h>

void bind_base(nanobind::module_& m);     // CPU level, views of datasets and layouts, weight-sized vectors
void bind_text(nanobind::module_& m);     // alphabets, templates, readers
void bind_lattice(nanobind::module_& m);  // inference
void bind_tagging(nanobind::module_& m);  // labels of Python sequences
void bind_batch(nanobind::module_& m);    // the objective over a dataset
void bind_online(nanobind::module_& m);   // steps of online trainers
void bind_margin(nanobind::module_& m);   // mistake-driven steps
void bind_dual(nanobind::module_& m);     // the dual of the objective
