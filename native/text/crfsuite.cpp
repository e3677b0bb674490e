// CRFsuite's attribute text: one position per line, fields separated by TABs (a space is an ordinary character), the
// label first, then attributes `name` or `name:value`; an empty line after each sequence; `\:` and `\\` inside fields.
//
// As in CRFsuite: runs of TABs are one separator, `name:` has value 1, a second colon starts an attribute with an empty
// name, the label ends at an unescaped colon, `@weight:NUMBER` before a label sets the weight of the sequence.
// Safer than CRFsuite: a value that is not a finite number is an error (not 0); CRLF line ends, a last line without LF
// and bytes 0xFF are accepted; a line of only white space ends a sequence (in CRFsuite it is a label).
#include <algorithm>
#include <string>

#include "text/chunk.hpp"
#include "text/lines.hpp"

namespace crfit {
namespace {

constexpr std::string_view weight_mark = "@weight:";

// Removes one unescaped part from the front of a field, up to an unescaped colon or the end. `buffer` holds the part if
// it has escapes. Sets `colon` if a colon ended it.
std::string_view take_part(std::string_view& field, std::string& buffer, bool& colon) {
  std::size_t i = field.find_first_of(":\\");
  if (i == std::string_view::npos || field[i] == ':') {
    const std::string_view part = field.substr(0, i);
    colon = i != std::string_view::npos;
    field.remove_prefix(colon ? i + 1 : field.size());
    return part;
  }
  buffer.assign(field.substr(0, i));
  for (; i < field.size() && field[i] != ':'; ++i) {
    const bool escape = field[i] == '\\' && i + 1 < field.size() && (field[i + 1] == ':' || field[i + 1] == '\\');
    buffer += field[escape ? ++i : i];
  }
  colon = i < field.size();
  field.remove_prefix(colon ? i + 1 : i);
  return buffer;
}

class Parser {
 public:
  explicit Parser(Chunk& chunk) : chunk_(chunk) {}

  void parse() {
    Lines lines(chunk_.text);
    std::string_view line;
    while (lines.next(line)) {
      line_ = lines.number();
      if (is_blank(line)) {
        end_sequence();
      } else {
        parse_line(line);
      }
    }
    end_sequence();
    chunk_.n_lines = lines.number();
  }

 private:
  void parse_line(std::string_view line) {
    bool has_label = false;
    while (!line.empty()) {
      const std::size_t n = std::min(line.find('\t'), line.size());
      const std::string_view field = line.substr(0, n);
      line.remove_prefix(n < line.size() ? n + 1 : n);
      if (field.empty()) continue;
      if (has_label) {
        add_attributes(field);
      } else if (field.starts_with(weight_mark)) {
        declare_weight(field);
      } else {
        add_label(field);
        has_label = true;
      }
    }
    if (!has_label) return;  // a declaration on a separate line
    chunk_.end_position(line_);
    ++length_;
  }

  void declare_weight(std::string_view field) {
    if (!parse_number(field.substr(weight_mark.size()), weight_) || weight_ < 0)
      throw TextError("'" + excerpt(field) + "': the weight of a sequence is a number that is not negative", line_);
    declared_at_ = line_;
  }

  void add_label(std::string_view field) {
    if (!chunk_.labelled) return;  // the first field is then only a placeholder
    if (field.front() == '@')
      throw TextError(
          "unknown declaration '" + excerpt(field) + "': only @weight:NUMBER is known, and a label cannot begin with @",
          line_);
    bool colon;
    const std::string_view label = take_part(field, buffer_, colon);
    if (label.empty())
      throw TextError("empty label: the first field of a line is the label; write \\: for a colon in it", line_);
    chunk_.add_label(label);
  }

  void add_attributes(std::string_view field) {
    bool colon;
    std::string_view name = take_part(field, buffer_, colon);
    if (!colon) return chunk_.add_attribute(name);
    for (; colon; name = {}) {
      double value = 1.0;
      const std::string_view text = take_part(field, value_buffer_, colon);
      if (!text.empty() && !parse_number(text, value))
        throw TextError("'" + excerpt(text) + "' is not a finite number, so it cannot be the value of attribute '" +
                            excerpt(name) + "': write \\: for a colon that is part of a name",
                        line_);
      chunk_.add_attribute(name, value);
    }
  }

  void end_sequence() {
    if (length_ == 0 && declared_at_ > 0)
      throw TextError("@weight without a sequence: it belongs directly before the first position of one", declared_at_);
    if (length_ > 0) chunk_.end_sequence(weight_);
    length_ = declared_at_ = 0;
    weight_ = 1.0;
  }

  Chunk& chunk_;
  int64_t line_ = 0;
  int64_t length_ = 0;       // positions of the current sequence so far
  int64_t declared_at_ = 0;  // line of its @weight, 0: none
  double weight_ = 1.0;
  std::string buffer_, value_buffer_;
};

}  // namespace

void parse_crfsuite(Chunk& chunk) { Parser(chunk).parse(); }

}  // namespace crfit
