// Attributes of tokens: what `crfit.features` describes, for the tokens of a sequence at once.
//
// An atom is a property of one position: a text, a mark without text, or nothing. A rule joins atoms at offsets from
// the position: if all of them are there, the position has the attribute
//
//     name=text|text     name and `=` as given, then the texts of the atoms that have one, in their order
//
// Positions outside the sequence have no atoms. Python makes atoms and rules from the text language and checks them;
// src/crfit/features/ says what each atom is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/alphabet.hpp"
#include "text/characters.hpp"
#include "text/templates.hpp"

namespace crfit {

// The numbers are those of `crfit.features.terms`.
enum class AtomKind : int32_t {
  bias,
  word,
  lower,
  prefix,  // of `argument` characters
  lower_prefix,
  suffix,
  lower_suffix,
  shape,   // runs of at most `argument` equal characters
  is,      // all characters; `argument` is a CharacterClass
  has,     // some character
  length,  // at most `argument`
  from_start,
  from_end,
  first,
  last,
  in_brackets,
  commas,   // before it, at most `argument`
  cluster,  // the first `argument` characters of the class, 0: all
  gazetteer,
};

enum class TokenClass : int32_t {
  alpha,
  digit,
  alnum,
  upper,
  lower,
  title,
  mixed,
  punctuation,
  ascii,
  initial,
  number,
  roman,
};

enum class CharacterClass : int32_t {
  letter,
  upper,
  lower,
  digit,
  punctuation,
  hyphen,
  period,
  comma,
  slash,
  apostrophe,
  non_ascii,
};

struct Atom {
  AtomKind kind;
  int32_t argument = 0;
  int32_t column = 0;
  int32_t resource = -1;
};

struct Rule {
  struct Piece {
    int32_t atom, offset;
  };
  std::string name;  // with `=` if an atom has a text
  std::vector<Piece> pieces;
};

// Words and their classes.
class Clusters {
 public:
  explicit Clusters(std::string_view lines);  // `word TAB class LF`; the last line of a word counts
  // The class of a word, or of its lower-case form; without data if there is neither.
  std::string_view find(std::string_view word, std::string_view lower) const;

 private:
  Alphabet words_, classes_;
  std::vector<int32_t> class_of_;
};

// Names of one or more tokens.
class Gazetteer {
 public:
  Gazetteer(std::string_view lines, bool exact);  // names, each with LF; spaces between tokens
  bool exact() const { return exact_; }
  int32_t token(std::string_view text) const { return tokens_.find(text); }
  // Tokens of the longest name that starts at the first of n tokens, given as ids; 0: none.
  int64_t longest(const int32_t* ids, int64_t n) const;

 private:
  static uint64_t key(int32_t node, int32_t token) {
    return static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 | static_cast<uint32_t>(token);
  }
  bool exact_;
  Alphabet tokens_;
  std::unordered_map<uint64_t, int32_t> next_;  // (node, token) -> node; the root is 0
  std::vector<bool> is_name_{false};            // [nodes]
};

struct Resource {
  std::unique_ptr<Clusters> clusters;
  std::unique_ptr<Gazetteer> gazetteer;  // one of the two
};

class Features {
 public:
  // Throws std::invalid_argument if an index is out of range or an atom lacks its resource.
  Features(std::vector<Atom> atoms, std::vector<Rule> rules, std::vector<Resource> resources);
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  const std::vector<Atom>& atoms() const { return atoms_; }
  const std::vector<Rule>& rules() const { return rules_; }
  const Resource& resource(const Atom& atom) const { return resources_[static_cast<std::size_t>(atom.resource)]; }
  int64_t n_columns() const { return n_columns_; }  // that a token needs, at least 1

 private:
  std::vector<Atom> atoms_;
  std::vector<Rule> rules_;
  std::vector<Resource> resources_;
  int64_t n_columns_ = 1;
};

// Bytes that stay where they are until all are given back.
class Arena {
 public:
  char* room(std::size_t n) {
    if (block_ == nullptr || used_ + n > size_) grow(n);  // never null, even for no bytes
    char* const found = block_ + used_;
    used_ += n;
    n_bytes_ += n;
    return found;
  }
  void reset();
  std::size_t bytes() const { return n_bytes_; }  // given since then

 private:
  void grow(std::size_t n);
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::size_t> sizes_;
  std::size_t next_ = 0;  // block after the current one
  char* block_ = nullptr;
  std::size_t used_ = 0, size_ = 0, n_bytes_ = 0;
};

// Makes the attributes of one sequence after another, as ids of an alphabet; the memory of one thread.
//
// Most attributes follow from a single token, and few tokens are new: what follows from a token is kept, with the ids
// of its attributes in each rule, so that a position mostly copies ids. Only other rules, such as joins, write names.
class Extractor {
 public:
  // Numbers new attributes in `growing`, if given; otherwise they get the id -1. Keeps about `n_kept` tokens between
  // sequences. The features and the alphabet must outlive this object.
  Extractor(const Features& features, const Alphabet& alphabet, Alphabet* growing = nullptr,
            int64_t n_kept = int64_t{1} << 15);

  // Reads the tokens of a sequence.
  void begin(const Cells& cells);
  // Sets ids to the attributes of position t, in the order of the rules.
  void make(int64_t t);

  std::vector<int32_t> ids;

 private:
  // How an atom or a rule is found: the column of a token and a place among what is kept for it. Column -1: an atom
  // of the sequence, at this place among them; a rule that is written at each position.
  struct Place {
    int32_t column = -1, index = 0;
  };
  // What is kept for the tokens of a column.
  struct Column {
    std::vector<int32_t> atoms;  // numbers of its atoms
    std::size_t n_rules = 0;     // rules of a single one of them
    std::vector<int32_t> gazetteers;
    Alphabet tokens;
    std::vector<std::string_view> values;  // [tokens][atoms], without data where an atom is missing
    std::vector<int32_t> rule_ids;         // [tokens][n_rules], kNew, kAbsent or an id
    std::vector<int32_t> gazetteer_ids;    // [tokens][gazetteers] token ids of the gazetteer
  };
  static constexpr int32_t kNew = -2, kAbsent = -3;

  void forget();
  void read_token(std::string_view token, Column& column);
  std::string_view value_of(const Atom& atom, std::string_view token);
  std::string_view lowered(std::string_view token);
  std::string_view shape(std::size_t longest);
  std::string_view copied(std::string_view text);
  std::string_view number(Arena& arena, int64_t n, int64_t most);
  void read_sequence(const Cells& cells, const Atom& atom, std::size_t s);
  void match(const Atom& atom, std::size_t s);
  // Writes the name of a rule at position t; without data if the position does not have it.
  std::string_view written(const Rule& rule, int64_t t);
  std::string_view value_at(int32_t atom, int64_t t) const;

  const Features& features_;
  const Alphabet& alphabet_;
  Alphabet* const growing_;
  const int64_t n_kept_;
  std::vector<Place> atom_places_, rule_places_;
  std::vector<Column> columns_;
  std::vector<int32_t> sequence_atoms_;
  Arena kept_, passing_, made_;  // texts of tokens, of the sequence, of the position

  int64_t n_ = 0;
  std::vector<int32_t> tokens_;                    // [columns][T] ids in Column::tokens
  std::vector<std::string_view> sequence_values_;  // [T][sequence_atoms_]
  // Names that are looked up at the current position.
  struct Wanted {
    std::size_t place;  // in ids
    int32_t* kept;      // where the id is kept, or null
  };
  std::vector<std::string_view> names_;
  std::vector<uint64_t> hashes_;
  std::vector<Wanted> wanted_;
  std::vector<int32_t> found_;
  // The current token.
  std::vector<Character> characters_;
  std::string lower_;
  std::string_view lower_text_;        // kept
  std::vector<uint32_t> lower_begin_;  // [characters + 1], or empty
  std::string shape_;
  std::vector<int32_t> matched_;  // tokens of a gazetteer
};

}  // namespace crfit
