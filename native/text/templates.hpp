// CRF++ templates: how to build attribute strings from the columns around a position.
//
//   U02:%x[0,0]            attribute of the position: every %x[row,column] is replaced by the cell `row` rows
//   U05:%x[-1,0]/%x[0,0]   away, in the given column
//   B                      the plain transitions (one weight per pair of labels), no attribute
//   B1:%x[0,1]             edge attribute, from the second position on: one weight per pair of labels and string
//
// The whole line, including the identifier, is expanded. Cells before the sequence read _B-1, _B-2, ... and after it
// _B+1, _B+2, ...; the number is the distance to the sequence. Blank lines and lines that begin with # are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crfit {

// The cells of one sequence that templates can refer to.
struct Cells {
  const std::string_view* cells;  // [n_rows][n_columns]
  int64_t n_rows;
  int64_t n_columns;
};

// One template line.
class Pattern {
 public:
  // Throws TextError at `line` if the text is not a template.
  Pattern(std::string_view text, int64_t line);

  // Appends the string at position t to `out`.
  void expand(const Cells& cells, int64_t t, std::string& out) const;

  int64_t n_columns() const { return n_columns_; }  // 1 + highest column referred to
  bool has_references() const { return n_columns_ > 0; }

 private:
  struct Piece {
    std::string literal;
    int32_t row = 0;
    int32_t column = -1;  // of the cell that follows the literal; -1: none
  };
  std::vector<Piece> pieces_;
  int64_t n_columns_ = 0;
};

class Template {
 public:
  explicit Template(std::string_view text);  // throws TextError

  const std::vector<Pattern>& attributes() const { return attributes_; }
  const std::vector<Pattern>& edges() const { return edges_; }
  bool plain_transitions() const { return plain_transitions_; }
  int64_t n_columns() const { return n_columns_; }  // columns that a row needs, without the label

 private:
  std::vector<Pattern> attributes_;
  std::vector<Pattern> edges_;
  bool plain_transitions_ = false;  // is there a B line without %x?
  int64_t n_columns_ = 0;
};

}  // namespace crfit
