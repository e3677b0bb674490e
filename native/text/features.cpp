#include "text/features.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "base/checks.hpp"

namespace crfit {
namespace {

constexpr std::string_view kMark{"", 0};  // of an atom without text: size 0, but with data
constexpr std::size_t kBlock = std::size_t{1} << 14;
constexpr int32_t kFarthest = 1000;  // offset
// Bytes of the texts of tokens that are kept between sequences.
constexpr std::size_t kMostBytes = std::size_t{1} << 23;

using Characters = std::vector<Character>;

bool is_letter(CharacterKind kind) { return kind != CharacterKind::other && kind != CharacterKind::number; }

bool holds(CharacterClass wanted, const Character& c) {
  switch (wanted) {
    case CharacterClass::letter: return is_letter(c.kind);
    case CharacterClass::upper: return c.kind == CharacterKind::upper;
    case CharacterClass::lower: return c.kind == CharacterKind::lower;
    case CharacterClass::digit: return c.kind == CharacterKind::number;
    case CharacterClass::punctuation: return c.kind == CharacterKind::other;
    case CharacterClass::hyphen: return c.code == '-' || (c.code >= 0x2010 && c.code <= 0x2015);
    case CharacterClass::period: return c.code == '.';
    case CharacterClass::comma: return c.code == ',';
    case CharacterClass::slash: return c.code == '/';
    case CharacterClass::apostrophe: return c.code == '\'' || c.code == 0x2019;
    case CharacterClass::non_ascii: return c.code >= 0x80;
  }
  return false;
}

template <class Test>
bool any(const Characters& token, Test test) {
  return std::any_of(token.begin(), token.end(), test);
}

template <class Test>
bool all(const Characters& token, Test test) {
  return !token.empty() && std::all_of(token.begin(), token.end(), test);
}

bool among(const Character& c, std::string_view wanted) {
  return c.code < 0x80 && wanted.find(static_cast<char>(c.code)) != std::string_view::npos;
}

bool holds(TokenClass wanted, const Characters& token) {
  using Kind = CharacterKind;
  const auto of = [](Kind kind) { return [kind](const Character& c) { return c.kind == kind; }; };
  const auto letter = [](const Character& c) { return is_letter(c.kind); };
  const auto later = [&](Kind kind) { return std::any_of(token.begin() + 1, token.end(), of(kind)); };
  if (token.empty()) return false;
  switch (wanted) {
    case TokenClass::alpha: return all(token, letter);
    case TokenClass::digit: return all(token, of(Kind::number));
    case TokenClass::alnum: return any(token, letter) && any(token, of(Kind::number)) && !any(token, of(Kind::other));
    case TokenClass::upper: return any(token, of(Kind::upper)) && !any(token, of(Kind::lower));
    case TokenClass::lower: return any(token, of(Kind::lower)) && !any(token, of(Kind::upper));
    case TokenClass::title: return token[0].kind == Kind::upper && !later(Kind::upper);
    case TokenClass::mixed: return later(Kind::upper) && any(token, of(Kind::lower));
    case TokenClass::punctuation: return all(token, of(Kind::other));
    case TokenClass::ascii: return all(token, [](const Character& c) { return c.code < 0x80; });
    case TokenClass::initial: return token.size() == 2 && token[0].kind == Kind::upper && token[1].code == '.';
    case TokenClass::number:
      return any(token, of(Kind::number)) &&
             all(token, [](const Character& c) { return c.kind == Kind::number || among(c, "+-.,:/%"); });
    case TokenClass::roman: return all(token, [](const Character& c) { return among(c, "IVXLCDM"); });
  }
  return false;
}

bool is_open(std::string_view token) { return token == "(" || token == "[" || token == "{"; }
bool is_close(std::string_view token) { return token == ")" || token == "]" || token == "}"; }

// Calls give(line) for each line.
template <class Give>
void each_line(std::string_view lines, Give give) {
  while (!lines.empty()) {
    const std::size_t n = std::min(lines.find('\n'), lines.size());
    give(lines.substr(0, n));
    lines.remove_prefix(std::min(n + 1, lines.size()));
  }
}

bool with_text(AtomKind kind) {
  switch (kind) {
    case AtomKind::bias:
    case AtomKind::is:
    case AtomKind::has:
    case AtomKind::first:
    case AtomKind::last:
    case AtomKind::in_brackets: return false;
    default: return true;
  }
}

// About the whole sequence, not a single token.
bool of_sequence(AtomKind kind) {
  switch (kind) {
    case AtomKind::bias:
    case AtomKind::from_start:
    case AtomKind::from_end:
    case AtomKind::first:
    case AtomKind::last:
    case AtomKind::in_brackets:
    case AtomKind::commas:
    case AtomKind::gazetteer: return true;
    default: return false;
  }
}

}  // namespace

// --- lists of words ---

Clusters::Clusters(std::string_view lines) {
  each_line(lines, [&](std::string_view line) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) throw std::invalid_argument("a word without a class");
    const int32_t word = words_.add(line.substr(0, tab)), its_class = classes_.add(line.substr(tab + 1));
    class_of_.resize(static_cast<std::size_t>(words_.size()));
    class_of_[static_cast<std::size_t>(word)] = its_class;
  });
}

std::string_view Clusters::find(std::string_view word, std::string_view lower) const {
  int32_t id = words_.find(word);
  if (id < 0) id = words_.find(lower);
  if (id < 0) return {};
  return classes_[class_of_[static_cast<std::size_t>(id)]];
}

Gazetteer::Gazetteer(std::string_view lines, bool exact) : exact_(exact) {
  std::vector<Character> characters;
  std::string text;
  each_line(lines, [&](std::string_view line) {
    int32_t node = 0;
    while (!line.empty()) {
      const std::size_t n = std::min(line.find(' '), line.size());
      std::string_view token = line.substr(0, n);
      line.remove_prefix(std::min(n + 1, line.size()));
      if (token.empty()) continue;
      if (!exact) {
        text.clear();
        decode(token, characters);
        append_lower(token, characters, text);
        token = text;
      }
      const auto [place, added] =
          next_.try_emplace(key(node, tokens_.add(token)), static_cast<int32_t>(is_name_.size()));
      node = place->second;
      if (added) is_name_.push_back(false);
    }
    if (node > 0) is_name_[static_cast<std::size_t>(node)] = true;
  });
}

int64_t Gazetteer::longest(const int32_t* ids, int64_t n) const {
  int32_t node = 0;
  int64_t found = 0;
  for (int64_t k = 0; k < n && ids[k] >= 0; ++k) {
    const auto place = next_.find(key(node, ids[k]));
    if (place == next_.end()) break;
    node = place->second;
    if (is_name_[static_cast<std::size_t>(node)]) found = k + 1;
  }
  return found;
}

// --- features ---

Features::Features(std::vector<Atom> atoms, std::vector<Rule> rules, std::vector<Resource> resources)
    : atoms_(std::move(atoms)), rules_(std::move(rules)), resources_(std::move(resources)) {
  const char* message = "atoms, rules or resources of features are not consistent";
  for (const Atom& atom : atoms_) {
    const bool list = atom.kind == AtomKind::cluster || atom.kind == AtomKind::gazetteer;
    require(atom.kind >= AtomKind::bias && atom.kind <= AtomKind::gazetteer, message);
    require(atom.column >= 0 && atom.column < kFarthest && atom.argument >= 0, message);
    require(list == (atom.resource >= 0), message);
    if (list) {
      require(atom.resource < static_cast<int32_t>(resources_.size()), message);
      const bool clusters = resource(atom).clusters != nullptr;
      require(clusters == (atom.kind == AtomKind::cluster), message);
    }
    n_columns_ = std::max<int64_t>(n_columns_, atom.column + 1);
  }
  for (const Rule& rule : rules_) {
    require(!rule.pieces.empty(), message);
    for (const auto [atom, offset] : rule.pieces)
      require(atom >= 0 && atom < static_cast<int32_t>(atoms_.size()) && offset >= -kFarthest && offset <= kFarthest,
              message);
  }
}

void Arena::reset() {
  next_ = used_ = size_ = n_bytes_ = 0;
  block_ = nullptr;
}

void Arena::grow(std::size_t n) {
  // The next block that is large enough; others wait for the next round.
  while (next_ < blocks_.size() && sizes_[next_] < n) ++next_;
  if (next_ == blocks_.size()) {
    sizes_.push_back(std::max(n, kBlock));
    blocks_.push_back(std::make_unique<char[]>(sizes_.back()));
  }
  block_ = blocks_[next_].get();
  size_ = sizes_[next_++];
  used_ = 0;
}

Extractor::Extractor(const Features& features, const Alphabet& alphabet, Alphabet* growing, int64_t n_kept)
    : features_(features),
      alphabet_(alphabet),
      growing_(growing),
      n_kept_(n_kept),
      columns_(static_cast<std::size_t>(features.n_columns())) {
  const std::vector<Atom>& atoms = features.atoms();
  for (std::size_t a = 0; a < atoms.size(); ++a) {
    const auto atom = static_cast<int32_t>(a);
    Column& column = columns_[static_cast<std::size_t>(atoms[a].column)];
    if (of_sequence(atoms[a].kind)) {
      atom_places_.push_back({-1, static_cast<int32_t>(sequence_atoms_.size())});
      sequence_atoms_.push_back(atom);
      if (atoms[a].kind == AtomKind::gazetteer) column.gazetteers.push_back(atom);
    } else {
      atom_places_.push_back({atoms[a].column, static_cast<int32_t>(column.atoms.size())});
      column.atoms.push_back(atom);
    }
  }
  for (const Rule& rule : features.rules()) {
    const int32_t column = atom_places_[static_cast<std::size_t>(rule.pieces[0].atom)].column;
    if (rule.pieces.size() == 1 && column >= 0) {
      rule_places_.push_back({column, static_cast<int32_t>(columns_[static_cast<std::size_t>(column)].n_rules++)});
    } else {
      rule_places_.push_back({});
    }
  }
}

void Extractor::forget() {
  kept_.reset();
  for (Column& column : columns_) {
    column.tokens = Alphabet();
    column.values.clear();
    column.rule_ids.clear();
    column.gazetteer_ids.clear();
  }
}

void Extractor::begin(const Cells& cells) {
  n_ = cells.n_rows;
  int64_t n_tokens = 0;
  for (const Column& column : columns_) n_tokens += column.tokens.size();
  if (n_tokens > n_kept_ || kept_.bytes() > kMostBytes) forget();
  passing_.reset();
  tokens_.resize(columns_.size() * static_cast<std::size_t>(n_));
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    Column& column = columns_[c];
    for (int64_t t = 0; t < n_; ++t) {
      std::string_view token = cells.cells[t * cells.n_columns + static_cast<int64_t>(c)];
      if (token.data() == nullptr) token = kMark;
      const int64_t n_known = column.tokens.size();
      const int32_t id = column.tokens.add(token);
      tokens_[c * static_cast<std::size_t>(n_) + static_cast<std::size_t>(t)] = id;
      if (id == n_known) read_token(token, column);
    }
  }
  sequence_values_.assign(static_cast<std::size_t>(n_) * sequence_atoms_.size(), {});
  for (std::size_t s = 0; s < sequence_atoms_.size(); ++s)
    read_sequence(cells, features_.atoms()[static_cast<std::size_t>(sequence_atoms_[s])], s);
}

// Appends all that follows from a new token alone.
void Extractor::read_token(std::string_view token, Column& column) {
  token = copied(token);
  decode(token, characters_);
  lower_begin_.clear();
  for (const int32_t a : column.atoms)
    column.values.push_back(value_of(features_.atoms()[static_cast<std::size_t>(a)], token));
  column.rule_ids.resize(column.rule_ids.size() + column.n_rules, kNew);
  for (const int32_t a : column.gazetteers) {
    const Gazetteer& names = *features_.resource(features_.atoms()[static_cast<std::size_t>(a)]).gazetteer;
    column.gazetteer_ids.push_back(names.token(names.exact() ? token : lowered(token)));
  }
}

// The current token in lower case.
std::string_view Extractor::lowered(std::string_view token) {
  if (!lower_begin_.empty()) return lower_text_;
  lower_.clear();
  for (const Character& c : characters_) {
    lower_begin_.push_back(static_cast<uint32_t>(lower_.size()));
    const uint32_t low = lower_of(c.code);
    if (low == c.code) {
      lower_.append(token.substr(c.begin, c.size));
    } else {
      append_utf8(low, lower_);
    }
  }
  lower_begin_.push_back(static_cast<uint32_t>(lower_.size()));
  return lower_text_ = lower_ == token ? token : copied(lower_);
}

std::string_view Extractor::copied(std::string_view text) {
  char* const place = kept_.room(text.size());
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

std::string_view Extractor::number(Arena& arena, int64_t n, int64_t most) {
  char* const place = arena.room(20);
  const auto [end, error] = std::to_chars(place, place + 20, std::min(n, most));
  return {place, static_cast<std::size_t>(end - place)};
}

std::string_view Extractor::value_of(const Atom& atom, std::string_view token) {
  const auto mark = [](bool there) { return there ? kMark : std::string_view{}; };
  const auto argument = static_cast<std::size_t>(atom.argument);
  switch (atom.kind) {
    case AtomKind::word: return token;
    case AtomKind::prefix:
    case AtomKind::suffix: {
      const std::size_t n = characters_.size();
      if (n < argument) return {};
      if (atom.kind == AtomKind::prefix)
        return token.substr(0, argument < n ? characters_[argument].begin : token.size());
      return token.substr(argument == 0 ? token.size() : characters_[n - argument].begin);
    }
    case AtomKind::lower:
    case AtomKind::lower_prefix:
    case AtomKind::lower_suffix:
    case AtomKind::cluster: {
      lowered(token);
      if (atom.kind == AtomKind::lower) return lower_text_;
      if (atom.kind == AtomKind::cluster) {
        const std::string_view its_class = features_.resource(atom).clusters->find(token, lower_text_);
        return argument == 0 ? its_class : its_class.substr(0, argument);
      }
      const std::size_t n = characters_.size();
      if (n < argument) return {};
      if (atom.kind == AtomKind::lower_prefix) return lower_text_.substr(0, lower_begin_[argument]);
      return lower_text_.substr(lower_begin_[n - argument]);
    }
    case AtomKind::shape: return shape(argument);
    case AtomKind::is: return mark(holds(static_cast<TokenClass>(atom.argument), characters_));
    case AtomKind::has: {
      const auto wanted = static_cast<CharacterClass>(atom.argument);
      return mark(any(characters_, [&](const Character& c) { return holds(wanted, c); }));
    }
    case AtomKind::length: return number(kept_, static_cast<int64_t>(characters_.size()), atom.argument);
    default: return {};
  }
}

// X for upper case, x for lower case, c for other letters, d for digits; others as they are; marks are left out.
std::string_view Extractor::shape(std::size_t longest) {
  char* const begin = kept_.room(4 * characters_.size());
  char* end = begin;
  uint32_t before = ~0u;
  std::size_t run = 0;
  for (const Character& c : characters_) {
    uint32_t sign = c.code;
    switch (c.kind) {
      case CharacterKind::upper: sign = 'X'; break;
      case CharacterKind::lower: sign = 'x'; break;
      case CharacterKind::letter: sign = 'c'; break;
      case CharacterKind::number: sign = 'd'; break;
      case CharacterKind::mark: continue;
      case CharacterKind::other: break;
    }
    run = sign == before ? run + 1 : 1;
    before = sign;
    if (run > longest) continue;
    if (sign < 0x80) {
      *end++ = static_cast<char>(sign);
    } else {
      shape_.clear();
      append_utf8(sign, shape_);
      end = std::copy(shape_.begin(), shape_.end(), end);
    }
  }
  return {begin, static_cast<std::size_t>(end - begin)};
}

void Extractor::read_sequence(const Cells& cells, const Atom& atom, std::size_t s) {
  const std::size_t S = sequence_atoms_.size();
  const auto token = [&](int64_t t) { return cells.cells[t * cells.n_columns + atom.column]; };
  const auto value = [&](int64_t t) -> std::string_view& {
    return sequence_values_[static_cast<std::size_t>(t) * S + s];
  };
  int64_t count = 0;  // open brackets, commas
  switch (atom.kind) {
    case AtomKind::bias:
      for (int64_t t = 0; t < n_; ++t) value(t) = kMark;
      break;
    case AtomKind::first:
      if (n_ > 0) value(0) = kMark;
      break;
    case AtomKind::last:
      if (n_ > 0) value(n_ - 1) = kMark;
      break;
    case AtomKind::from_start:
      for (int64_t t = 0; t < n_; ++t) value(t) = number(passing_, t, atom.argument);
      break;
    case AtomKind::from_end:
      for (int64_t t = 0; t < n_; ++t) value(t) = number(passing_, n_ - 1 - t, atom.argument);
      break;
    case AtomKind::in_brackets:
      for (int64_t t = 0; t < n_; ++t) {
        if (is_close(token(t)) && count > 0) --count;
        if (count > 0) value(t) = kMark;
        if (is_open(token(t))) ++count;
      }
      break;
    case AtomKind::commas:
      for (int64_t t = 0; t < n_; ++t) {
        value(t) = number(passing_, count, atom.argument);
        if (token(t) == ",") ++count;
      }
      break;
    case AtomKind::gazetteer: match(atom, s); break;
    default: break;
  }
}

// Marks the longest names from left to right: U for one token, B, I and L for the first, inner and last of several.
void Extractor::match(const Atom& atom, std::size_t s) {
  const Gazetteer& names = *features_.resource(atom).gazetteer;
  const Column& column = columns_[static_cast<std::size_t>(atom.column)];
  const std::size_t S = sequence_atoms_.size(), G = column.gazetteers.size();
  const std::size_t g = static_cast<std::size_t>(
      std::find(column.gazetteers.begin(), column.gazetteers.end(), sequence_atoms_[s]) - column.gazetteers.begin());
  const int32_t* const tokens = tokens_.data() + static_cast<std::size_t>(atom.column) * static_cast<std::size_t>(n_);
  matched_.resize(static_cast<std::size_t>(n_));
  for (int64_t t = 0; t < n_; ++t)
    matched_[static_cast<std::size_t>(t)] = column.gazetteer_ids[static_cast<std::size_t>(tokens[t]) * G + g];
  for (int64_t t = 0; t < n_;) {
    const int64_t length = names.longest(matched_.data() + t, n_ - t);
    for (int64_t k = 0; k < length; ++k)
      sequence_values_[static_cast<std::size_t>(t + k) * S + s] = length == 1       ? "U"
                                                                  : k == 0          ? "B"
                                                                  : k == length - 1 ? "L"
                                                                                    : "I";
    t += std::max<int64_t>(length, 1);
  }
}

std::string_view Extractor::value_at(int32_t atom, int64_t t) const {
  if (t < 0 || t >= n_) return {};
  const Place place = atom_places_[static_cast<std::size_t>(atom)];
  const auto index = static_cast<std::size_t>(place.index), at = static_cast<std::size_t>(t);
  if (place.column < 0) return sequence_values_[at * sequence_atoms_.size() + index];
  const auto c = static_cast<std::size_t>(place.column);
  const auto token = static_cast<std::size_t>(tokens_[c * static_cast<std::size_t>(n_) + at]);
  return columns_[c].values[token * columns_[c].atoms.size() + index];
}

std::string_view Extractor::written(const Rule& rule, int64_t t) {
  const std::vector<Atom>& atoms = features_.atoms();
  std::size_t size = rule.name.size() + rule.pieces.size();
  for (const auto [atom, offset] : rule.pieces) {
    const std::string_view value = value_at(atom, t + offset);
    if (value.data() == nullptr) return {};
    size += value.size();
  }
  char* const begin = made_.room(size);
  std::memcpy(begin, rule.name.data(), rule.name.size());
  char* end = begin + rule.name.size();
  bool more = false;
  for (const auto [atom, offset] : rule.pieces) {
    if (!with_text(atoms[static_cast<std::size_t>(atom)].kind)) continue;
    if (more) *end++ = '|';
    more = true;
    const std::string_view value = value_at(atom, t + offset);
    std::memcpy(end, value.data(), value.size());
    end += value.size();
  }
  return {begin, static_cast<std::size_t>(end - begin)};
}

void Extractor::make(int64_t t) {
  const std::vector<Rule>& rules = features_.rules();
  ids.clear();
  made_.reset();
  names_.clear();
  hashes_.clear();
  wanted_.clear();
  for (std::size_t r = 0; r < rules.size(); ++r) {
    int32_t* kept = nullptr;
    if (rule_places_[r].column >= 0) {
      const int64_t at = t + rules[r].pieces[0].offset;
      if (at < 0 || at >= n_) continue;
      const auto c = static_cast<std::size_t>(rule_places_[r].column);
      Column& column = columns_[c];
      const int32_t token = tokens_[c * static_cast<std::size_t>(n_) + static_cast<std::size_t>(at)];
      kept = &column.rule_ids[static_cast<std::size_t>(token) * column.n_rules +
                              static_cast<std::size_t>(rule_places_[r].index)];
      if (*kept != kNew) {
        if (*kept != kAbsent) ids.push_back(*kept);
        continue;
      }
    }
    const std::string_view name = written(rules[r], t);
    if (name.data() == nullptr) {
      if (kept != nullptr) *kept = kAbsent;
      continue;
    }
    names_.push_back(name);
    hashes_.push_back(hash_bytes(name));
    alphabet_.prefetch(hashes_.back());
    wanted_.push_back({ids.size(), kept});
    ids.push_back(-1);
  }
  // Names wait for memory together, and new ones get their ids in the order of the rules.
  found_.resize(names_.size());
  if (growing_ == nullptr) {
    alphabet_.find_hashed(names_.size(), names_.data(), hashes_.data(), found_.data());
  } else {
    for (const uint64_t hash : hashes_) alphabet_.prefetch_string(hash);
    for (std::size_t k = 0; k < names_.size(); ++k) found_[k] = growing_->add(names_[k], hashes_[k]);
  }
  for (std::size_t k = 0; k < names_.size(); ++k) {
    ids[wanted_[k].place] = found_[k];
    if (wanted_[k].kept != nullptr) *wanted_[k].kept = found_[k];
  }
}

}  // namespace crfit
