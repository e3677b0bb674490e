// Which weights the sequences of a step touch, grouped by weight, for rules that need each weight's whole residual.
//
// In text most attributes occur once in a sequence: their residual is an existing row ("singles"), and only the others
// are summed first. Attributes that occur at the same places (for example a word and its lower-case form) share one
// sum. For steps on one sequence all of this is computed once for the dataset (index_sequences). Larger steps differ
// each time and are collected part by part, with counters that are 0 between steps, so the time of a step depends only
// on what it touches.
//
// A unit is touched as a whole: the row of an attribute, a single weight (weights="observed", attributes with few
// labels), or the weights of an edge attribute.
#pragma once

#include <cstdint>
#include <vector>

#include "online/jobs.hpp"
#include "online/weights.hpp"

namespace crfit {

// Touches of a part of a step, or of its only sequence.
struct StepTouches {
  Touches dense, sparse, edges;
  int64_t room = 0;  // doubles for the sums
};

class OnlineTouches {
 public:
  OnlineTouches(const DataView& data, const RowLayout& shape);

  void index_sequences();  // for the next two; done once
  // Of a step on one sequence, whose residuals begin at row 0.
  StepTouches of_sequence(int64_t sequence) const;
  void prefetch(int64_t sequence) const;  // its entries, before of_sequence
  void make_parts(int n_parts);
  // Of one part of the attributes in a step; rows count from `residual`. Calls for different parts may run in parallel.
  StepTouches of_part(int part, int n_parts, const OnlineSlot* slots, int64_t n_slots, const double* residual);

  // [units] m of steps.hpp: number of sequences in the dataset that touch the unit; infinity if unpenalised, so l2 / m
  // is 0.
  const std::vector<double>& dense_counts() const { return dense_.sequences; }
  const std::vector<double>& sparse_counts() const { return sparse_.sequences; }
  const std::vector<double>& edge_counts() const { return edges_.sequences; }

 private:
  // Units of one kind: counters that are 0 between steps, and counts of the dataset.
  struct Kind {
    std::vector<int32_t> count, n_sequences, last_sequence, place;  // [units]
    std::vector<double> sequences;                                  // [units] of the whole dataset
  };
  // Concatenated touches, and the end of each sequence's.
  struct Lists {
    Vector<Touch> singles, summed;
    Vector<double> values;  // of `summed`
    Vector<int32_t> group, group_sum, group_sequences;
    int64_t n_sums = 0;
    struct End {
      int64_t single = 0, summed = 0, group = 0, sum = 0;
    };
    std::vector<End> ends;
    void clear();
    void close();
    Touches view(End begin, End end) const;
    void prefetch(int64_t sequence) const;
  };
  struct Item {
    int32_t unit;
    uint32_t from;
    double value;
  };
  struct Collected {  // of a step or a part of one
    std::vector<Item> items;
    std::vector<int32_t> distinct;
    Lists lists;
  };
  struct Collecting {
    Collected dense, sparse, edges;
  };

  static void make_kind(int64_t units, Kind& kind);
  static void add(Kind& kind, Collected& to, int64_t unit, int64_t from, double value, int64_t sequence);
  void group(Kind& kind, Collected& from, bool all, Lists& out) const;
  static void merge_sums(int64_t first_summed, int64_t first_group, Lists& lists);
  void add_attribute(Collecting& to, int64_t occurrence, int64_t row, int64_t sequence);
  // A sequence that occurs twice in a step counts as two visits.
  void add_edges(Collecting& to, int64_t sequence, int64_t visit, int64_t row, int part, int n_parts);
  Touches grouped(Kind& kind, Collected& collected, bool all) const;
  void count_sequences();
  int64_t room(const StepTouches& touches) const;

  DataView data_;
  const RowLayout& shape_;
  bool has_edges_;
  Kind dense_, sparse_, edges_;
  Lists all_dense_, all_sparse_, all_edges_;  // of all sequences
  std::vector<Collecting> parts_;
};

}  // namespace crfit
