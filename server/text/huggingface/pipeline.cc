#include "text/huggingface/pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

// Normalizes the text of an added token.
absl::StatusOr<std::string> Normalized(const NormalizerChain& normalizer, const std::string& text) {
  AlignedText block;
  block.text = text;
  NormalizerState state = normalizer.Begin();
  if (absl::Status status = normalizer.Apply(state, true, block); !status.ok()) return status;
  return std::move(block.text);
}

}  // namespace

absl::Status Pipeline::AddTokens(std::vector<AddedToken> tokens) {
  // A model of scores counts a token that stands twice as two.
  const bool scored = model && std::holds_alternative<UnigramModel>(*model);
  int64_t next_id = scored ? vocabulary.size() : static_cast<int64_t>(vocabulary.texts());
  absl::flat_hash_map<std::string, size_t> places;  // in `added`
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    const auto [place, is_new] = places.try_emplace(token.content, added.size());
    const int32_t known = vocabulary.Find(token.content);
    token.id = !is_new ? added[place->second].id : known >= 0 ? known : next_id++;
    if (token.id >= kMostIds) {
      return absl::InvalidArgumentError("its added token " + Quoted(token.content) +
                                        " would have the id " + std::to_string(token.id) +
                                        ", expected less than " + std::to_string(kMostIds));
    }
    if (is_new) added.emplace_back();
    added[place->second] = std::move(token);
  }
  ids = vocabulary.size();
  std::vector<AddedTokenFinder::Entry> plain;
  std::vector<AddedTokenFinder::Entry> normalized;
  for (size_t i = 0; i < added.size(); ++i) {
    const AddedToken& token = added[i];
    ids = std::max(ids, token.id + 1);
    decoded.push_back(token.content);
    if (!token.normalized) {
      plain.emplace_back(token.content, static_cast<int32_t>(i));
      continue;
    }
    auto text = Normalized(normalizer, token.content);
    if (!text.ok()) return text.status();
    decoded.back() = *text;
    normalized.emplace_back(*std::move(text), static_cast<int32_t>(i));
  }
  added_by_id.resize(static_cast<size_t>(ids));
  for (const AddedToken& token : added) added_by_id[static_cast<size_t>(token.id)] = &token;
  before_normalizing = AddedTokenFinder(added, std::move(plain));
  after_normalizing = AddedTokenFinder(added, std::move(normalized));
  return absl::OkStatus();
}

int64_t Pipeline::IdOf(std::string_view text) const {
  for (const AddedToken& token : added) {
    if (token.content == text) return token.id;
  }
  return vocabulary.Find(text);
}

const std::string& Pipeline::DecodedText(int64_t id) const {
  const AddedToken* const token =
      id >= 0 && id < ids ? added_by_id[static_cast<size_t>(id)] : nullptr;
  if (token == nullptr) return vocabulary.TextOf(id);
  return decoded[static_cast<size_t>(token - added.data())];
}

}  // namespace linserve
