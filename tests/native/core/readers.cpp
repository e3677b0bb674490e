// Readers of texts: the same arrays for any number of threads, errors that name the line, and damaged texts.
#include <cmath>
#include <string>

#include "check.hpp"
#include "parsed.hpp"
#include "text/error.hpp"
#include "text/json_members.hpp"

using namespace crfit;

namespace {

const char* kTemplate = "U0:%x[0,0]\nU1:%x[-1,0]/%x[1,1]\nB\nB1:%x[0,1]\n";

ReadOptions options_for(Format format, const Template* templates, int n_threads = 1) {
  ReadOptions options;
  options.format = format;
  options.templates = format == Format::columns ? templates : nullptr;
  options.n_threads = n_threads;
  return options;
}

// A valid text of some sequences.
std::string text_of(Format format, check::Random& random, int n_sequences) {
  std::string text;
  const char* words[] = {"a", "bb", "c:c", "\xC3\xA9", "d\\e", "0.5"};
  const char* labels[] = {"O", "B-X", "I-X"};
  for (int s = 0; s < n_sequences; ++s) {
    const int T = 1 + random.below(4);
    std::string tokens, tags;
    for (int t = 0; t < T; ++t) {
      const std::string word = words[random.below(6)], label = labels[random.below(3)];
      if (format == Format::columns) text += word + " P" + std::to_string(random.below(3)) + " " + label + "\n";
      if (format == Format::crfsuite) {
        text += label;
        text += word == "c:c" ? "\tc\\:c:2.5" : word == "d\\e" ? "\td\\\\e" : "\t" + word;
        text += "\tbias\n";
      }
      if (format == Format::jsonl) {
        tokens += (t ? ", " : "") + std::string("[\"w=") + (word == "d\\e" ? "d\\\\e" : word) + "\", \"bias\"]";
        tags += (t ? ", \"" : "\"") + label + "\"";
      }
    }
    text += format == Format::jsonl ? "{\"attributes\": [" + tokens + "], \"labels\": [" + tags + "]}\n" : "\n";
  }
  return text;
}

constexpr Format kFormats[] = {Format::columns, Format::crfsuite, Format::jsonl};

int64_t error_line(const std::string& text, const ReadOptions& options) {
  try {
    read_texts({text}, options);
  } catch (const TextError& error) {
    return error.line;
  }
  return -1;
}

}  // namespace

TEST(threads_do_not_change_what_is_read) {
  const Template templates(kTemplate, Dialect::crfpp);
  for (const Format format : kFormats) {
    check::Random random(1);
    const std::string text = text_of(format, random, 3000);
    ReadOptions options = options_for(format, &templates);
    const ParsedText one = read_texts({text}, options);
    check::require_consistent(one, options);
    CHECK(one.seq_ptr.size() == 3001);
    CHECK(one.label_alphabet.size() == 3);
    for (const int n_threads : {2, 5}) {
      options.n_threads = n_threads;
      check::require_same(one, read_texts({text}, options));
    }
    // With the alphabets of the first reading nothing is new.
    options.attributes = &one.attribute_alphabet;
    options.edges = &one.edge_alphabet;
    options.labels = &one.label_alphabet;
    const ParsedText again = read_texts({text}, options);
    CHECK(again.attr_ids == one.attr_ids && again.labels == one.labels && again.n_dropped == 0);
  }
}

TEST(alphabets_number_strings_by_first_appearance) {
  Alphabet alphabet;
  CHECK(alphabet.find("a") == -1);
  for (int i = 0; i < 5000; ++i) CHECK(alphabet.add("name" + std::to_string(i)) == i);
  for (int i = 0; i < 5000; ++i) CHECK(alphabet.find("name" + std::to_string(i)) == i);
  CHECK(alphabet.add("name17") == 17 && alphabet.size() == 5000);
  CHECK(alphabet.add("") == 5000 && alphabet.find("") == 5000);
}

TEST(columns_are_expanded) {
  const Template templates(kTemplate, Dialect::crfpp);
  const ParsedText parsed = read_texts({"a x L1\nb y L2\n"}, options_for(Format::columns, &templates));
  CHECK(parsed.attribute_alphabet[0] == "U0:a");
  CHECK(parsed.attribute_alphabet[1] == "U1:_B-1/y");
  CHECK(parsed.attribute_alphabet[3] == "U1:a/_B+1");
  CHECK(parsed.edge_alphabet[0] == "B1:y" && parsed.edge_ids.size() == 1);
  CHECK(parsed.line_numbers == std::vector<int64_t>({1, 2}));
}

TEST(errors_name_the_line) {
  const Template templates(kTemplate, Dialect::crfpp);
  CHECK(error_line("a x L\n\na x L\na L\n", options_for(Format::columns, &templates)) == 4);
  CHECK(error_line("L\ta:x\n", options_for(Format::crfsuite, nullptr)) == 1);
  CHECK(error_line("{\"attributes\": [[\"a\"]], \"labels\": [\"L\"]}\n{\"attributes\": [}\n",
                   options_for(Format::jsonl, nullptr)) == 2);
  CHECK(error_line("\n\n", options_for(Format::crfsuite, nullptr)) == 0);
  CHECK_THROWS(TextError, Template("U0:%x[0\n", Dialect::crfpp));
}

TEST(expressions_match_as_documented) {
  const auto matched = [](const char* pattern, const char* text) {
    const Expression::Match found = Expression(pattern, 1).search(text);
    return found.begin < 0
               ? std::string("-")
               : std::string(text).substr(static_cast<std::size_t>(found.begin), static_cast<std::size_t>(found.size));
  };
  CHECK(matched("\\d*$", "ab123") == "123");
  CHECK(matched("^\\u", "Ab") == "A");
  CHECK(matched("^\\u", "ab") == "-");
  CHECK(matched("a?b", "cab") == "ab");
  CHECK(matched("x.z", "wxyz") == "xyz");
}

TEST(members_of_json_are_found) {
  const std::string line = "{\"id\": 7, \"a\\\"b\": [1, {\"c\": \"}\"}], \"text\": \"x\"}\n";
  const JsonMembers found = json_members(line);
  CHECK(found.line_ptr == std::vector<int64_t>({0, 3}));
  CHECK(line.substr(static_cast<std::size_t>(found.begins[1]),
                    static_cast<std::size_t>(found.ends[1] - found.begins[1])) == "\"a\\\"b\": [1, {\"c\": \"}\"}]");
}

TEST(damaged_texts_are_read_or_refused) {
  const Template templates(kTemplate, Dialect::crfpp);
  for (const Format format : kFormats) {
    check::Random random(2);
    const std::string text = text_of(format, random, 6);
    ReadOptions options = options_for(format, &templates);
    int n_refused = 0;
    for (int k = 0; k < 1500; ++k) {
      std::string damaged = text;
      for (int i = 1 + random.below(3); i > 0 && !damaged.empty(); --i) {
        const auto at = static_cast<std::size_t>(random.below(static_cast<int>(damaged.size())));
        switch (random.below(4)) {
          case 0: damaged[at] = static_cast<char>(random.below(256)); break;
          case 1: damaged.erase(at, 1 + static_cast<std::size_t>(random.below(8))); break;
          case 2: damaged.insert(at, 1, "\n\t:\\\"{}[]1-. \0"[random.below(14)]); break;
          default: damaged.resize(at);
        }
      }
      try {
        const ParsedText parsed = read_texts({damaged}, options);
        check::require_consistent(parsed, options);
      } catch (const TextError&) {
        ++n_refused;
      }
      json_members(damaged);
    }
    CHECK(n_refused > 0 && n_refused < 1500);
  }
}
