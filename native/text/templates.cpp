#include "text/templates.hpp"

#include <algorithm>
#include <charconv>

#include "text/error.hpp"
#include "text/lines.hpp"

namespace crfit {
namespace {

constexpr int32_t max_row = 999;            // CRF++ stops at 8; we continue its naming
constexpr int32_t max_c_row = 999'999'999;  // of Wapiti's patterns, which have no limit
constexpr std::string_view c_space = " \t\v\f\r";
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

// Reads an integer as C's %i does: after white space, with a sign, octal after 0, hexadecimal after 0x.
bool take_c_integer(std::string_view& text, int32_t limit, int32_t& value) {
  text.remove_prefix(std::min(text.find_first_not_of(c_space), text.size()));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with('0')) {
    base = 8;
  }
  if (text.starts_with('-')) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || value > limit) return false;
  if (negative) value = -value;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// Name of a cell before (distance 1, 2, ..) or after the sequence.
std::string_view wapiti_name(bool before, int64_t distance) {
  static constexpr std::string_view before_names[] = {"_x-1", "_x-2", "_x-3", "_x-4", "_x-#"};
  static constexpr std::string_view after_names[] = {"_x+1", "_x+2", "_x+3", "_x+4", "_x+#"};
  const std::size_t place = distance > 4 ? 4 : static_cast<std::size_t>(distance - 1);
  return before ? before_names[place] : after_names[place];
}

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Pattern::Pattern(std::string_view text, int64_t line, Dialect dialect) : dialect_(dialect) {
  for (;;) {
    Piece& piece = pieces_.emplace_back();
    // Literal text up to a reference, and the reference; the last piece may lack one (column -1).
    const std::size_t percent = std::min(text.find('%'), text.size());
    piece.literal = text.substr(0, percent);
    text.remove_prefix(percent);
    if (text.empty()) return;
    text = dialect == Dialect::crfpp ? parse_crfpp(text, line, piece) : parse_wapiti(text, line, piece);
    n_columns_ = std::max<int64_t>(n_columns_, piece.column + 1);
  }
}

std::string_view Pattern::parse_crfpp(std::string_view text, int64_t line, Piece& piece) {
  const auto fail = [&, reference = text](const char* remedy) {
    throw TextError("bad reference '" + excerpt(reference) + "' in a template: " + remedy, line);
  };
  if (!take(text, "%x[")) fail("write %x[row,column], for example %x[-1,0]");
  if (text.starts_with('+')) fail("a row after the current one has no plus sign, for example %x[1,0]");
  if (!take_integer(text, max_row, piece.row)) fail("the row is a whole number from -999 to 999");
  if (!take(text, ",")) fail("write %x[row,column], without spaces, for example %x[-1,0]");
  if (!take_integer(text, max_column, piece.column) || piece.column < 0)
    fail("the column is a whole number, counted from 0");
  if (!take(text, "]")) fail("the closing bracket is missing; write %x[row,column], for example %x[-1,0]");
  return text;
}

std::string_view Pattern::parse_wapiti(std::string_view text, int64_t line, Piece& piece) {
  const auto fail = [&, reference = text](const char* remedy) {
    throw TextError("bad command '" + excerpt(reference) + "' in a pattern: " + remedy, line);
  };
  constexpr const char* form = "write %x[row,column], %t[row,column,\"expression\"] or %m[row,column,\"expression\"]";
  const char letter = text.size() > 1 ? to_lower(text[1]) : '\0';
  if (letter != 'x' && letter != 't' && letter != 'm') fail(form);
  piece.command = letter == 'x' ? Command::cell : letter == 't' ? Command::test : Command::match;
  piece.lower = text[1] != letter;
  text.remove_prefix(2);
  if (!take(text, "[")) fail(form);
  piece.absolute = take(text, "@");
  if (!take_c_integer(text, max_c_row, piece.row)) fail("the row is a whole number");
  if (!take(text, ",")) fail("a comma follows the row");
  text.remove_prefix(std::min(text.find_first_not_of(c_space), text.size()));
  if (!take_integer(text, max_column, piece.column) || piece.column < 0)
    fail("the column is a whole number, counted from 0");
  if (piece.command != Command::cell) {
    if (!take(text, ",\"")) fail("an expression in quotes follows the column");
    std::size_t end = 0;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) fail("the expression has no closing quote; # begins a comment, also within quotes");
    piece.expression = static_cast<int32_t>(expressions_.size());
    expressions_.emplace_back(text.substr(0, end), line);
    text.remove_prefix(end + 1);
  }
  if (!take(text, "]")) fail("the closing bracket is missing, or has a space before it");
  return text;
}

void Pattern::expand(const Cells& cells, int64_t t, std::string& out) const {
  for (const Piece& piece : pieces_) {
    out += piece.literal;
    if (piece.column < 0) continue;
    int64_t row = t + piece.row;
    if (piece.absolute) row = piece.row < 0 ? cells.n_rows + piece.row : piece.row - 1;
    const bool before = row < 0, inside = !before && row < cells.n_rows;
    const int64_t distance = before ? -row : row - cells.n_rows + 1;
    if (dialect_ == Dialect::crfpp) {
      if (inside) {
        out += cells.cells[row * cells.n_columns + piece.column];
      } else {
        out += before ? "_B-" : "_B+";
        out += std::to_string(distance);
      }
      continue;
    }
    std::string_view cell = inside ? cells.cells[row * cells.n_columns + piece.column] : wapiti_name(before, distance);
    bool cut = false;
    if (piece.command != Command::cell) {
      const Expression::Match match = expressions_[piece.expression].search(cell);
      if (piece.command == Command::test) {
        cell = match.begin < 0 ? "false" : "true";
      } else if (match.begin < 0) {
        cell = {};
      } else {
        // Wapiti's count can pass the end of the cell (see Expression). The NUL after it then ends the string.
        cell.remove_prefix(static_cast<std::size_t>(match.begin));
        cut = match.size > static_cast<int64_t>(cell.size());
        cell = cell.substr(0, static_cast<std::size_t>(match.size));
      }
    }
    const std::size_t begin = out.size();
    out += cell;
    if (piece.lower) std::transform(out.begin() + begin, out.end(), out.begin() + begin, to_lower);
    if (cut) return;
  }
}

Template::Template(std::string_view text, Dialect dialect) : dialect_(dialect) {
  dialect == Dialect::crfpp ? parse_crfpp(text) : parse_wapiti(text);
  for (const std::vector<Pattern>* patterns : {&attributes_, &edges_})
    for (const Pattern& pattern : *patterns) n_columns_ = std::max(n_columns_, pattern.n_columns());
  if (attributes_.empty() && edges_.empty() && !plain_transitions_)
    throw TextError("no template in the file; a line such as U00:%x[0,0] makes one", 0);
}

void Template::parse_crfpp(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    if (is_blank(line) || line.front() == '#') continue;
    if (line.front() != 'U' && line.front() != 'B')
      throw TextError("a template begins with U (attributes) or B (pairs of labels), not with '" + excerpt(line) +
                          "'; comments begin with #",
                      lines.number());
    Pattern pattern(line, lines.number(), dialect_);
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
}

void Template::parse_wapiti(std::string_view text) {
  Lines lines(text);
  std::string_view line;
  std::vector<std::string> edge_lines;
  while (lines.next(line)) {
    line = line.substr(0, line.find('#'));
    line = line.substr(0, line.find_last_not_of(c_space) + 1);
    if (line.empty()) continue;
    std::string own(line);
    own.front() = to_lower(own.front());
    const char kind = own.front();
    if (kind != 'u' && kind != 'b' && kind != '*')
      throw TextError("a pattern begins with u (attributes), b (pairs of labels) or * (both), not with '" +
                          excerpt(line) + "'; comments begin with #",
                      lines.number());
    Pattern pattern(own, lines.number(), dialect_);
    if (kind != 'b') attributes_.push_back(pattern);
    if (kind == 'u') continue;
    edges_.push_back(std::move(pattern));
    edge_lines.push_back(std::move(own));
  }
  // The first line without a command enables transitions. Equal lines make one string, which counts once for each of
  // them; such strings are edge attributes.
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i].has_references() || std::count(edge_lines.begin(), edge_lines.end(), edge_lines[i]) > 1) continue;
    plain_transitions_ = true;
    edges_.erase(edges_.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

}  // namespace crfit
