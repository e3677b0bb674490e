// Which CPU level the kernels run at.
//
// A folder with hot loops (base, lattice, batch, online, dual, margin) has a kernels.cpp that is compiled once per
// level and exports a table of functions, and nothing else:
//
//   struct BatchKernels {
//     static const BatchKernels v2, v3, v4;            // one per level, each defined by its own object file
//     void (*gradient)(const ChunkJob&);
//     ...
//   };
//   at_level<BatchKernels>().gradient(job);
//
// Each function processes a chunk of sequences, attributes or weights, so the cost of the indirect call is negligible.
// Everything else in a per-level file has internal linkage (anonymous namespace, static): the linker keeps only one
// copy of an inline function with external linkage, and that could be the one compiled for AVX-512.
#pragma once

namespace crfit {

// Levels in ascending order: x86-64-v2 (SSE4.2), v3 (AVX2 and FMA), v4 (AVX-512). Other architectures have one level,
// built with the compiler's defaults and called v2.
int cpu_level();                      // index of the level in use
const char* cpu_level_name();         // "v2", "v3" or "v4"
void choose_level(const char* name);  // throws std::invalid_argument when unknown or not supported here

// The table of the level in use. For files that are compiled once.
template <class Table>
const Table& at_level() {
#if CRFIT_X86
  static constexpr const Table* tables[] = {&Table::v2, &Table::v3, &Table::v4};
  return *tables[cpu_level()];
#else
  return Table::v2;
#endif
}

}  // namespace crfit
