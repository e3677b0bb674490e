// The error of a reader: the message, and the text number and line, which Python converts to a file name.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace crfit {

struct TextError : std::runtime_error {
  TextError(const std::string& message, int64_t line_, int64_t text_id_ = 0)
      : std::runtime_error(message), line(line_), text_id(text_id_) {}
  int64_t line;     // counted from 1; 0: the text as a whole
  int64_t text_id;  // index of the text
};

}  // namespace crfit
