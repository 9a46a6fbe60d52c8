#include "text/huggingface/models/word_models.h"

#include <utility>
#include <vector>

#include "core/strings/utf8.h"
#include "text/huggingface/characters/characters.h"

namespace linserve {
namespace {

void AddUnknown(int32_t unknown, size_t at, size_t bytes, FoundTokens& found) {
  if (unknown >= 0) {
    found.Add(unknown, at, at + bytes);
  } else {
    found.lacks_unknown = true;
  }
}

// Returns a trie of the tokens that begin with `prefix`, without it.
PieceTrie TrieOf(const TokenVocabulary& vocabulary, std::string_view prefix) {
  std::vector<PieceTrie::Entry> entries;
  for (const auto& [text, id] : vocabulary.ids()) {
    if (!text.starts_with(prefix) || text.size() == prefix.size()) continue;
    entries.emplace_back(text.substr(prefix.size()), id);
  }
  return PieceTrie(std::move(entries));
}

}  // namespace

void WordLevelModel::Encode(std::string_view word, size_t at, FoundTokens& found) const {
  const int32_t id = vocabulary_.Find(word);
  if (id >= 0) {
    found.Add(id, at, at + word.size());
  } else {
    AddUnknown(unknown_, at, word.size(), found);
  }
}

WordPieceModel::WordPieceModel(const TokenVocabulary& vocabulary, const WordPieceOptions& options)
    : most_characters_(static_cast<size_t>(options.max_input_chars_per_word)),
      unknown_(vocabulary.Find(options.unk_token)),
      beginnings_(TrieOf(vocabulary, "")),
      continuations_(TrieOf(vocabulary, options.continuing_subword_prefix)) {}

void WordPieceModel::Encode(std::string_view word, size_t at, FoundTokens& found) const {
  const bool may_be_long = word.size() > most_characters_;
  const bool too_long = may_be_long && CountCharacters(word) > most_characters_;
  const size_t ids_before = found.ids.size();
  const size_t places_before = found.places.size();
  if (!too_long && TakePieces(word, at, found)) return;
  found.ids.resize(ids_before);
  found.places.resize(places_before);
  AddUnknown(unknown_, at, word.size(), found);
}

bool WordPieceModel::TakePieces(std::string_view word, size_t at, FoundTokens& found) const {
  for (size_t begin = 0; begin < word.size();) {
    const PieceTrie& trie = begin == 0 ? beginnings_ : continuations_;
    PieceTrie::Node node = PieceTrie::kRoot;
    int32_t id = -1;
    size_t end = begin;
    for (size_t i = begin; i < word.size(); ++i) {
      node = trie.Next(node, word[i]);
      if (node == PieceTrie::kNone) break;
      const int32_t value = trie.ValueAt(node);
      if (value < 0) continue;
      id = value;
      end = i + 1;
    }
    if (id < 0) return false;
    found.Add(id, at + begin, at + end);
    begin = end;
  }
  return true;
}

}  // namespace linserve
