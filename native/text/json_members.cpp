#include "text/json_members.hpp"

#include "text/lines.hpp"

namespace crfit {
namespace {

const char* skip_space(const char* p, const char* end) {
  while (p < end && (is_space(*p) || *p == '\r')) ++p;
  return p;
}

// Past the closing quote of the string that begins at `p`.
const char* skip_string(const char* p, const char* end) {
  for (++p; p < end && *p != '"'; ++p) p += *p == '\\';
  return p < end ? p + 1 : end;
}

// The comma or bracket after the value that begins at `p`.
const char* skip_value(const char* p, const char* end) {
  for (int64_t depth = 0; p < end;) {
    const char c = *p;
    if (c == '"') {
      p = skip_string(p, end);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return p;
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    ++p;
  }
  return p;
}

}  // namespace

JsonMembers json_members(std::string_view text) {
  JsonMembers found;
  Lines lines(text);
  std::string_view line;
  while (lines.next(line)) {
    if (is_blank(line)) continue;
    const char* const end = line.data() + line.size();
    const char* p = skip_space(line.data(), end);
    // `p` is at the brace, then at the commas.
    while (p < end && *p != '}') {
      const char* const begin = skip_space(p + 1, end);
      if (begin == end || *begin != '"') break;
      const char* const key_end = skip_string(begin, end);
      const char* const colon = skip_space(key_end, end);
      if (colon == end) break;
      p = skip_value(colon + 1, end);
      const char* value_end = p;
      while (is_space(value_end[-1]) || value_end[-1] == '\r') --value_end;
      found.begins.push_back(begin - text.data());
      found.key_ends.push_back(key_end - text.data());
      found.ends.push_back(value_end - text.data());
    }
    found.line_ptr.push_back(static_cast<int64_t>(found.begins.size()));
  }
  return found;
}

}  // namespace crfit
