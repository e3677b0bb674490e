// Mistake-driven steps: perceptron, passive-aggressive, AROW. The formulas are in src/crfit/margin.py.
//
// A step decodes its sequences at the same weights and touches only the weights on which the best paths and the given
// labels differ. Their difference delta is summed per weight in a small hash table, because its norm is needed before
// the step.
//
// Sum of the weights over the steps j = 1 .. K, for averaging: with d_j what step j adds,
//   sum_j w_j = K w_K - sum_j (j - 1) d_j
// so that the second term is touched where the weights are touched.
//
// The sequences of a step are decoded in parallel; one thread then changes the weights, in the order of the sequences.
// Nothing depends on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "margin_job.hpp"
#include "online_weights.hpp"
#include "token_index.hpp"

namespace crfit {

struct MarginRule {
  enum Kind { kPerceptron, kPa, kPa1, kPa2, kArow };
  Kind kind = kPerceptron;
  double c = 1.0;               // bound of PA-I and PA-II; gamma of AROW
  bool error_sensitive = true;  // PA
  double variance = 1.0;        // AROW
};

// A sparse vector that is summed up entry by entry, in the order in which the places come first.
class SparseSum {
 public:
  struct Entry {
    int64_t place;
    double value;
    std::size_t slot;
  };
  SparseSum();
  void add(int64_t place, double x);
  void clear();
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::size_t find(int64_t place) const;  // its slot, or the free one where it belongs
  void grow();

  std::vector<Entry> entries_;
  std::vector<int32_t> slots_;  // [power of two] number of the entry, counted from 1; 0: free
};

class Margin {
 public:
  Margin(const DataView& data, const LayoutView& layout, int n_threads, const MarginRule& rule);
  Margin(const Margin&) = delete;
  Margin& operator=(const Margin&) = delete;

  struct Outcome {
    double loss = 0.0;
    int64_t mistakes = 0;  // sequences whose best path is wrong
  };

  void set(const double* w);  // starts at w; a sum of weights ends, variances are as at first
  double get(double* out);    // plain weights; returns |w|^2
  Outcome visit(const int64_t* sequences, int64_t n, int64_t batch);

  void begin_sum(const double* total);  // from now on sum the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  bool summing() const { return summing_; }
  void get_variances(double* out);
  void set_variances(const double* s);

  const MarginRule& rule() const { return rule_; }
  const PhaseSeconds& seconds() const { return seconds_; }  // wall time of all calls so far

 private:
  int64_t place_slots(const int64_t* sequences, int64_t n);
  double learn(int64_t size);
  void add_slot(const MarginSlot& slot, double c);
  void add_attribute(int64_t a, int32_t label, double x);
  void add_ngram(const int32_t* label, int m, double x);
  void add_edge(int64_t b, int64_t code, double x);
  void change(double factor);
  double& at(OnlineVector& vector, int64_t place);
  void show_ngram(int m, int64_t place);
  void show_change(int64_t place);

  DataView data_;
  MarginRule rule_;
  OnlineShape shape_;
  OnlineVector now_, sum_, variances_;
  double n_summed_ = 0.0;  // steps since the sum was last made whole
  bool summing_ = false;
  bool has_edges_;
  std::vector<uint8_t> has_ngram_;    // [ngram_size] whether there is a weight
  Buffer<double> ngrams_;             // [ngram_size] with order 2 and more: shorter n-grams added, as the lattice wants
  std::vector<HistoryTable> tables_;  // views of it
  TokenTable tokens_;                 // weights="observed"
  Prepared view_;
  std::vector<WorkerScratch> scratch_;
  std::vector<MarginSlot> slots_;
  std::vector<int32_t> best_;  // labels of all slots
  SparseSum delta_;
  PhaseSeconds seconds_;
};

}  // namespace crfit
