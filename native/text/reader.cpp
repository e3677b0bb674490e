#include "text/reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/checks.hpp"
#include "base/pool.hpp"
#include "text/chunk.hpp"
#include "text/lines.hpp"

namespace crfit {
namespace {

// Smaller chunks would cost more to join than they save.
constexpr std::size_t min_chunk_bytes = 1 << 16;

// Tokens of a task, at least.
constexpr int64_t kChunkTokens = 1 << 10;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// The first offset at or after `from` where a new sequence starts.
std::size_t next_sequence(std::string_view text, std::size_t from, Format format) {
  const std::size_t line_end = text.find('\n', from);
  if (line_end == std::string_view::npos) return text.size();
  // In JSON lines each line is a sequence; in the other formats a blank line ends one.
  if (format == Format::jsonl) return line_end + 1;
  Lines lines(text.substr(line_end + 1));
  std::string_view line;
  while (lines.next(line))
    if (is_blank(line)) return text.size() - lines.rest().size();
  return text.size();
}

// Cuts the texts into chunks of whole sequences, about one per thread.
std::vector<Chunk> cut(const std::vector<std::string_view>& texts, const ReadOptions& options, int n_threads) {
  std::size_t n_bytes = 0;
  for (std::string_view text : texts) n_bytes += text.size();
  const std::size_t step = std::max(min_chunk_bytes, n_bytes / static_cast<std::size_t>(n_threads) + 1);
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string_view text = texts[i];
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    do {  // also once for an empty text, so each text has a chunk
      const std::size_t n = text.size() <= step ? text.size() : next_sequence(text, step, options.format);
      Chunk& chunk = chunks.emplace_back();
      chunk.text = text.substr(0, n);
      chunk.text_id = static_cast<int64_t>(i);
      chunk.known_attributes = options.attributes;
      chunk.known_edges = options.edges;
      chunk.labelled = options.labelled;
      chunk.features = options.features;
      text.remove_prefix(n);
    } while (!text.empty());
  }
  return chunks;
}

// Lines of the file before the text of a chunk.
int64_t first_line(const Chunk& chunk, const ReadOptions& options) {
  return options.lines_before.empty() ? 0 : options.lines_before[static_cast<std::size_t>(chunk.text_id)];
}

// Throws the error of the first bad chunk, with its line in the whole text, or an error for a text without sequences.
void check(std::vector<Chunk>& chunks, const ReadOptions& options) {
  int64_t lines_before = 0, n_sequences = 0;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Chunk& chunk = chunks[c];
    if (c == 0 || chunk.text_id != chunks[c - 1].text_id) lines_before = first_line(chunk, options);
    if (chunk.error) throw TextError(chunk.error->what(), lines_before + chunk.error->line, chunk.text_id);
    lines_before += chunk.n_lines;
    n_sequences += chunk.n_sequences();
    if (c + 1 < chunks.size() && chunks[c + 1].text_id == chunk.text_id) continue;
    if (n_sequences == 0)
      throw TextError("the file is empty or has only blank lines: give a file with data", 0, chunk.text_id);
    n_sequences = 0;
  }
}

using Renumbering = std::vector<int32_t>;  // id in the chunk -> id in the whole

// Adds the chunk's strings to the whole alphabet. The first chunk's alphabet is used unchanged.
Renumbering merge(Alphabet& part, Alphabet& whole) {
  Renumbering renumbering(static_cast<std::size_t>(part.size()));
  if (whole.size() == 0) {
    std::swap(part, whole);
    for (std::size_t i = 0; i < renumbering.size(); ++i) renumbering[i] = static_cast<int32_t>(i);
    return renumbering;
  }
  // Chunk by chunk, in the order of the text: ids follow first appearance, as with one thread.
  for (std::size_t i = 0; i < renumbering.size(); ++i) renumbering[i] = whole.add(part[static_cast<int64_t>(i)]);
  return renumbering;
}

// Offsets of a chunk's items in the whole arrays.
struct Place {
  int64_t sequence = 0, position = 0, attribute = 0, edge = 0, line = 0;
  Renumbering attributes, labels, edges;
};

void place_ids(const std::vector<int32_t>& ids, const Renumbering* renumbering, int32_t* out) {
  if (renumbering == nullptr) {
    std::copy(ids.begin(), ids.end(), out);
  } else {
    const Renumbering& new_id = *renumbering;
    std::transform(ids.begin(), ids.end(), out, [&](int32_t id) {
      return id < 0 ? id : new_id[static_cast<std::size_t>(id)];  // -1: a label that is not known
    });
  }
}

void place_offsets(const std::vector<int64_t>& offsets, int64_t base, int64_t* out) {  // all but the leading 0
  std::transform(offsets.begin() + 1, offsets.end(), out, [&](int64_t offset) { return base + offset; });
}

void place_numbers(const std::vector<double>& numbers, std::size_t n, double* out) {
  if (numbers.empty()) {
    std::fill_n(out, n, 1.0);
  } else {
    std::copy(numbers.begin(), numbers.end(), out);
  }
}

ParsedText join(std::vector<Chunk>& chunks, const ReadOptions& options, int n_threads) {
  ParsedText all;
  if (options.labels != nullptr) all.label_alphabet = *options.labels;
  // First sizes and alphabets, chunk by chunk; then all arrays are filled in parallel, each chunk at its offset.
  std::vector<Place> places(chunks.size());
  Place end;
  bool with_values = false, with_weights = false;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    Chunk& chunk = chunks[c];
    if (c == 0 || chunk.text_id != chunks[c - 1].text_id) end.line = first_line(chunk, options);
    places[c] = end;
    if (options.attributes == nullptr) places[c].attributes = merge(chunk.attribute_alphabet, all.attribute_alphabet);
    if (options.edges == nullptr) places[c].edges = merge(chunk.edge_alphabet, all.edge_alphabet);
    places[c].labels = merge(chunk.label_alphabet, all.label_alphabet);
    with_values |= !chunk.attr_values.empty();
    with_weights |= !chunk.sequence_weights.empty();
    end.sequence += chunk.n_sequences();
    end.position += chunk.n_positions();
    end.attribute += static_cast<int64_t>(chunk.attr_ids.size());
    end.edge += static_cast<int64_t>(chunk.edge_ids.size());
    end.line += chunk.n_lines;
    all.n_dropped += chunk.n_dropped;
  }
  const bool with_edges =
      options.features == nullptr && options.templates != nullptr && !options.templates->edges().empty();
  const auto n_sequences = static_cast<std::size_t>(end.sequence), n_positions = static_cast<std::size_t>(end.position);
  all.seq_ptr.resize(n_sequences + 1);
  all.attr_ptr.resize(n_positions + 1);
  all.line_numbers.resize(n_positions);
  all.attr_ids.resize(static_cast<std::size_t>(end.attribute));
  if (with_values) all.attr_values.resize(all.attr_ids.size());
  if (options.labelled) all.labels.resize(n_positions);
  if (with_edges) all.edge_ptr.resize(n_positions + 1);
  all.edge_ids.resize(static_cast<std::size_t>(end.edge));
  if (with_weights) all.sequence_weights.resize(n_sequences);
  parallel_for(n_threads, static_cast<int64_t>(chunks.size()), [&](int64_t c, int) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(c)];
    const Place& at = places[static_cast<std::size_t>(c)];
    place_offsets(chunk.seq_ptr, at.position, all.seq_ptr.data() + at.sequence + 1);
    place_offsets(chunk.attr_ptr, at.attribute, all.attr_ptr.data() + at.position + 1);
    place_ids(chunk.attr_ids, options.attributes ? nullptr : &at.attributes, all.attr_ids.data() + at.attribute);
    if (with_values) place_numbers(chunk.attr_values, chunk.attr_ids.size(), all.attr_values.data() + at.attribute);
    if (options.labelled) place_ids(chunk.labels, &at.labels, all.labels.data() + at.position);
    if (with_edges) place_offsets(chunk.edge_ptr, at.edge, all.edge_ptr.data() + at.position + 1);
    place_ids(chunk.edge_ids, options.edges ? nullptr : &at.edges, all.edge_ids.data() + at.edge);
    if (with_weights)
      place_numbers(chunk.sequence_weights, static_cast<std::size_t>(chunk.n_sequences()),
                    all.sequence_weights.data() + at.sequence);
    std::transform(chunk.line_numbers.begin(), chunk.line_numbers.end(), all.line_numbers.data() + at.position,
                   [&](int64_t line) { return line + at.line; });
  });
  return all;
}

}  // namespace

ParsedText read_texts(const std::vector<std::string_view>& texts, const ReadOptions& options) {
  const int n_threads = options.n_threads > 0 ? options.n_threads : available_threads();
  std::vector<Chunk> chunks = cut(texts, options, n_threads);
  // The first row defines the number of columns; unlabelled rows, and all rows in Wapiti's dialect, may have any number
  // of extra columns.
  int64_t n_columns = 0;
  if (options.format == Format::columns && options.labelled &&
      (options.features != nullptr || options.templates->dialect() == Dialect::crfpp)) {
    n_columns = options.n_columns;
    for (std::size_t c = 0; c < chunks.size() && n_columns == 0; ++c) n_columns = count_columns(chunks[c].text);
  }
  parallel_for(n_threads, static_cast<int64_t>(chunks.size()), [&](int64_t c, int) {
    Chunk& chunk = chunks[static_cast<std::size_t>(c)];
    try {
      switch (options.format) {
        case Format::columns: parse_columns(chunk, options.templates, n_columns); break;
        case Format::crfsuite: parse_crfsuite(chunk); break;
        case Format::jsonl: parse_jsonl(chunk); break;
      }
    } catch (const TextError& error) {
      chunk.error = error;  // stored, so the reported error is the first in the text, not the first in time
    }
  });
  check(chunks, options);
  return join(chunks, options, n_threads);
}

ParsedText read_tokens(const Tokens& tokens, const ReadOptions& options) {
  const int n_threads = options.n_threads > 0 ? options.n_threads : available_threads();
  const auto n_columns = static_cast<std::size_t>(options.features->n_columns());
  const std::vector<int64_t>& ptr = tokens.seq_ptr;
  const int64_t n_sequences = static_cast<int64_t>(ptr.size()) - 1;
  // One chunk per thread: each reads frequent tokens itself, and its new attributes are merged.
  const int64_t n_chunks = std::clamp<int64_t>(ptr.back() / kChunkTokens, 1, n_threads);
  std::vector<Chunk> chunks(static_cast<std::size_t>(n_chunks));
  parallel_for(n_threads, n_chunks, [&](int64_t c, int) {
    Chunk& chunk = chunks[static_cast<std::size_t>(c)];
    chunk.known_attributes = options.attributes;
    chunk.labelled = false;
    chunk.features = options.features;
    Extractor extractor = chunk.extractor();
    std::vector<std::string_view> cells;
    // Sequences that begin in this part of the tokens.
    const auto first = [&](int64_t part) {
      const int64_t token = ptr.back() * part / n_chunks;
      return part == n_chunks ? n_sequences : std::lower_bound(ptr.begin(), ptr.end() - 1, token) - ptr.begin();
    };
    for (int64_t s = first(c); s < first(c + 1); ++s) {
      const auto begin = static_cast<std::size_t>(ptr[s]), end = static_cast<std::size_t>(ptr[s + 1]);
      cells.clear();
      for (std::size_t k = begin * n_columns; k < end * n_columns; ++k) cells.push_back(tokens.cells[k]);
      const int64_t n_rows = ptr[s + 1] - ptr[s];
      extractor.begin(Cells{cells.data(), n_rows, static_cast<int64_t>(n_columns)});
      for (int64_t t = 0; t < n_rows; ++t) {
        chunk.add_attributes(extractor, t);
        chunk.end_position(0);
      }
      chunk.end_sequence();
    }
  });
  return join(chunks, options, n_threads);
}

std::vector<int64_t> count_positions(const int64_t* ptr, int64_t n_positions, const int32_t* ids, int64_t n_ids,
                                     int64_t n_attributes) {
  const auto n = static_cast<std::size_t>(n_attributes);
  std::vector<int64_t> counts(n, 0), last(n, -1);  // last: latest position seen with the attribute
  for (int64_t t = 0; t < n_positions; ++t) {
    require(ptr[t] >= 0 && ptr[t + 1] <= n_ids, "ptr out of range");
    for (int64_t k = ptr[t]; k < ptr[t + 1]; ++k) {
      require(ids[k] >= 0 && ids[k] < n_attributes, "id out of range");
      if (std::exchange(last[ids[k]], t) != t) ++counts[ids[k]];
    }
  }
  return counts;
}

}  // namespace crfit
