// Readers of texts: contents, errors with their lines, the same result for any number of threads.
#include <string>
#include <vector>

#include "check.hpp"
#include "text/error.hpp"
#include "text/expression.hpp"
#include "text/json_members.hpp"
#include "text/reader.hpp"

using namespace crfit;

namespace {

ParsedText read(const std::string& text, Format format, const Template* templates = nullptr, int n_threads = 1) {
  ReadOptions options;
  options.format = format;
  options.templates = templates;
  options.n_threads = n_threads;
  return read_texts({text}, options);
}

int64_t line_of_error(const std::string& text, Format format, const Template* templates = nullptr) {
  try {
    read(text, format, templates);
  } catch (const TextError& error) {
    return error.line;
  }
  return -1;
}

std::string name(const Alphabet& alphabet, int64_t id) { return std::string(alphabet[id]); }

bool same(const ParsedText& a, const ParsedText& b) {
  return a.seq_ptr == b.seq_ptr && a.attr_ptr == b.attr_ptr && a.attr_ids == b.attr_ids &&
         a.attr_values == b.attr_values && a.labels == b.labels && a.edge_ids == b.edge_ids &&
         a.line_numbers == b.line_numbers && a.attribute_alphabet.bytes() == b.attribute_alphabet.bytes();
}

}  // namespace

TEST(an_alphabet_numbers_strings_by_first_appearance) {
  Alphabet alphabet;
  CHECK(alphabet.find("a") == -1);
  for (int i = 0; i < 5000; ++i) CHECK(alphabet.add("name" + std::to_string(i)) == i);
  for (int i = 0; i < 5000; ++i) CHECK(alphabet.find("name" + std::to_string(i)) == i);
  CHECK(alphabet.add("name17") == 17 && alphabet.size() == 5000);
  CHECK(alphabet.add("") == 5000 && alphabet.find("") == 5000);
}

TEST(columns_with_a_template) {
  const Template templates("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB\n", Dialect::crfpp);
  CHECK(templates.n_columns() == 2 && templates.plain_transitions());
  const ParsedText found = read("a N X\nb V Y\n\nc N X\n", Format::columns, &templates);
  CHECK((found.seq_ptr == std::vector<int64_t>{0, 2, 3}));
  CHECK((found.labels == std::vector<int32_t>{0, 1, 0}));
  CHECK((found.line_numbers == std::vector<int64_t>{1, 2, 4}));
  CHECK(name(found.attribute_alphabet, found.attr_ids[0]) == "U0:a");
  CHECK(name(found.attribute_alphabet, found.attr_ids[3]) == "U1:a/V");
  CHECK(line_of_error("a N X\nb Y\n", Format::columns, &templates) == 2);
  CHECK(line_of_error("", Format::columns, &templates) == 0);
  CHECK_THROWS(Template("U0:%x[0\n", Dialect::crfpp), TextError);
}

TEST(crfsuite_lines_with_values_and_escapes) {
  const ParsedText found = read("X\ta:2\tb\\:c\nY\td\n\nX\ta\n", Format::crfsuite);
  CHECK((found.seq_ptr == std::vector<int64_t>{0, 2, 3}));
  CHECK((found.attr_values == std::vector<double>{2.0, 1.0, 1.0, 1.0}));
  CHECK(name(found.attribute_alphabet, 1) == "b:c");
  CHECK(line_of_error("X\ta\nY\tb:nan\n", Format::crfsuite) == 2);
}

TEST(json_lines) {
  const ParsedText found = read(R"({"tokens": [["a", "\u00e9"], {"v": 0.5}], "labels": ["X", "Y"]})"
                                "\n",
                                Format::jsonl);
  CHECK((found.seq_ptr == std::vector<int64_t>{0, 2}));
  CHECK(name(found.attribute_alphabet, 1) == "\xC3\xA9");
  CHECK(line_of_error("{\"tokens\": [[\"a\"]], \"labels\": [\"X\"]}\n{\"tokens\": [", Format::jsonl) == 2);
  const JsonMembers members = json_members("{\"a\": [1, {\"b\": 2}], \"c\": \"}\"}\n\n{}\n");
  CHECK((members.line_ptr == std::vector<int64_t>{0, 2, 2}));
}

TEST(threads_do_not_change_what_is_read) {
  const Template templates("U0:%x[0,0]\nU1:%x[1,0]/%x[0,1]\nB1:%x[0,0]\n", Dialect::crfpp);
  std::string columns, lines;
  for (int i = 0; i < 6000; ++i) {
    const std::string word = std::to_string(i * 7919 % 1000);
    columns += "w" + word + " c" + std::to_string(i % 7) + " L" + std::to_string(i % 3) + (i % 9 == 8 ? "\n\n" : "\n");
    lines += "L" + std::to_string(i % 3) + "\tw" + word + ":0.5\tb" + (i % 9 == 8 ? "\n\n" : "\n");
  }
  const ParsedText one = read(columns, Format::columns, &templates), other = read(lines, Format::crfsuite);
  for (const int threads : {2, 3, 8}) {
    CHECK(same(read(columns, Format::columns, &templates, threads), one));
    CHECK(same(read(lines, Format::crfsuite, nullptr, threads), other));
  }
}

TEST(expressions_of_wapiti) {
  const auto found = [](const char* expression, const char* text) {
    const Expression::Match match = Expression(expression, 1).search(text);
    return match.begin < 0
               ? std::string("none")
               : std::string(text).substr(static_cast<std::size_t>(match.begin), static_cast<std::size_t>(match.size));
  };
  CHECK(found("a", "bab") == "a");
  CHECK(found("^a", "ba") == "none");
  CHECK(found("\\d*$", "ab12") == "12");
  CHECK(found("\\u\\l*$", "xHello") == "Hello");
}
