// JSON lines: one sequence per line, an object with
//
//   "tokens" (or "attributes")   list of positions, each a list of attribute names or an object; with features, each a
//                                token: a string, or a list of the strings in its columns
//   "labels"                     list of strings, as long as the tokens; null if a label is not known
//   "weight"                     of the sequence, 0 or more (default 1)
//
// and any other keys, which are ignored. Objects are named as in python-crfsuite: a number is the value of the
// attribute `key`, true and false are 1 and 0, a string gives `key:string`, and a nested list or object adds `key:`
// before each of its names.
//
// A custom parser, because it creates no object per attribute: strings without escapes are looked up in place.
#include <optional>
#include <string>

#include "text/characters.hpp"
#include "text/chunk.hpp"
#include "text/lines.hpp"

namespace crfit {
namespace {

constexpr int max_depth = 64;  // of nested lists and objects; prevents hostile input from exhausting the stack

class Parser {
 public:
  explicit Parser(Chunk& chunk) : chunk_(chunk) {
    if (chunk.features != nullptr) extractor_.emplace(chunk.extractor());
  }

  void parse() {
    Lines lines(chunk_.text);
    std::string_view line;
    while (lines.next(line)) {
      if (is_blank(line)) continue;
      line_ = lines.number();
      p_ = line.data();
      end_ = p_ + line.size();
      parse_sequence();
      peek();
      if (p_ < end_) fail("something follows the object: one sequence a line");
    }
    chunk_.n_lines = lines.number();
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw TextError(message, line_); }
  [[noreturn]] void unexpected(const char* wanted) const {
    fail(std::string("expected ") + wanted +
         (p_ < end_ ? " at '" + excerpt({p_, static_cast<std::size_t>(end_ - p_)}, 20) + "'" : ", but the line ends"));
  }

  // --- JSON ---

  char peek() {  // next non-space character, NUL at the end of the line
    while (p_ < end_ && (is_space(*p_) || *p_ == '\r')) ++p_;
    return p_ < end_ ? *p_ : '\0';
  }
  bool take(char c) {
    if (peek() != c || p_ == end_) return false;
    ++p_;
    return true;
  }
  void expect(char c, const char* wanted) {
    if (!take(c)) unexpected(wanted);
  }
  bool take_word(std::string_view word) {
    if (!std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(word)) return false;
    p_ += word.size();
    return true;
  }

  // Calls body() for each element or member up to `close`; the opening bracket was already read.
  template <class Body>
  void each(char close, Body body) {
    if (take(close)) return;
    do body();
    while (take(','));
    expect(close, close == ']' ? "',' or ']'" : "',' or '}'");
  }

  // Exactly four digits: from_chars would accept fewer.
  uint32_t hex4() {
    uint32_t code = 0;
    const char* const stop = end_ - p_ >= 4 ? p_ + 4 : p_;
    const auto [end, error] = std::from_chars(p_, stop, code, 16);
    if (stop == p_ || error != std::errc() || end != stop) unexpected("four hexadecimal digits after \\u");
    p_ = stop;
    return code;
  }

  void unicode_escape(std::string& out) {
    const uint32_t code = hex4();
    if (code < 0xD800 || code > 0xDFFF) return append_utf8(code, out);
    if (code < 0xDC00 && take_word("\\u")) {
      const uint32_t low = hex4();
      if (low >= 0xDC00 && low <= 0xDFFF) return append_utf8(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), out);
    } else if (code >= 0xDC80 && code <= 0xDCFF) {
      out += static_cast<char>(code - 0xDC00);  // Python's form of a byte that is not UTF-8 (surrogateescape)
      return;
    }
    fail("half of a surrogate pair in a string: write the character itself or both halves");
  }

  // A string; the view is into the line, or into `buffer` if there are escapes.
  std::string_view string(std::string& buffer) {
    expect('"', "a string");
    const char* begin = p_;
    // Most strings have no escapes and need no copy.
    while (p_ < end_ && *p_ != '"' && *p_ != '\\') ++p_;
    if (p_ < end_ && *p_ == '"') return {begin, static_cast<std::size_t>(p_++ - begin)};
    buffer.assign(begin, p_);
    while (p_ < end_) {
      const char c = *p_++;
      if (c == '"') return buffer;
      if (c != '\\') {
        buffer += c;
        continue;
      }
      if (p_ == end_) break;
      switch (const char e = *p_++) {
        case '"':
        case '\\':
        case '/': buffer += e; break;
        case 'b': buffer += '\b'; break;
        case 'f': buffer += '\f'; break;
        case 'n': buffer += '\n'; break;
        case 'r': buffer += '\r'; break;
        case 't': buffer += '\t'; break;
        case 'u': unicode_escape(buffer); break;
        default: fail(std::string("unknown escape '\\") + e + "' in a string");
      }
    }
    fail("a string without closing quote: one sequence a line, whole");
  }

  double number() {
    peek();
    const char* const begin = p_;
    while (p_ < end_ && std::strchr("+-.0123456789eE", *p_) != nullptr && *p_ != '\0') ++p_;
    double value;
    const std::string_view text(begin, static_cast<std::size_t>(p_ - begin));
    if (text.empty()) unexpected("a number");
    if (text.front() == '+' || !parse_number(text, value)) fail("'" + excerpt(text) + "' is not a finite number");
    return value;
  }

  void skip_value(int depth = 0) {
    if (depth > max_depth) fail("lists or objects nested too deeply");
    switch (peek()) {
      case '"': string(text_); break;
      case '[':
        ++p_;
        each(']', [&] { skip_value(depth + 1); });
        break;
      case '{':
        ++p_;
        each('}', [&] {
          string(text_);
          expect(':', "':'");
          skip_value(depth + 1);
        });
        break;
      default:
        if (!take_word("true") && !take_word("false") && !take_word("null")) number();
    }
  }

  // --- a sequence ---

  void parse_sequence() {
    bool has_tokens = false, has_labels = false;
    double weight = 1.0;
    int64_t n_labels = 0;
    // Keys can come in any order, so lengths are compared at the end.
    const int64_t first = chunk_.n_positions();
    expect('{', "an object {\"tokens\": [...], \"labels\": [...]}");
    each('}', [&] {
      const std::string_view key = string(key_);
      const bool is_tokens = key == "tokens" || key == "attributes";
      const bool is_labels = key == "labels", is_weight = key == "weight";
      expect(':', "':'");
      if (is_tokens) {
        if (has_tokens) fail("two lists of tokens in one sequence");
        has_tokens = true;
        extractor_ ? parse_words() : parse_tokens();
        // "labels": null means no labels.
      } else if (is_labels && chunk_.labelled && peek() != 'n') {
        if (has_labels) fail("two lists of labels in one sequence");
        has_labels = true;
        n_labels = parse_labels();
      } else if (is_weight) {
        weight = number();
        if (weight < 0) fail("the weight of a sequence is a number that is not negative");
      } else {
        skip_value();
      }
    });
    if (!has_tokens) fail("no \"tokens\" in the object: a list with the attributes of each position");
    const int64_t length = chunk_.n_positions() - first;
    if (length == 0) fail("a sequence without tokens: leave it out");
    if (chunk_.labelled && !has_labels) fail("no \"labels\" in the object: a list with the label of each token");
    if (chunk_.labelled && n_labels != length)
      fail(std::to_string(length) + " tokens but " + std::to_string(n_labels) + " labels: each token needs one");
    chunk_.end_sequence(weight);
  }

  int64_t parse_labels() {
    int64_t n = 0;
    expect('[', "a list of labels");
    each(']', [&] {
      if (peek() == 'n' && take_word("null")) {
        chunk_.labels.push_back(-1);
      } else {
        if (peek() != '"') unexpected("a label, which is a string or null,");
        chunk_.add_label(string(text_));
      }
      ++n;
    });
    return n;
  }

  void parse_tokens() {
    expect('[', "a list of tokens");
    each(']', [&] {
      prefix_.clear();
      const char c = peek();
      if (c == '"')
        fail(
            "a token is a string, but attributes are expected: give a list of them or an object, or let features make "
            "them (--features default)");
      if (c != '[' && c != '{') unexpected("a list of attribute names or an object for each token");
      parse_names(0);
      chunk_.end_position(line_);
    });
  }

  // Tokens of which features make the attributes.
  void parse_words() {
    const auto n_columns = static_cast<std::size_t>(chunk_.features->n_columns());
    const auto word = [&] {
      if (peek() != '"') unexpected("a token, which is a string: the features make the attributes; here");
      words_.bytes.append(string(text_));
      words_.close();
    };
    words_.clear();
    std::size_t n = 0;
    expect('[', "a list of tokens");
    each(']', [&] {
      if (take('[')) {
        each(']', word);
      } else {
        word();
      }
      ++n;
      if (words_.size() != n * n_columns)
        fail(n_columns == 1 ? "a token with several columns, but the features use only one: give the token as a string"
                            : "the features use " + std::to_string(n_columns) +
                                  " columns: give each token as a list of as many strings");
    });
    cells_.clear();
    for (std::size_t i = 0; i < words_.size(); ++i) cells_.push_back(words_[i]);
    const auto n_rows = static_cast<int64_t>(n);
    extractor_->begin(Cells{cells_.data(), n_rows, static_cast<int64_t>(n_columns)});
    for (int64_t t = 0; t < n_rows; ++t) {
      chunk_.add_attributes(*extractor_, t);
      chunk_.end_position(line_);
    }
  }

  // A list or an object of attributes; each name is prefixed with prefix_.
  void parse_names(int depth) {
    if (depth > max_depth) fail("lists or objects nested too deeply");
    if (take('[')) {
      each(']', [&] {
        if (peek() != '"') unexpected("an attribute name, which is a string,");
        add(string(text_), 1.0);
      });
      return;
    }
    expect('{', "a list or an object");
    each('}', [&] {
      const std::string_view key = string(key_);
      expect(':', "':'");
      const char c = peek();
      if (c == '"' || c == '[' || c == '{') {
        // `key` may be a view into key_, which nested keys overwrite; by then it has been copied to the prefix.
        const std::size_t outer = prefix_.size();
        prefix_.append(key) += ':';
        if (c == '"') {
          add(string(text_), 1.0);
        } else {
          parse_names(depth + 1);
        }
        prefix_.resize(outer);
      } else if (take_word("true")) {
        add(key, 1.0);
      } else if (take_word("false")) {
        add(key, 0.0);
      } else {
        if (c == 'n') unexpected("a number, a string, true, false, a list or an object (leave out what is missing)");
        add(key, number());
      }
    });
  }

  void add(std::string_view name, double value) {
    if (prefix_.empty()) return chunk_.add_attribute(name, value);
    name_.assign(prefix_).append(name);
    chunk_.add_attribute(name_, value);
  }

  Chunk& chunk_;
  const char* p_ = nullptr;    // next character
  const char* end_ = nullptr;  // of the line
  int64_t line_ = 0;
  std::string prefix_;  // enclosing keys, each with its colon
  std::string key_, text_, name_;
  std::optional<Extractor> extractor_;  // for tokens
  Names words_;                         // cells of the tokens of the sequence
  std::vector<std::string_view> cells_;
};

}  // namespace

void parse_jsonl(Chunk& chunk) { Parser(chunk).parse(); }

}  // namespace crfit
