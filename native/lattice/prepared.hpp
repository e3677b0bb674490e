// Weights prepared for the lattice, and temporaries per worker: owns the memory of tables.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffers.hpp"
#include "lattice/tables.hpp"

namespace crfit {

// Doubles in the tables of all histories, m = 1..k (HistoryTable).
int64_t ngram_size(const LayoutView& layout);

// Numbers that count n-grams: order 1 one per weight, otherwise those of the tables.
int64_t n_ngrams(const LayoutView& layout);

// Adds to each n-gram with m < k previous labels the counts of the longer n-grams that end with it. Before, table m
// counts n-grams only at the positions that use it; afterwards at all positions.
void add_longer_ngrams(const LayoutView& layout, double* counts);

// The longest table [Y^k][YP] with the first label of the history and the label after it exchanged:
// [Y^(k-1)][Y][YP], padding 0.
void exchange_labels(const LayoutView& layout, const double* longest, double* out);

// When label pairs are listed instead of kept in dense tables (order 1).
struct PairOptions {
  // Largest share of pairs that are listed. A listed pair costs an index and a product that cannot be blocked: many
  // sequences at once gain from few pairs earlier than a single one, whose dense products are vectors of labels.
  static constexpr double kLanes = 0.45, kOneSequence = 0.08;
  double share = 0.0;
  bool drop_zeros = false;          // list only pairs whose weight is not 0: models trained with l1
  const uint8_t* listed = nullptr;  // with drop_zeros [n] the pairs to list instead; the weights of all others are 0
};

// Whether the label pairs that have a weight are at most this share of all pairs and should be listed (order 1).
bool few_pairs(const LayoutView& layout, double share = PairOptions::kOneSequence);

// Scores of label n-grams in the form of Prepared::tables.
class NgramTables {
 public:
  // `constrained`: pairs that LayoutView::may_follow forbids score -inf; the tables are dense then, because sums over
  // all labels minus the forbidden ones would cancel.
  explicit NgramTables(const LayoutView& layout, const PairOptions& options = {}, bool constrained = false);

  void set(const double* w);                                                  // from a weight vector
  void set_own(const double* own);                                            // from each length's own weights
  void set_line(const NgramTables& base, const NgramTables& step, double a);  // base + a step
  void show(Prepared& view) const;

 private:
  void add_shorter();
  void forbid();
  void exponentiate();
  void show_pairs();
  bool is_listed(int64_t k) const;
  void list_pairs(int64_t n);
  void list_scores();
  void list_longest();
  void sort_listed(int64_t n_states);

  LayoutView layout_;
  PairOptions options_;
  bool constrained_;
  int64_t Y_, YP_;
  std::vector<HistoryTable> tables_;
  Buffer<double> tr_, E_, ET_;
  // Order 1.
  Buffer<double> own_, own_E_;   // [n] weights of the pairs and their exponentials
  std::vector<int64_t> places_;  // [n] in a table [Y][YP]
  bool sparse_ = false;
  SparsePairs pairs_;
  std::vector<int32_t> before_ptr_, before_, before_place_, after_ptr_, after_, listed_;  // listed_: the weights
  Buffer<double> before_score_, before_excess_, before_E_, after_score_, after_excess_, after_E_;
  Buffer<double> base_;  // [Y^k] order k >= 2
};

// E * R of a direction for the listed pairs of a point (Tangent).
struct TurnedPairs {
  Buffer<double> before, after, base;
  void set(const Prepared& point, const Prepared& step);
};

// A prepared weight vector: transition tables, boundary rows, dense rows for attributes with many labels.
class PreparedWeights {
 public:
  // transitions = false is for sequences of one position. `constrained` sequences are those that the layout allows;
  // directions are not constrained.
  explicit PreparedWeights(const LayoutView& layout, bool transitions = true, const PairOptions& pairs = {},
                           bool constrained = false);
  PreparedWeights(const PreparedWeights&) = delete;
  PreparedWeights& operator=(const PreparedWeights&) = delete;

  void set(const double* w);                                                                 // w must stay alive
  void set_transitions(const PreparedWeights& base, const PreparedWeights& step, double a);  // tr = base + a step
  void prepare_tagging();  // attributes one by one and bounds of transitions, for the weights that were set
  void use_index(const TokenIndex* tokens) { view_.tokens = tokens; }
  // weights="observed": keeps dense rows only of these attributes, numbered without gaps, for an index that reads no
  // other row. Returns the new number of each row there was at the start, or -1.
  const std::vector<int32_t>& choose_rows(const uint8_t* attributes);
  void use_offsets(const double* offsets) { view_.offsets = offsets; }
  // Makes positions read their node scores from a table of `size` doubles, which the caller fills.
  double* share(const int32_t* token_of, int64_t size);
  const Prepared& view() const { return view_; }

 private:
  LayoutView layout_;
  bool constrained_;
  Prepared view_;
  std::optional<NgramTables> ngrams_;
  Buffer<double> row_low_, row_high_;
  Buffer<double> start_, end_, tail_, hot_rows_, shared_;
  std::vector<int32_t> hot_row_;
  std::vector<int64_t> hot_attributes_, all_hot_;
  std::vector<int32_t> chosen_;
  Vector<AttributeWeights> attributes_;
};

// One worker's temporaries.
class WorkerScratch {
 public:
  WorkerScratch(const LayoutView& layout, int64_t max_T, bool has_edges);
  void add_tangent();  // room for derivatives along a direction
  // Room for groups of sequences of up to max_T positions, and for their derivatives.
  void add_lanes(const LayoutView& layout, int lanes, int64_t max_T, bool tangent);
  Scratch view;

 private:
  int64_t scores_, lattice_;  // doubles in a table of node scores and in one of states
  Buffer<double> doubles_, tangent_, lanes_, lane_tangent_;
  Buffer<int32_t> back_;
};

}  // namespace crfit
