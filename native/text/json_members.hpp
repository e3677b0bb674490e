// Where the members of JSON lines are, so that some of them can be copied as they are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace crfit {

// The members of the objects on the lines that are not blank: line i has members line_ptr[i] to line_ptr[i + 1]. Member
// j is text[begins[j]:ends[j]], and its key, with the quotes, text[begins[j]:key_ends[j]].
struct JsonMembers {
  std::vector<int64_t> line_ptr{0}, begins, key_ends, ends;
};

// The text was read before: of lines that are not objects, some members or none are found.
JsonMembers json_members(std::string_view text);

}  // namespace crfit
