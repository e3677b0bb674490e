#include "text/templates.hpp"

#include <algorithm>
#include <charconv>

#include "text/error.hpp"
#include "text/lines.hpp"

namespace crfit {
namespace {

constexpr int32_t max_row = 999;         // CRF++ stops at 8; we continue its naming
constexpr int32_t max_column = 999'999;  // prevents a typo from allocating gigabytes of cells

// Reads an integer at the front of `text` and removes it; false without an integer or if it exceeds `limit`.
bool take_integer(std::string_view& text, int32_t limit, int32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value > limit || value < -limit) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

Pattern::Pattern(std::string_view text, int64_t line) {
  const auto fail = [&](std::string_view rest, const char* remedy) {
    throw TextError("bad reference '" + excerpt(rest) + "' in a template: " + remedy, line);
  };
  for (;;) {
    Piece& piece = pieces_.emplace_back();
    // Literal text up to a reference, and the reference; the last piece may lack one (column -1).
    const std::size_t percent = std::min(text.find('%'), text.size());
    piece.literal = text.substr(0, percent);
    text.remove_prefix(percent);
    if (text.empty()) return;
    const std::string_view reference = text;
    if (!take(text, "%x[")) fail(reference, "write %x[row,column], for example %x[-1,0]");
    if (text.starts_with('+')) fail(reference, "a row after the current one has no plus sign, for example %x[1,0]");
    if (!take_integer(text, max_row, piece.row)) fail(reference, "the row is a whole number from -999 to 999");
    if (!take(text, ",")) fail(reference, "write %x[row,column], without spaces, for example %x[-1,0]");
    if (!take_integer(text, max_column, piece.column) || piece.column < 0)
      fail(reference, "the column is a whole number, counted from 0");
    if (!take(text, "]")) fail(reference, "the closing bracket is missing; write %x[row,column], for example %x[-1,0]");
    n_columns_ = std::max<int64_t>(n_columns_, piece.column + 1);
  }
}

void Pattern::expand(const Cells& cells, int64_t t, std::string& out) const {
  for (const Piece& piece : pieces_) {
    out += piece.literal;
    if (piece.column < 0) continue;
    const int64_t row = t + piece.row;
    if (row >= 0 && row < cells.n_rows) {
      out += cells.cells[row * cells.n_columns + piece.column];
    } else {
      // Beyond the ends, as in CRF++: _B-1, _B-2, .. before and _B+1, _B+2, .. after the sequence.
      out += row < 0 ? "_B-" : "_B+";
      out += std::to_string(row < 0 ? -row : row - cells.n_rows + 1);
    }
  }
}

Template::Template(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    if (is_blank(line) || line.front() == '#') continue;
    if (line.front() != 'U' && line.front() != 'B')
      throw TextError("a template begins with U (attributes) or B (pairs of labels), not with '" + excerpt(line) +
                          "'; comments begin with #",
                      lines.number());
    Pattern pattern(line, lines.number());
    n_columns_ = std::max(n_columns_, pattern.n_columns());
    if (line.front() == 'U') {
      attributes_.push_back(std::move(pattern));
      // The first "B" line without a reference enables transitions; a second one is an edge attribute of every
      // position.
    } else if (!pattern.has_references() && !plain_transitions_) {
      plain_transitions_ = true;
    } else {
      edges_.push_back(std::move(pattern));
    }
  }
  if (attributes_.empty() && edges_.empty() && !plain_transitions_)
    throw TextError("no template in the file; a line such as U00:%x[0,0] makes one", 0);
}

}  // namespace crfit
