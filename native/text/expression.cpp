#include "text/expression.hpp"

#include <algorithm>
#include <string>

#include "text/error.hpp"

namespace crfit {
namespace {

constexpr std::size_t max_items = 1000;  // the time to search is proportional to items times bytes
constexpr int64_t max_size = 1LL << 40;  // counts are cut off here: far above any text, no overflow

bool is_lower(int c) { return c >= 'a' && c <= 'z'; }
bool is_upper(int c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(int c) { return c >= '0' && c <= '9'; }
bool is_word(int c) { return is_lower(c) || is_upper(c) || is_digit(c); }

// Is the byte in the class that the lower-case letter names?
bool in_class(char name, int c) {
  switch (name) {
    case 'a': return is_lower(c) || is_upper(c);
    case 'd': return is_digit(c);
    case 'l': return is_lower(c);
    case 'p': return c > ' ' && c < 127 && !is_word(c);
    case 's': return c == ' ' || (c >= '\t' && c <= '\r');
    case 'u': return is_upper(c);
    default: return is_word(c);
  }
}

// The bytes that an escaped character stands for.
std::bitset<256> escaped(char name) {
  const char lower = is_upper(name) ? static_cast<char>(name - 'A' + 'a') : name;
  std::bitset<256> bytes;
  if (std::string_view("adlpsuw").find(lower) == std::string_view::npos) {
    bytes.set(static_cast<unsigned char>(name));
    return bytes;
  }
  for (int c = 0; c < 256; ++c) bytes[c] = in_class(lower, c) == is_lower(name);
  return bytes;
}

// A cell of the table in search(): the size of the match, or, without one, -1 - n.
bool matched(int64_t cell) { return cell >= 0; }
int64_t count_of(int64_t cell) { return matched(cell) ? cell : -1 - cell; }
int64_t failure(int64_t n) { return -1 - std::min(n, max_size); }
int64_t longer(int64_t cell, int64_t n) {
  return matched(cell) ? std::min(cell + n, max_size) : failure(count_of(cell) + n);
}

}  // namespace

Expression::Expression(std::string_view text, int64_t line) {
  if (text.starts_with('^')) {
    at_begin_ = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const char c = text.front();
    if (c == '$' && text.size() == 1) {
      at_end_ = true;
      return;
    }
    if (c == '*' || c == '?')
      throw TextError(std::string("a regular expression in a pattern has a ") + c +
                          " with nothing to repeat before it: write \\" + c + " for the character itself",
                      line);
    if (items_.size() == max_items)
      throw TextError(
          "a regular expression in a pattern has more than " + std::to_string(max_items) + " characters: shorten it",
          line);
    Item& item = items_.emplace_back();
    const bool escape = c == '\\' && text.size() > 1;
    if (escape) {
      item.bytes = escaped(text[1]);
    } else if (c == '.') {
      item.bytes.set();
    } else {
      item.bytes.set(static_cast<unsigned char>(c));
    }
    text.remove_prefix(escape ? 2 : 1);
    if (text.starts_with('*')) item.repeat = Repeat::any;
    if (text.starts_with('?')) item.repeat = Repeat::optional;
    if (item.repeat != Repeat::once) text.remove_prefix(1);
  }
}

// Wapiti backtracks and counts the bytes taken as it goes. This table gives the same result in time proportional to
// items times bytes, for any expression: cell p of row i tells what matching items i, i + 1, .. from byte p on ends
// with. Row i follows from row i + 1, right to left.
//
// Wapiti does not take all bytes off its count again when a branch fails. After a ? whose first branch failed, the
// count is too high, by n of a failed cell, and the matched text too long. Models were trained on these strings, so
// they are made here too. n is 1 for an item that does not match, and adds up along the bytes tried.
Expression::Match Expression::search(std::string_view text) const {
  thread_local std::vector<int64_t> cells;
  const std::size_t n = text.size();
  cells.assign(n + 1, at_end_ ? failure(0) : 0);
  cells[n] = 0;
  for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
    int64_t after = failure(0);  // cell p + 1 of row i + 1
    for (std::size_t p = n + 1; p-- > 0;) {
      const int64_t here = cells[p];  // of row i + 1
      const bool fits = p < n && item->bytes[static_cast<unsigned char>(text[p])];
      switch (item->repeat) {
        case Repeat::once: cells[p] = fits ? longer(after, 1) : failure(1); break;
        case Repeat::any:
          if (!matched(here)) cells[p] = fits ? longer(cells[p + 1], 1) : failure(1);
          break;
        case Repeat::optional:
          if (fits) cells[p] = matched(after) ? longer(after, 1) : longer(here, count_of(after));
          break;
      }
      after = here;
    }
  }
  const std::size_t n_starts = at_begin_ ? 1 : n + 1;
  for (std::size_t p = 0; p < n_starts; ++p)
    if (matched(cells[p])) return {static_cast<int64_t>(p), cells[p]};
  return {-1, 0};
}

}  // namespace crfit
