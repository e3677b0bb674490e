// Hessian products for some of the weights, the face of an orthant in which a Newton step with l1 moves.
//
// With v = 0 outside the face, node scores along v read only attributes that have a weight there, and only their
// residual rows are summed. Rare attributes are most of what is left out: their weights and their occurrences are each
// in another cache line. A pair of labels whose weight is off the face has weight 0 (w is 0 there too) and does not
// change along v, so it need not be listed (SparsePairs). All lists keep their order, so that sums do not depend on the
// number of threads.
#include <algorithm>
#include <numeric>

#include "base/pool.hpp"
#include "batch/batch.hpp"
#include "lattice/select.hpp"

namespace crfit {

namespace {
constexpr int64_t kPart = 4096;  // attributes per task
// Largest share of the occurrences on a face for which they are selected, which costs 0.3 to 0.6 of a product. Measured
// with 12 to 19 attributes per position: up to here 1 to 2.4 products save that much; with a share of 0.92, 11 to 17.
constexpr double kWorthwhile = 0.8;
}  // namespace

void Batch::forget_curvature() {
  pinned_ = face_.active = false;
  face_.listed.reset();
}

void Batch::restrict_products(const uint8_t* weights) {
  face_.active = false;
  face_.listed.reset();
  if (weights == nullptr) return;
  int64_t last = now();
  face_pairs(weights);
  if (find_face(weights)) {
    face_scores(weights);
    face_.sums.resize(rounds_.size());
    for (std::size_t r = 0; r < rounds_.size(); ++r) face_sums(rounds_[r], face_.sums[r]);
    face_.active = true;
  }
  seconds_.scores += lap(last);
}

// Sets: which attributes have a weight on the face. Returns whether they occur seldom enough.
bool Batch::find_face(const uint8_t* weights) {
  const int64_t A = layout_.n_attributes, Y = layout_.n_labels;
  const int64_t* ptr = layout_.state_ptr;
  face_.attributes.resize(static_cast<std::size_t>(A));
  std::vector<int64_t> read(static_cast<std::size_t>((A + kPart - 1) / kPart), 0), all(read);  // occurrences
  parallel_for(n_threads_, static_cast<int64_t>(read.size()), [&](int64_t part, int) {
    for (int64_t a = part * kPart; a < std::min(A, (part + 1) * kPart); ++a) {
      const uint8_t *first = weights + (ptr == nullptr ? a * Y : ptr[a]),
                    *end = weights + (ptr == nullptr ? a * Y + Y : ptr[a + 1]);
      face_.attributes[a] = std::any_of(first, end, [](uint8_t on) { return on != 0; });
      all[part] += counts_[a];
      if (face_.attributes[a] != 0) read[part] += counts_[a];
    }
  });
  const double share = kWorthwhile * static_cast<double>(std::accumulate(all.begin(), all.end(), int64_t{0}));
  if (static_cast<double>(std::accumulate(read.begin(), read.end(), int64_t{0})) > share) return false;
  face_.frequent.clear();
  face_.slot_of.clear();
  for (const int32_t a : frequent_) {
    face_.slot_of.push_back(face_.attributes[a] != 0 ? static_cast<int32_t>(face_.frequent.size()) : -1);
    if (face_.attributes[a] != 0) face_.frequent.push_back(a);
  }
  return true;
}

// What node scores along a direction read.
void Batch::face_scores(const uint8_t* weights) {
  if (face_.step == nullptr) face_.step = prepare(false);
  face_.data = data_;
  face_.sources = sources_;
  if (layout_.state_ptr != nullptr) {
    const std::vector<int32_t>& row_of = face_.step->choose_rows(face_.attributes.data());
    face_.tokens.select(tokens_.index(), sources_.n_positions, row_of.data(), weights, n_threads_);
    face_.step->use_index(&face_.tokens.index());
    return;
  }
  const bool valued = sources_.attr_values != nullptr;
  select_entries(
      n_threads_, sources_.n_positions, sources_.attr_ptr, face_.attr_ptr,
      [&](int64_t k) {
        const int64_t a = sources_.attr_ids[k];
        return a < layout_.n_attributes && face_.attributes[a] != 0;
      },
      [&](std::size_t n) {
        face_.attr_ids.resize(n);
        if (valued) face_.attr_values.resize(n);
      },
      [&](int64_t k, int64_t at) {
        face_.attr_ids[at] = sources_.attr_ids[k];
        if (valued) face_.attr_values[at] = sources_.attr_values[k];
      });
  face_.sources.attr_ptr = face_.attr_ptr.data();
  face_.sources.attr_ids = face_.attr_ids.data();
  face_.sources.attr_values = valued ? face_.attr_values.data() : nullptr;
  // With shared scores the attributes of the data itself are not read.
  if (shared_ == nullptr) face_.data = face_.sources;
}

// Which residual rows of a round are summed: frequent attributes with new numbers, the others as a list.
void Batch::face_sums(const Round& round, Sums& sums) const {
  const bool one_round = rounds_.size() == 1, valued = sources_.attr_values != nullptr;
  std::vector<int64_t> begin;  // of the occurrences of each of sums.attributes, in the round
  sums.attributes.clear();
  sums.occ_ptr.assign(1, 0);
  for (std::size_t e = 0; e + 1 < round.occ_ptr.size(); ++e) {
    const int32_t a = one_round ? static_cast<int32_t>(e) : round.attributes[e];
    const int64_t count = round.occ_ptr[e + 1] - round.occ_ptr[e];
    if (count == 0 || face_.attributes[a] == 0) continue;
    begin.push_back(round.occ_ptr[e]);
    sums.attributes.push_back(a);
    sums.occ_ptr.push_back(sums.occ_ptr.back() + count);
  }
  sums.occ_at.resize(static_cast<std::size_t>(sums.occ_ptr.back()));
  if (valued) sums.occ_values.resize(sums.occ_at.size());
  index_tasks(sums);
  parallel_for(n_threads_, static_cast<int64_t>(sums.task_ptr.size()) - 1, [&](int64_t task, int) {
    for (int64_t e = sums.task_ptr[task]; e < sums.task_ptr[task + 1]; ++e) {
      const int64_t at = sums.occ_ptr[e], n = sums.occ_ptr[e + 1] - at;
      std::copy_n(round.occ_at.data() + begin[e], n, sums.occ_at.data() + at);
      if (valued) std::copy_n(round.occ_values.data() + begin[e], n, sums.occ_values.data() + at);
    }
  });
  select_entries(
      n_threads_, round.n_rows, round.slot_ptr.data(), sums.slot_ptr,
      [&](int64_t k) { return face_.slot_of[round.slots[k]] >= 0; },
      [&](std::size_t n) {
        sums.slots.resize(n);
        if (valued) sums.slot_values.resize(n);
      },
      [&](int64_t k, int64_t at) {
        sums.slots[at] = face_.slot_of[round.slots[k]];
        if (valued) sums.slot_values[at] = round.slot_values[k];
      });
}

// With a weight for every pair, lists those on the face if they are few. Single sequences gain from still fewer.
void Batch::face_pairs(const uint8_t* weights) {
  const NgramBlock& block = layout_.ngrams[0];
  if (layout_.order > 1 || block.codes != nullptr || layout_.may_follow != nullptr || !side_by_side()) return;
  face_.pairs.assign(weights + block.offset, weights + block.offset + block.n);
  const double n = static_cast<double>(block.n - std::count(face_.pairs.begin(), face_.pairs.end(), uint8_t{0}));
  if (n > PairOptions::kLanes * static_cast<double>(block.n)) return;
  face_.listed = std::make_unique<NgramTables>(layout_, PairOptions{PairOptions::kLanes, true, face_.pairs.data()});
}

}  // namespace crfit
