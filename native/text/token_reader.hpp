// Tokens of Python sequences, for features that make the attributes.
//
// A token is a str or bytes; if the features use several columns, a list or tuple of these, one for each column.
#pragma once

#include <nanobind/nanobind.h>  // includes Python.h correctly

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/features.hpp"
#include "text/reader.hpp"
#include "text/sequences.hpp"

namespace crfit {

// Reads any sequence; raises DataError, with this number, if it has none. False: it is empty, which is allowed.
bool append_tokens(PyObject* sequence, int64_t number, bool allow_empty, int64_t n_columns, Tokens& out);

// All sequences of X, none of them empty.
Tokens tokens_of(PyObject* X, int64_t n_columns);

// Appends the attributes of a sequence with these cells; unknown ones get the id -1. Sets: `views`.
void append_attributes(Extractor& extractor, const Names& cells, int64_t n_columns,
                       std::vector<std::string_view>& views, Sequences& out);

// Any sequence with its attributes; raises DataError. False: it is empty.
bool read_token_sequence(PyObject* sequence, int64_t number, bool allow_empty, const Features& features,
                         const Alphabet& alphabet, Sequences& out);

}  // namespace crfit
