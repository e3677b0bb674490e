// Which weights the sequences of a step touch, grouped by weight, for rules that need each weight's whole residual.
//
// A unit is what is touched as a whole: the row of an attribute, a single weight (weights="observed", attributes with
// few labels), or the weights of an edge attribute.
#pragma once

#include <cstdint>
#include <vector>

#include "online_job.hpp"
#include "online_weights.hpp"

namespace crfit {

// What the parts of a step, or its only sequence, touch.
struct StepTouches {
  Touches dense, sparse, edges;
  int64_t room = 0;  // doubles for the sums of groups
};

class OnlineTouches {
 public:
  OnlineTouches(const DataView& data, const OnlineShape& shape);

  // Of a step on one sequence, whose residuals begin at row 0. The index of all sequences is made by the first call.
  StepTouches of_sequence(int64_t sequence);
  void ask_for(int64_t sequence) const;  // its entries come from memory meanwhile
  void make_parts(int n_parts);
  // Of one part of the attributes in a step; rows count from `residual`. Calls for different parts may run side by
  // side.
  StepTouches of_part(int part, int n_parts, const OnlineSlot* slots, int64_t n_slots, const double* residual);

  // [units] How many sequences of the dataset touch it.
  const std::vector<int32_t>& dense_counts() const { return dense_.sequences; }
  const std::vector<int32_t>& sparse_counts() const { return sparse_.sequences; }
  const std::vector<int32_t>& edge_counts() const { return edges_.sequences; }

 private:
  // Units of one kind: counters that are 0 between steps, and what the dataset says.
  struct Kind {
    std::vector<int32_t> count, n_sequences, last_sequence, place;  // [units]
    std::vector<int32_t> sequences;                                 // [units] of the whole dataset
  };
  // Touches one after the other, and where those of each sequence begin.
  struct Lists {
    std::vector<int32_t> single, group, group_size, group_sequences;
    std::vector<uint32_t> single_from, from;
    std::vector<double> value;
    void clear();
    Touches view(int64_t first_single, int64_t end_single, int64_t first_group, int64_t end_group,
                 int64_t first_from) const;
  };
  struct Item {
    int32_t unit, sequence;
    uint32_t from;
    double value;
  };
  struct Collected {  // of a step or a part of one
    std::vector<Item> items;
    std::vector<int32_t> distinct;
    Lists lists;
  };
  struct Ends {
    int64_t single = 0, group = 0, from = 0;
  };
  struct Collecting {
    Collected dense, sparse, edges;
  };

  static void make_kind(int64_t units, Kind& kind);
  static void add(Kind& kind, Collected& to, int64_t unit, int64_t from, double value, int64_t sequence);
  void group(Kind& kind, Collected& from, bool all, Lists& out) const;
  void add_attribute(Collecting& to, int64_t occurrence, int64_t row, int64_t sequence);
  void add_edges(Collecting& to, int64_t sequence, int64_t row, int part, int n_parts);
  void index_sequences();
  void count_sequences();
  int64_t room(const StepTouches& touches) const;

  DataView data_;
  const OnlineShape& shape_;
  bool has_edges_;
  Kind dense_, sparse_, edges_;
  Lists all_dense_, all_sparse_, all_edges_;  // of all sequences
  std::vector<Ends> dense_ends_, sparse_ends_, edge_ends_;
  std::vector<Collecting> parts_;
};

}  // namespace crfit
