#include "text/sentencepiece/choose_pieces.h"

#include <algorithm>

#include "core/strings/utf8.h"

namespace linserve {
namespace {

ChosenPiece Found(const Vocabulary& vocabulary, std::string_view text) {
  const int32_t id = vocabulary.found.Find(text);
  return {text, id >= 0 ? id : vocabulary.unknown};
}

// Takes each word as a piece. A word begins with the symbol of a space.
std::vector<ChosenPiece> ChooseWords(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<ChosenPiece> chosen;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(kSpaceSymbol, 1));
    chosen.push_back(Found(vocabulary, word));
    text.remove_prefix(word.size());
  }
  return chosen;
}

std::vector<ChosenPiece> ChooseCharacters(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<ChosenPiece> chosen;
  while (!text.empty()) {
    const size_t own = vocabulary.user_defined.LongestPrefix(text);
    chosen.push_back(Found(vocabulary, text.substr(0, own > 0 ? own : CharacterBytes(text))));
    text.remove_prefix(chosen.back().text.size());
  }
  return chosen;
}

// Describes the best way to the end of a piece.
struct Best {
  float score = 0;
  uint32_t from = 0;
  int32_t id = -1;  // -1: no way is known
};

// The library compares in the type of the candidate's score, and keeps it as a float.
template <typename Score>
void Improve(Best& best, Score candidate, uint32_t from, int32_t id) {
  if (best.id < 0 || candidate > best.score) best = {static_cast<float>(candidate), from, id};
}

// Improves the ways that go on from `from` with one more piece.
void ExtendFrom(const Vocabulary& vocabulary, std::string_view text, uint32_t from,
                std::vector<Best>& best) {
  constexpr float kUnknownPenalty = 10.0;
  const float before = best[from].score;
  const size_t character = from + CharacterBytes(text.substr(from));
  bool known = false;  // whether the character by itself is a piece
  PieceTrie::Node node = PieceTrie::kRoot;
  for (size_t end = from + 1; end <= text.size(); ++end) {
    node = vocabulary.found.Next(node, text[end - 1]);
    if (node == PieceTrie::kNone) break;
    const int32_t id = vocabulary.found.ValueAt(node);
    if (id < 0) continue;
    const Piece& piece = vocabulary.model.pieces[static_cast<size_t>(id)];
    if (piece.kind == PieceKind::kUnused) continue;
    // A user-defined piece is to be taken in any case.
    const double score = piece.kind == PieceKind::kUserDefined
                             ? static_cast<float>(end - from) * vocabulary.most_score - 0.1
                             : piece.score;
    Improve(best[end], score + before, from, id);
    known = known || end == character;
  }
  if (known) return;
  Improve(best[character], vocabulary.least_score - kUnknownPenalty + before, from,
          vocabulary.unknown);
}

}  // namespace

// Finds the way through the text whose pieces have the greatest sum of scores (Viterbi).
std::vector<ChosenPiece> ChooseUnigram(const Vocabulary& vocabulary, std::string_view text,
                                       float& score) {
  std::vector<Best> best(text.size() + 1);
  best[0].score = score;
  for (size_t from = 0; from < text.size(); from += CharacterBytes(text.substr(from))) {
    ExtendFrom(vocabulary, text, static_cast<uint32_t>(from), best);
  }
  score = best.back().score;
  std::vector<ChosenPiece> chosen;
  for (size_t end = text.size(); end > 0; end = best[end].from) {
    chosen.push_back({text.substr(best[end].from, end - best[end].from), best[end].id});
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<ChosenPiece> ChoosePieces(const Vocabulary& vocabulary, std::string_view text,
                                      float& score) {
  switch (vocabulary.model.method) {
    case PieceMethod::kBpe:
      return ChooseBpe(vocabulary, text);
    case PieceMethod::kWord:
      return ChooseWords(vocabulary, text);
    case PieceMethod::kChar:
      return ChooseCharacters(vocabulary, text);
    case PieceMethod::kUnigram:
      break;
  }
  return ChooseUnigram(vocabulary, text, score);
}

}  // namespace linserve
