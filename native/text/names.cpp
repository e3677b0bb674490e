#include "text/names.hpp"

#include <algorithm>

#include "base/pool.hpp"

namespace crfit {
namespace {

constexpr std::size_t kChunkNames = std::size_t{1} << 15;  // names per parallel task, at least

// The names of a block in equal parts, one per thread. Larger parts need less merging.
class NameChunks {
 public:
  // 0 threads: all cores, determined only if there is enough work.
  NameChunks(std::size_t n_names, int n_threads) : n_names_(n_names) {
    if (n_threads != 1 && n_names >= 2 * kChunkNames) {
      n_threads_ = n_threads > 0 ? n_threads : available_threads();
      count = std::min<int64_t>(n_threads_, static_cast<int64_t>(n_names / kChunkNames));
    }
  }

  // Runs body(chunk, begin, end) for all chunks.
  template <class Body>
  void run(Body&& body) const {
    parallel_for(n_threads_, count, [&](int64_t c, int) { body(c, n_names_ * c / count, n_names_ * (c + 1) / count); });
  }

  int64_t count = 1;

 private:
  std::size_t n_names_;
  int n_threads_ = 1;
};

}  // namespace

void Names::sort_from(std::size_t first) {
  const std::size_t start = begin_of(first);
  // The views are into a copy, because the bytes are rewritten in sorted order.
  const std::string copy = bytes.substr(start);
  std::vector<std::string_view> views;
  views.reserve(size() - first);
  for (std::size_t i = first; i < size(); ++i)
    views.emplace_back(copy.data() + (begin_of(i) - start), ends[i] - begin_of(i));
  std::sort(views.begin(), views.end());
  bytes.resize(start);
  ends.resize(first);
  for (const std::string_view view : views) {
    bytes.append(view);
    close();
  }
}

void add_names(const Names& names, Alphabet& alphabet, int n_threads, int32_t* ids) {
  const NameChunks chunks(names.size(), n_threads);
  if (chunks.count == 1) {
    for (std::size_t i = 0; i < names.size(); ++i) ids[i] = alphabet.add(names[i]);
    return;
  }
  // Each thread numbers its own part, then the alphabets are merged in the order of the parts: ids follow the first
  // appearance in the whole block, as with one thread.
  std::vector<Alphabet> local(chunks.count);
  chunks.run([&](int64_t c, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) ids[i] = local[c].add(names[i]);
  });
  std::vector<std::vector<int32_t>> global_ids(chunks.count);  // [chunk][local id]
  for (int64_t c = 0; c < chunks.count; ++c) {
    global_ids[c].reserve(local[c].size());
    for (int64_t id = 0; id < local[c].size(); ++id) global_ids[c].push_back(alphabet.add(local[c][id]));
  }
  chunks.run([&](int64_t c, std::size_t begin, std::size_t end) {
    // local id -> id, in place
    for (std::size_t i = begin; i < end; ++i) ids[i] = global_ids[c][ids[i]];
  });
}

void find_names(const Names& names, const Alphabet& alphabet, int n_threads, int32_t* ids) {
  NameChunks(names.size(), n_threads).run([&](int64_t, std::size_t begin, std::size_t end) {
    alphabet.find_all(end - begin, [&](std::size_t i) { return names[begin + i]; }, ids + begin);
  });
}

}  // namespace crfit
