// The regular expressions of Wapiti's patterns.
//
//   .            any byte
//   \d \a \w     digit, letter, letter or digit          \l \u \p \s   lower case, upper case, punctuation, space
//   \D ...       the complement of a class               \ before any other byte: that byte
//   ^ first, $ last: anchors                             * ? apply to the byte or class before
//
// * takes as few bytes as possible, ? takes one if it can, and the leftmost match wins. Classes are those of ASCII.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

namespace crfit {

class Expression {
 public:
  Expression(std::string_view text, int64_t line);  // throws TextError

  struct Match {
    int64_t begin;  // -1: none
    int64_t size;   // as Wapiti counts it: may exceed the text, see search()
  };
  Match search(std::string_view text) const;

 private:
  enum class Repeat : uint8_t { once, any, optional };
  struct Item {
    std::bitset<256> bytes;
    Repeat repeat = Repeat::once;
  };
  std::vector<Item> items_;
  bool at_begin_ = false, at_end_ = false;
};

}  // namespace crfit
