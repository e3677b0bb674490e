// Converts texts in memory to flat arrays: split at sequence ends, parsed in parallel, joined in order.
//
// The result does not depend on the number of threads or chunks: ids follow the order of first appearance (sequence by
// sequence, position by position, template by template).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/alphabet.hpp"
#include "text/features.hpp"
#include "text/names.hpp"
#include "text/templates.hpp"

namespace crfit {

enum class Format { columns, crfsuite, jsonl };

struct ReadOptions {
  Format format = Format::columns;
  const Template* templates = nullptr;  // columns only, unless there are features
  const Features* features = nullptr;   // columns and jsonl: make the attributes from the tokens
  bool labelled = true;
  const Alphabet* attributes = nullptr;  // locked: others are dropped and counted; null: number new ones
  const Alphabet* edges = nullptr;       // the same for edge attributes
  const Alphabet* labels = nullptr;      // new ones get the next ids; null: start empty
  int n_threads = 0;                     // 0: all cores of this process
  int64_t n_columns = 0;                 // of rows before this text, which must all be the same; 0: not known
  std::vector<int64_t> lines_before;     // each text, in the file that it continues; or empty: none
};

// Sequences s = 0..S-1 with positions seq_ptr[s]..seq_ptr[s+1]-1; N positions in total.
struct ParsedText {
  std::vector<int64_t> seq_ptr;   // [S + 1]
  std::vector<int64_t> attr_ptr;  // [N + 1]
  std::vector<int32_t> attr_ids;
  std::vector<double> attr_values;  // as attr_ids, or empty: all 1
  std::vector<int32_t> labels;      // [N], -1: not known; or empty: unlabelled
  std::vector<int64_t> edge_ptr;    // [N + 1], or empty: no edge template
  std::vector<int32_t> edge_ids;
  std::vector<double> sequence_weights;  // [S], or empty: all 1
  std::vector<int64_t> line_numbers;     // [N], in the text the position comes from
  int64_t n_dropped = 0;
  Alphabet attribute_alphabet;  // empty when options.attributes is given
  Alphabet edge_alphabet;       // empty when options.edges is given
  Alphabet label_alphabet;      // starts with options.labels
};

// Throws TextError for the first bad line, or for a text without any sequence.
ParsedText read_texts(const std::vector<std::string_view>& texts, const ReadOptions& options);

// Sequences of tokens in memory. Position n has the cells n C .. n C + C - 1 for C columns.
struct Tokens {
  Names cells;
  std::vector<int64_t> seq_ptr{0};  // [S + 1]
};

// The attributes of tokens by options.features; line numbers are 0.
ParsedText read_tokens(const Tokens& tokens, const ReadOptions& options);

// counts[a] = number of positions t with a among ids[ptr[t]:ptr[t+1]]; repetitions at a position count once. Throws
// std::invalid_argument if an offset or an id is out of range.
std::vector<int64_t> count_positions(const int64_t* ptr, int64_t n_positions, const int32_t* ids, int64_t n_ids,
                                     int64_t n_attributes);

// Number of columns of the first non-blank row, or 0.
int64_t count_columns(std::string_view text);

}  // namespace crfit
