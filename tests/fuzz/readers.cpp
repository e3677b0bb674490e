// Fuzzers of the readers, one program each (FUZZ_columns, ...): every text is read consistently or refused.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "parsed.hpp"
#include "text/error.hpp"
#include "text/json_members.hpp"

using namespace crfit;

namespace {

// One thread and several, labelled or not, with new and with known alphabets.
void read_all_ways(std::string_view text, ReadOptions options) {
  for (const bool labelled : {true, false}) {
    options.labelled = labelled;
    options.attributes = options.edges = options.labels = nullptr;
    options.n_threads = 1;
    try {
      const ParsedText parsed = read_texts({text}, options);
      check::require_consistent(parsed, options);
      options.n_threads = 3;
      check::require_same(parsed, read_texts({text}, options));
      options.attributes = &parsed.attribute_alphabet;
      options.edges = &parsed.edge_alphabet;
      options.labels = labelled ? &parsed.label_alphabet : nullptr;
      const ParsedText again = read_texts({text}, options);
      check::require_consistent(again, options);
      check::require(again.n_dropped == 0 && again.attr_ids == parsed.attr_ids, "known names are found");
    } catch (const TextError&) {
    }
  }
}

[[maybe_unused]] void columns(std::string_view text) {
  static const Template templates("U0:%x[0,0]\nU1:%x[-1,0]/%x[2,1]\nB\nB1:%x[0,1]\n", Dialect::crfpp);
  ReadOptions options;
  options.format = Format::columns;
  options.templates = &templates;
  read_all_ways(text, options);
  count_columns(text);
}

[[maybe_unused]] void crfsuite(std::string_view text) {
  ReadOptions options;
  options.format = Format::crfsuite;
  read_all_ways(text, options);
}

[[maybe_unused]] void jsonl(std::string_view text) {
  ReadOptions options;
  options.format = Format::jsonl;
  read_all_ways(text, options);
  const JsonMembers found = json_members(text);
  check::require_offsets(found.line_ptr, found.line_ptr.size() - 1, found.begins.size(), "members");
  for (std::size_t i = 0; i < found.begins.size(); ++i)
    check::require(found.begins[i] < found.key_ends[i] && found.key_ends[i] <= found.ends[i] &&
                       found.ends[i] <= static_cast<int64_t>(text.size()),
                   "members are inside the text");
}

// A template is expanded on some rows.
[[maybe_unused]] void templates(std::string_view text) {
  static const std::vector<std::string_view> cells = {"Ab1", "x", "", "-.,", "\xC3\xA9", "0"};
  for (const Dialect dialect : {Dialect::crfpp, Dialect::wapiti}) {
    try {
      const Template parsed(text, dialect);
      if (parsed.n_columns() > 6) continue;
      const int64_t n_columns = std::max<int64_t>(1, parsed.n_columns());
      const Cells rows{cells.data(), static_cast<int64_t>(cells.size()) / n_columns, n_columns};
      std::string out;
      for (const auto* patterns : {&parsed.attributes(), &parsed.edges()})
        for (const Pattern& pattern : *patterns)
          for (int64_t t = 0; t < rows.n_rows; ++t) pattern.expand(rows, t, out);
    } catch (const TextError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
