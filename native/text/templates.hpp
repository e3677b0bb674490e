// Templates: how to build attribute strings from the columns around a position, in two dialects.
//
// CRF++
//
//   U02:%x[0,0]            attribute of the position: every %x[row,column] is replaced by the cell `row` rows
//   U05:%x[-1,0]/%x[0,0]   away, in the given column
//   B                      the plain transitions (one weight per pair of labels), no attribute
//   B1:%x[0,1]             edge attribute, from the second position on: one weight per pair of labels and string
//
// The whole line, including the identifier, is expanded. Cells before the sequence read _B-1, _B-2, ... and after it
// _B+1, _B+2, ...; the number is the distance to the sequence. Blank lines and lines that begin with # are skipped.
//
// Wapiti
//
//   u:%x[-1,0]/%X[0,0]     attribute; an upper-case command lower-cases what it gives
//   b                      as B; *... is both an attribute and an edge attribute, or the plain transitions
//   u:%t[0,0,"^\u"]        true or false: does the regular expression match?
//   u:%m[0,0,"\d*$"]       the text that it matches
//   u:%x[@1,0]%x[@-1,0]    cells of the first and of the last position
//
// The kind is lower-cased, and # begins a comment anywhere in a line. Rows may have a plus sign and are read as C does:
// 010 is 8, 0x10 is 16. Cells outside the sequence read _x-1 to _x-4, then _x-#, and _x+1 to _x+4, then _x+#.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/expression.hpp"

namespace crfit {

enum class Dialect { crfpp, wapiti };

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
  Pattern(std::string_view text, int64_t line, Dialect dialect);

  // Appends the string at position t to `out`.
  void expand(const Cells& cells, int64_t t, std::string& out) const;

  int64_t n_columns() const { return n_columns_; }  // 1 + highest column referred to
  bool has_references() const { return n_columns_ > 0; }

 private:
  enum class Command : uint8_t { cell, test, match };
  struct Piece {
    std::string literal;
    int32_t row = 0;
    int32_t column = -1;  // of the cell that follows the literal; -1: none
    Command command = Command::cell;
    bool lower = false;       // lower-case the result
    bool absolute = false;    // row 1 is the first position, -1 the last
    int32_t expression = -1;  // index in expressions_, for test and match
  };
  std::string_view parse_crfpp(std::string_view text, int64_t line, Piece& piece);
  std::string_view parse_wapiti(std::string_view text, int64_t line, Piece& piece);

  std::vector<Piece> pieces_;
  std::vector<Expression> expressions_;
  Dialect dialect_;
  int64_t n_columns_ = 0;
};

class Template {
 public:
  Template(std::string_view text, Dialect dialect);  // throws TextError

  Dialect dialect() const { return dialect_; }

  const std::vector<Pattern>& attributes() const { return attributes_; }
  const std::vector<Pattern>& edges() const { return edges_; }
  bool plain_transitions() const { return plain_transitions_; }
  int64_t n_columns() const { return n_columns_; }  // columns that a row needs, without the label

 private:
  void parse_crfpp(std::string_view text);
  void parse_wapiti(std::string_view text);

  std::vector<Pattern> attributes_;
  std::vector<Pattern> edges_;
  Dialect dialect_;
  bool plain_transitions_ = false;  // is there a B line without %x?
  int64_t n_columns_ = 0;
};

}  // namespace crfit
