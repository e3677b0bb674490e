// Column files as in CRF++: one position per line, columns separated by any run of spaces and TABs, a blank line after
// each sequence. In labelled text the last column is the label.
//
// More tolerant than CRF++: CRLF line ends, lines of any length, leading white space, a last line without LF.
#include <algorithm>
#include <optional>
#include <string>

#include "text/chunk.hpp"
#include "text/lines.hpp"
#include "text/templates.hpp"

namespace crfit {
namespace {

// Calls give(column, cell) for each cell of the row; returns their number.
template <class Give>
int64_t split(std::string_view row, Give give) {
  const char* p = row.data();
  const char* const end = p + row.size();
  for (int64_t column = 0;; ++column) {
    while (p < end && is_space(*p)) ++p;
    if (p == end) return column;
    const char* const begin = p;
    while (p < end && !is_space(*p)) ++p;
    give(column, std::string_view(begin, static_cast<std::size_t>(p - begin)));
  }
}

std::string count_of(int64_t n) { return std::to_string(n) + (n == 1 ? " column" : " columns"); }

// The rows of the current sequence: only the cells that templates can refer to.
class Rows {
 public:
  Rows(const Template* templates, Chunk& chunk)
      : templates_(templates), n_columns_(chunk.features ? chunk.features->n_columns() : templates->n_columns()) {
    if (chunk.features != nullptr) extractor_.emplace(chunk.extractor());
  }

  void add(std::string_view line, int64_t line_number, int64_t n_expected, bool labelled) {
    cells_.resize(cells_.size() + static_cast<std::size_t>(n_columns_));
    std::string_view* const row = cells_.data() + cells_.size() - n_columns_;
    std::string_view last;
    const int64_t n_found = split(line, [&](int64_t column, std::string_view cell) {
      if (column < n_columns_) row[column] = cell;
      last = cell;
    });
    if (n_expected > 0 && n_found != n_expected)
      throw TextError(count_of(n_found) + " where the first row has " + std::to_string(n_expected) +
                          ": every row needs the same columns, the label being the last; files of CRFsuite attributes "
                          "need the input format crfsuite",
                      line_number);
    if (n_found - labelled < n_columns_)
      throw TextError(count_of(n_found) + (labelled ? ", of which the last is the label," : "") + " but the " +
                          (extractor_ ? "features use" : "template uses") + " column " +
                          std::to_string(n_columns_ - 1) + " (counted from 0): add the missing columns or change the " +
                          (extractor_ ? "features" : "template"),
                      line_number);
    labels_.push_back(last);
    lines_.push_back(line_number);
  }

  bool empty() const { return lines_.empty(); }

  void give_to(Chunk& chunk) {
    const Cells cells{cells_.data(), static_cast<int64_t>(lines_.size()), n_columns_};
    if (extractor_) extractor_->begin(cells);
    for (int64_t t = 0; t < cells.n_rows; ++t) {
      if (extractor_) {
        chunk.add_attributes(*extractor_, t);
      } else {
        add_attributes(chunk, *templates_, cells, t);
        if (t > 0) add_edges(chunk, *templates_, cells, t);
      }
      chunk.add_label(labels_[t]);
      chunk.end_position(lines_[t]);
    }
    chunk.end_sequence();
    cells_.clear();
    labels_.clear();
    lines_.clear();
  }

 private:
  // All attributes of a position are written and hashed before any is looked up, so the memory for the look-ups is
  // prefetched meanwhile; this saves about a third of the reading time.
  void add_attributes(Chunk& chunk, const Template& templates, const Cells& cells, int64_t t) {
    const Alphabet& alphabet = chunk.known_attributes ? *chunk.known_attributes : chunk.attribute_alphabet;
    written_.clear();
    staged_.clear();
    for (const Pattern& pattern : templates.attributes()) {
      const std::size_t begin = written_.size();
      pattern.expand(cells, t, written_);
      const uint64_t hash = hash_bytes(std::string_view(written_).substr(begin));
      alphabet.prefetch(hash);
      staged_.push_back({hash, begin, written_.size() - begin});
    }
    for (const Staged& name : staged_) alphabet.prefetch_string(name.hash);
    for (const Staged& name : staged_)
      chunk.add_attribute(std::string_view(written_).substr(name.begin, name.size), name.hash, 1.0);
  }

  void add_edges(Chunk& chunk, const Template& templates, const Cells& cells, int64_t t) {
    for (const Pattern& pattern : templates.edges()) {
      written_.clear();
      pattern.expand(cells, t, written_);
      chunk.add_edge(written_);
    }
  }

  struct Staged {
    uint64_t hash;
    std::size_t begin, size;  // in written_
  };
  const Template* templates_;
  std::optional<Extractor> extractor_;
  int64_t n_columns_;
  std::vector<std::string_view> cells_;   // [rows][n_columns]
  std::vector<std::string_view> labels_;  // last cell of each row
  std::vector<int64_t> lines_;
  std::string written_;  // concatenated strings of the current position
  std::vector<Staged> staged_;
};

}  // namespace

int64_t count_columns(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  while (lines.next(line))
    if (!is_blank(line)) return split(line, [](int64_t, std::string_view) {});
  return 0;
}

void parse_columns(Chunk& chunk, const Template* templates, int64_t n_columns) {
  Rows rows(templates, chunk);
  Lines lines(chunk.text);
  std::string_view line;
  while (lines.next(line)) {
    if (!is_blank(line)) {
      rows.add(line, lines.number(), n_columns, chunk.labelled);
    } else if (!rows.empty()) {
      rows.give_to(chunk);
    }
  }
  if (!rows.empty()) rows.give_to(chunk);
  chunk.n_lines = lines.number();
}

}  // namespace crfit
