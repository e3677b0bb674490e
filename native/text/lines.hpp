// Helpers shared by all text readers: lines, blank lines, numbers, excerpts for messages.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace crfit {

// The lines of a text without their line ends. LF and CRLF end a line; the last line may have no end.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    const void* found = std::memchr(rest_.data(), '\n', rest_.size());
    const auto n = found ? static_cast<std::size_t>(static_cast<const char*>(found) - rest_.data()) : rest_.size();
    line = rest_.substr(0, n);
    rest_.remove_prefix(found ? n + 1 : n);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return true;
  }
  int64_t number() const { return number_; }  // of the last returned line, starting at 1
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

inline bool is_space(char c) { return c == ' ' || c == '\t'; }

inline bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

// The start of some input, short enough for a message.
inline std::string excerpt(std::string_view text, std::size_t limit = 40) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;  // not inside a character
  return std::string(text.substr(0, limit)) + "...";
}

// Parses all of `text` as a finite decimal number; underflow gives 0.
inline bool parse_number(std::string_view text, double& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value);
}

}  // namespace crfit
