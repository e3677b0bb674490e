// A run of whole sequences that one task reads: the output of the parsers of all formats.
//
// Each chunk numbers its own strings, positions and lines; reader.cpp joins the chunks in text order. Alphabets number
// strings in order of first appearance, so the result is the same as that of a sequential reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/alphabet.hpp"
#include "text/error.hpp"
#include "text/reader.hpp"

namespace crfit {

class Chunk {
 public:
  std::string_view text;
  int64_t text_id = 0;
  const Alphabet* known_attributes = nullptr;  // only look up, drop unknown attributes; null: number new ones
  const Alphabet* known_edges = nullptr;
  bool labelled = true;
  const Features* features = nullptr;  // of tokens; null: other attributes

  std::vector<int64_t> seq_ptr{0};       // [S + 1]
  std::vector<int64_t> attr_ptr{0};      // [N + 1]
  std::vector<int32_t> attr_ids;         // [attr_ptr[N]]
  std::vector<double> attr_values;       // as attr_ids, or empty: all 1
  std::vector<int32_t> labels;           // [N], -1: not known; or empty: unlabelled
  std::vector<int64_t> edge_ptr{0};      // [N + 1]
  std::vector<int32_t> edge_ids;         // [edge_ptr[N]]
  std::vector<double> sequence_weights;  // [S], or empty: all 1
  std::vector<int64_t> line_numbers;     // [N], counted from 1 at the start of the chunk
  Alphabet attribute_alphabet, label_alphabet, edge_alphabet;
  int64_t n_dropped = 0;  // occurrences of unknown attributes and edge attributes
  int64_t n_lines = 0;
  std::optional<TextError> error;

  void add_attribute(std::string_view name, double value = 1.0) { add_attribute(name, hash_bytes(name), value); }
  void add_attribute(std::string_view name, uint64_t hash, double value) {
    const int32_t id = number(name, hash, known_attributes, attribute_alphabet);
    if (id < 0) return;
    if (value != 1.0 && !with_values_) {
      attr_values.assign(attr_ids.size(), 1.0);
      with_values_ = true;
    }
    attr_ids.push_back(id);
    if (with_values_) attr_values.push_back(value);
  }
  // Those of position t.
  void add_attributes(Extractor& extractor, int64_t t) {
    extractor.make(t);
    for (const int32_t id : extractor.ids) {
      if (id >= 0) attr_ids.push_back(id);
      n_dropped += id < 0;
    }
  }
  // The extractor of its features.
  Extractor extractor() {
    if (known_attributes != nullptr) return {*features, *known_attributes};
    return {*features, attribute_alphabet, &attribute_alphabet};
  }
  void add_edge(std::string_view name) {
    const int32_t id = number(name, hash_bytes(name), known_edges, edge_alphabet);
    if (id >= 0) edge_ids.push_back(id);
  }
  void add_label(std::string_view name) {
    if (labelled) labels.push_back(label_alphabet.add(name));
  }
  void end_position(int64_t line) {
    attr_ptr.push_back(static_cast<int64_t>(attr_ids.size()));
    edge_ptr.push_back(static_cast<int64_t>(edge_ids.size()));
    line_numbers.push_back(line);
  }
  void end_sequence(double weight = 1.0) {
    if (weight != 1.0 && !with_weights_) {
      sequence_weights.assign(seq_ptr.size() - 1, 1.0);
      with_weights_ = true;
    }
    seq_ptr.push_back(static_cast<int64_t>(line_numbers.size()));
    if (with_weights_) sequence_weights.push_back(weight);
  }
  int64_t n_sequences() const { return static_cast<int64_t>(seq_ptr.size()) - 1; }
  int64_t n_positions() const { return static_cast<int64_t>(line_numbers.size()); }

 private:
  int32_t number(std::string_view name, uint64_t hash, const Alphabet* known, Alphabet& open) {
    if (known == nullptr) return open.add(name, hash);
    const int32_t id = known->find(name, hash);
    n_dropped += id < 0;
    return id;
  }
  bool with_values_ = false;  // needed because the vectors may be empty although they are in use
  bool with_weights_ = false;
};

// The parsers: all of chunk.text into the chunk. They throw TextError with a line counted from the start of the chunk.
// `templates` are null if the chunk has features; n_columns of every row, 0: any.
void parse_columns(Chunk& chunk, const Template* templates, int64_t n_columns);
void parse_crfsuite(Chunk& chunk);
void parse_jsonl(Chunk& chunk);

}  // namespace crfit
