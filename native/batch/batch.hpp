// The objective over a dataset of sequences.
//
// A gradient takes two parallel loops. The first runs over chunks of sequences: scores, lattice, residual rows
// c (p - [y = gold]) and expected label pairs. The second sums residual rows: the few frequent attributes position by
// position, in segments of the corpus whose sums are added in order; all others attribute by attribute through the
// transposed index. Chunks and segments depend only on the dataset, partial sums are added in order, and each weight is
// written by one task, so the result does not depend on the number of threads.
//
// If many positions have the same attributes, node scores are computed once for each distinct set, and the residual
// rows of its positions are added before they are summed per attribute. Sequences of one position need no lattice:
// position_kernels.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch/core.hpp"
#include "batch/kernels.hpp"
#include "batch/shared_tokens.hpp"
#include "lattice/prepared.hpp"
#include "lattice/token_index.hpp"

namespace crfit {

class Batch final : public Core {
 public:
  Batch(const DataView& data, const LayoutView& layout, const CoreOptions& options);

  double loss(const double* w) override;
  double loss_on(const double* w, const int64_t* sequences, int64_t n) override;
  double loss_and_grad(const double* w, double l2, double* g) override;
  double loss_and_grad_on(const double* w, double l2, const int64_t* sequences, int64_t n, double* g) override;
  void expectations(const double* w, double* out) override;
  void set_line(const double* w, const double* d) override;
  void along(double a, double& loss, double& slope) override;
  void keep_curvature(bool pairs, bool floats, int64_t max_sequences, int64_t max_bytes, bool at_gradients,
                      bool propagate) override;
  int64_t kept_bytes() const override { return 8 * kept_values_.size(); }
  int64_t table_bytes() const override;
  void hessian_product(const double* w, const double* v, double l2, double* out) override;
  void hessian_diagonal(const double* w, double* out) override;
  void restrict_products(const uint8_t* weights) override;
  int64_t n_distinct() const override { return sources_.n_positions; }

 private:
  static constexpr int64_t kSegments = 32;  // parts of a round, each with its own sums of frequent attributes

  struct Chunk {
    int64_t first, count;  // entries of order_
  };
  // Which residual rows of a round are summed for which attributes.
  struct Sums {
    std::vector<int32_t> attributes;  // with occurrences in this round; empty when there is one round: all
    std::vector<int64_t> occ_ptr;
    std::vector<int32_t> occ_at;  // see GatherJob
    std::vector<double> occ_values;
    std::vector<int64_t> task_ptr;  // entries of occ_ptr per gather task
    std::vector<int64_t> slot_ptr;  // [n_rows + 1] frequent attributes of a row
    std::vector<int32_t> slots;
    std::vector<double> slot_values;
  };
  // Sequences whose residual rows fit in memory together; usually there is one round.
  struct Round : Sums {
    int64_t first_position, n_positions;
    int64_t n_rows;  // that are summed per attribute: positions, or distinct sets of attributes
    std::vector<Chunk> chunks;
    std::vector<double> occ_squares, slot_squares;  // for diagonals, empty: all 1; see square_values()
    std::vector<int64_t> edge_ptr;                  // [n_edge_attributes + 1]
    std::vector<int32_t> edge_rows;
  };

  // What products with some of the weights read: the attributes that have one of them (face.cpp).
  struct Face {
    bool active = false;                    // products are restricted to the attributes
    std::vector<uint8_t> attributes;        // [n_attributes] which are read
    std::unique_ptr<PreparedWeights> step;  // the direction
    TokenSelection tokens;                  // weights="observed"
    std::vector<int64_t> attr_ptr;          // weights="all": the occurrences, as in DataView
    std::vector<int32_t> attr_ids;
    std::vector<double> attr_values;
    DataView data, sources;               // with these occurrences
    std::vector<int32_t> slot_of;         // [n frequent] place in `frequent`; -1: not read
    std::vector<int32_t> frequent;        // attributes, like frequent_
    std::vector<Sums> sums;               // of each round
    std::vector<uint8_t> pairs;           // [n_ngrams] label pairs on the face
    std::unique_ptr<NgramTables> listed;  // these pairs at the pinned point; null: products are not restricted to them
  };

  void share_tokens(double share_from);
  void plan_rounds();
  void order_sequences(int64_t first, int64_t last);
  ChunkJob job_of(const Chunk& chunk, int worker);
  bool side_by_side() const;
  void count_observed();
  void choose_frequent();
  int64_t first_label(int64_t a) const;
  void index_round(Round& round);
  void index_tasks(Sums& sums) const;
  void index_edges(Round& round);
  void make_scratch();
  void walk(void (*kernel)(const ChunkJob&), const ChunkJob& settings, const double* x, double l2, double* g,
            double& loss, double& square, const Face* face = nullptr);
  void gather_states(const Round& round, const Sums& sums, const std::vector<int32_t>& frequent, const double* w,
                     double l2, bool squared, bool accumulate, double* g, std::vector<double>& squares);
  void add_frequent(const std::vector<int32_t>& frequent, double* g);
  void sum_ngrams(int64_t n_tables);
  void add_to_transitions(double* g) const;
  void gather_edges(const Round& round, const double* w, double l2, bool squared, double* g);
  void add_boundary(const Round& round, double* g) const;
  void finish_dense(const double* w, double l2, double* g, double& square) const;
  void add_same_tokens();
  std::unique_ptr<PreparedWeights> prepare(bool is_point) const;
  const Prepared& ready(PreparedWeights& prepared, const double* w, const Face* face = nullptr);
  Prepared ready_for_few(const double* w);
  void share_scores(PreparedWeights& prepared, const DataView& sources);
  void forget_curvature();
  bool find_face(const uint8_t* weights);
  void face_scores(const uint8_t* weights);
  void face_sums(const Round& round, Sums& sums) const;
  void face_pairs(const uint8_t* weights);
  // Sequences that are solved side by side: the first, how many, positions of the longest.
  struct Group {
    int64_t first, count, T;
  };
  std::vector<Group> groups() const;
  int64_t group_size(const Group& group) const;
  void keep_groups(bool floats, int64_t max_sequences, int64_t max_bytes);
  int64_t longest_chunk(const Round& round) const;
  const Kept& make_room();
  void pin(const double* w);
  void keep_now(const double* w);
  void square_values();
  void scatter(int64_t sequence, const double* residual, const double* pairs, double* g) const;
  void add_loop(double wall, const std::vector<PhaseSeconds>& busy);

  DataView data_;
  DataView sources_;  // the data, or its distinct positions: scores are computed for these
  LayoutView layout_;
  int n_threads_;
  int64_t round_bytes_;
  int YP_;
  int64_t max_T_ = 1;
  int64_t max_chunks_ = 0;  // whose expected pairs fit in memory together
  int64_t n_chunks_ = 0;
  bool has_edges_ = false;
  bool log_domain_ = false;
  bool one_position_;
  int lanes_;                   // sequences that are solved side by side
  int64_t n_ngrams_;            // numbers that count n-grams; 0 for single positions
  std::vector<int64_t> order_;  // [n_sequences] as they are processed: neighbours of similar length together
  std::vector<Round> rounds_;
  std::vector<double> observed_pairs_;  // [n_ngrams] c_i summed over gold n-grams, each in its position's table
  std::vector<int32_t> frequent_;       // attributes that are summed position by position
  std::vector<int32_t> slot_of_;        // [n_attributes] index into frequent_, or -1
  std::vector<int64_t> counts_;         // [n_attributes] occurrences
  std::size_t n_frequent_occurrences_ = 0;
  TokenTable tokens_;                     // weights="observed"
  std::unique_ptr<SharedTokens> shared_;  // null: each position has its own scores
  Buffer<double> offsets_;                // [n_positions][YP], empty: none
  PreparedWeights weights_;
  std::unique_ptr<PreparedWeights> line_base_, line_step_;
  Buffer<double> base_scores_, step_scores_;  // [n_positions][YP]
  std::vector<WorkerScratch> scratch_;
  Buffer<double> residual_;         // [rows][YP]
  Buffer<double> shared_residual_;  // [n_distinct][YP] sums of the rows of the same token
  Buffer<double> frequent_sums_;    // [n_segments][n_frequent][YP]
  Buffer<double> pair_marginals_;   // [rows][Y][YP] with edge attributes
  Buffer<double> pair_sums_;        // [n_chunks][n_ngrams]
  std::vector<double> pair_total_;  // [n_ngrams]

  // Curvature.
  bool keeps_ = false, propagate_ = false;  // gradients cache what products need; products in the log domain
  bool squared_ = false;                    // squares of the values are computed
  bool pinned_ = false;                     // the cache belongs to the last point
  std::vector<int64_t> kept_offset_;        // [n_sequences]
  std::vector<uint8_t> kept_filled_;        // [n_sequences]
  int64_t kept_size_ = 0;                   // numbers in all blocks
  Buffer<double> kept_values_;
  Kept kept_;
  std::unique_ptr<PreparedWeights> pinned_weights_, tangent_weights_;
  std::vector<double> expected_pairs_;  // [n_ngrams] at the pinned point, by the table that a position uses
  Buffer<double> ER_, ERT_;             // like E and ET of Prepared
  TurnedPairs turned_;                  // the same of sparse pairs
  Face face_;
};

}  // namespace crfit
