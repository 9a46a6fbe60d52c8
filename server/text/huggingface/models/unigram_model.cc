#include "text/huggingface/models/unigram_model.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "text/huggingface/characters/characters.h"
#include "text/huggingface/models/byte_tokens.h"

namespace linserve {
namespace {

constexpr double kPenaltyOfUnknown = 10.0;

}  // namespace

UnigramModel::UnigramModel(const TokenVocabulary& vocabulary, std::vector<double> scores,
                           int32_t unknown, bool byte_fallback)
    : vocabulary_(vocabulary), scores_(std::move(scores)), unknown_(unknown) {
  std::vector<PieceTrie::Entry> entries(vocabulary.ids().begin(), vocabulary.ids().end());
  tokens_ = PieceTrie(std::move(entries));
  const auto least = std::min_element(scores_.begin(), scores_.end());
  unknown_score_ = (least == scores_.end() ? 0 : *least) - kPenaltyOfUnknown;
  if (byte_fallback) bytes_ = ByteTokens(vocabulary);
}

// Improves the ways that go on from `from` with one more token. Returns false if something is
// unknown and there is no token for that.
bool UnigramModel::ExtendFrom(std::string_view piece, uint32_t from,
                              std::vector<Best>& best) const {
  const double before = best[from].score;
  const auto improve = [&](size_t end, double score, int32_t id) {
    Best& target = best[end];
    if (target.id == kNowhere || score + before > target.score) {
      target = {score + before, from, id};
    }
  };
  const size_t character = from + CharacterAt(piece, from).bytes;
  bool known = false;  // whether the character by itself is a token
  PieceTrie::Node node = PieceTrie::kRoot;
  for (size_t end = from + 1; end <= piece.size(); ++end) {
    node = tokens_.Next(node, piece[end - 1]);
    if (node == PieceTrie::kNone) break;
    const int32_t id = tokens_.ValueAt(node);
    if (id < 0) continue;
    improve(end, scores_[static_cast<size_t>(id)], id);
    known = known || end == character;
  }
  if (known) return true;
  improve(character, unknown_score_, unknown_);
  // The package looks at this only where no other way is better.
  return unknown_ >= 0 || best[character].id != unknown_ || best[character].from != from;
}

void UnigramModel::Encode(std::string_view piece, size_t at, FoundTokens& found) const {
  std::vector<Best> best(piece.size() + 1);
  for (size_t from = 0; from < piece.size(); from += CharacterAt(piece, from).bytes) {
    if (ExtendFrom(piece, static_cast<uint32_t>(from), best)) continue;
    found.lacks_unknown = true;
    return;
  }
  std::vector<std::pair<ByteRange, int32_t>> chosen;  // from the back
  for (size_t end = piece.size(); end > 0; end = best[end].from) {
    const Best& one = best[end];
    if (one.id == unknown_ && !chosen.empty() && chosen.back().second == unknown_) {
      chosen.back().first.begin = one.from;  // what is unknown is one token together
    } else {
      chosen.push_back({{one.from, end}, one.id});
    }
  }
  for (auto one = chosen.rbegin(); one != chosen.rend(); ++one) {
    const auto& [range, id] = *one;
    if (id == unknown_) {
      AddUnknown(piece, range.begin, range.end, at, found);
    } else {
      found.Add(id, at + range.begin, at + range.end);
    }
  }
}

void UnigramModel::AddUnknown(std::string_view piece, size_t begin, size_t end, size_t at,
                              FoundTokens& found) const {
  const std::string_view text = piece.substr(begin, end - begin);
  // It may be the text of the unknown token itself, or of another that is made of unknown parts.
  if (const int32_t id = vocabulary_.Find(text); id >= 0) {
    found.Add(id, at + begin, at + end);
    return;
  }
  const auto is_token = [this](char byte) {
    return (*bytes_)[static_cast<unsigned char>(byte)] >= 0;
  };
  if (bytes_ && std::all_of(text.begin(), text.end(), is_token)) {
    for (const char byte : text) {
      found.Add((*bytes_)[static_cast<unsigned char>(byte)], at + begin, at + end);
    }
    return;
  }
  found.Add(unknown_, at + begin, at + end);
}

}  // namespace linserve
