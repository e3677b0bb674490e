// Characters of UTF-8 text: their kind and their lower-case form, by the tables of one version of Unicode.
//
// A byte that is not UTF-8 is a character of its own, as in Python with surrogateescape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crfit {

enum class CharacterKind : uint8_t { other, upper, lower, letter, number, mark };  // letter: without case

struct Character {
  uint32_t code;         // a byte that is not UTF-8: kBadByte + the byte
  uint32_t begin, size;  // its bytes
  CharacterKind kind;
};

inline constexpr uint32_t kBadByte = 0x110000;

CharacterKind kind_of(uint32_t code);

// Each character by itself: no sigma at the end of a word, and a character with several lower-case ones stays.
uint32_t lower_of(uint32_t code);

void append_utf8(uint32_t code, std::string& out);

// Replaces `out` by the characters of the text.
void decode(std::string_view text, std::vector<Character>& out);

// The text in lower case; `characters` are those of the text.
void append_lower(std::string_view text, const std::vector<Character>& characters, std::string& out);

}  // namespace crfit
