#include "text/characters.hpp"

#include <array>
#include <memory>

namespace crfit {
namespace {

// A run of characters. Step 2: upper-case letters, each followed by its own lower case.
struct Run {
  uint32_t first;
  int32_t distance;  // to the lower-case character
  uint8_t kind, step;
};

constexpr Run kRuns[] = {
#include "text/characters.inc"
};

struct Record {
  int32_t distance = 0;
  CharacterKind kind = CharacterKind::other;
};

// Records of all characters: blocks of 256, of which equal ones are stored once.
class Table {
 public:
  Table() {
    std::array<uint16_t, kBlock> block{};
    records_.push_back({});
    std::size_t run = 0;
    for (uint32_t code = 0; code < kBadByte; ++code) {
      while (run + 1 < std::size(kRuns) && kRuns[run + 1].first <= code) ++run;
      const Run& r = kRuns[run];
      const bool second = r.step == 2 && (code - r.first) % 2 == 1;
      const auto kind = second ? CharacterKind::lower : static_cast<CharacterKind>(r.kind);
      block[code % kBlock] = record({second ? 0 : r.distance, kind});
      if (code % kBlock == kBlock - 1) places_[code / kBlock] = place(block);
    }
  }

  const Record& operator[](uint32_t code) const { return records_[blocks_[places_[code / kBlock] + code % kBlock]]; }

 private:
  static constexpr uint32_t kBlock = 256;

  uint16_t record(Record wanted) {
    for (std::size_t i = records_.size(); i-- > 0;)
      if (records_[i].distance == wanted.distance && records_[i].kind == wanted.kind) return static_cast<uint16_t>(i);
    records_.push_back(wanted);
    return static_cast<uint16_t>(records_.size() - 1);
  }

  uint32_t place(const std::array<uint16_t, kBlock>& block) {
    for (std::size_t first = blocks_.size(); first >= kBlock; first -= kBlock)
      if (std::equal(block.begin(), block.end(), blocks_.begin() + static_cast<std::ptrdiff_t>(first - kBlock)))
        return static_cast<uint32_t>(first - kBlock);
    blocks_.insert(blocks_.end(), block.begin(), block.end());
    return static_cast<uint32_t>(blocks_.size() - kBlock);
  }

  std::vector<Record> records_;
  std::vector<uint16_t> blocks_;
  std::array<uint32_t, kBadByte / kBlock> places_{};
};

const Table& table() {
  static const Table made;  // a few milliseconds, when the first character that is not ASCII is read
  return made;
}

}  // namespace

CharacterKind kind_of(uint32_t code) {
  if (code < 0x80) {
    if (code - 'a' < 26) return CharacterKind::lower;
    if (code - 'A' < 26) return CharacterKind::upper;
    return code - '0' < 10 ? CharacterKind::number : CharacterKind::other;
  }
  return code < kBadByte ? table()[code].kind : CharacterKind::other;
}

uint32_t lower_of(uint32_t code) {
  if (code < 0x80) return code - 'A' < 26 ? code + 32 : code;
  return code < kBadByte ? code + static_cast<uint32_t>(table()[code].distance) : code;
}

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < kBadByte) {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(code - kBadByte);
  }
}

void decode(std::string_view text, std::vector<Character>& out) {
  out.clear();
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const uint32_t first = byte(i);
    uint32_t code = first, size = 1;
    if (first >= 0x80) {
      size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
      code = first & (0xFF >> (size + 1));
      bool good = first >= 0xC2 && first <= 0xF4 && i + size <= text.size();
      for (uint32_t k = 1; good && k < size; ++k) {
        good = (byte(i + k) & 0xC0) == 0x80;
        code = code << 6 | (byte(i + k) & 0x3F);
      }
      // Too long a form, half of a surrogate pair, beyond the last character.
      good = good &&
             code >= (size == 2   ? 0x80u
                      : size == 3 ? 0x800u
                                  : 0x10000u) &&
             code < kBadByte && (code < 0xD800 || code > 0xDFFF);
      if (!good) {
        code = kBadByte + first;
        size = 1;
      }
    }
    out.push_back({code, static_cast<uint32_t>(i), size, kind_of(code)});
    i += size;
  }
}

void append_lower(std::string_view text, const std::vector<Character>& characters, std::string& out) {
  for (const Character& c : characters) {
    const uint32_t lower = lower_of(c.code);
    if (lower == c.code) {
      out.append(text.substr(c.begin, c.size));
    } else {
      append_utf8(lower, out);
    }
  }
}

}  // namespace crfit
