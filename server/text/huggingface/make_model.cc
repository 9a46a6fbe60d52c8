#include "text/huggingface/make_model.h"

#include <string>
#include <utility>
#include <vector>

#include "core/strings/quote.h"

namespace linserve {
namespace {

absl::Status Unusable(const std::string& what) {
  return absl::InvalidArgumentError("its model " + what);
}

absl::Status MakeWordPiece(const ModelMembers& members, Pipeline& pipeline) {
  constexpr int64_t kMostCharacters = 10'000;
  if (!members.has_unk_token || !members.has_prefix) {
    return Unusable("has no 'unk_token' or no 'continuing_subword_prefix'");
  }
  if (members.max_input_chars_per_word < 1 || members.max_input_chars_per_word > kMostCharacters) {
    return Unusable("has no 'max_input_chars_per_word' from 1 to " +
                    std::to_string(kMostCharacters));
  }
  pipeline.model.emplace(std::in_place_type<WordPieceModel>, pipeline.vocabulary,
                         WordPieceOptions{members.unk_token, members.continuing_subword_prefix,
                                          members.max_input_chars_per_word});
  return absl::OkStatus();
}

absl::Status MakeWordLevel(const ModelMembers& members, Pipeline& pipeline) {
  if (!members.has_unk_token) return Unusable("has no 'unk_token'");
  pipeline.model.emplace(std::in_place_type<WordLevelModel>, pipeline.vocabulary,
                         members.unk_token);
  return absl::OkStatus();
}

absl::Status MakeUnigram(ModelMembers& members, Pipeline& pipeline) {
  if (members.scores.size() != members.tokens.size()) {
    return Unusable("has no 'vocab' of tokens with scores");
  }
  if (members.unk_id < -1 || members.unk_id >= std::ssize(members.scores)) {
    return Unusable("has an 'unk_id' that is none of its " + std::to_string(members.scores.size()) +
                    " tokens'");
  }
  pipeline.model.emplace(std::in_place_type<UnigramModel>, pipeline.vocabulary,
                         std::move(members.scores), static_cast<int32_t>(members.unk_id),
                         members.byte_fallback);
  return absl::OkStatus();
}

absl::Status MakeBpe(ModelMembers& members, Pipeline& pipeline) {
  if (members.dropout != 0) return Unusable("has a 'dropout', with which no two texts are alike");
  std::vector<BpeModel::Merge> merges;
  merges.reserve(members.merges.size());
  for (const auto& [left, right] : members.merges) {
    const int32_t left_id = pipeline.vocabulary.Find(left);
    const int32_t right_id = pipeline.vocabulary.Find(right);
    if (left_id < 0 || right_id < 0) {
      return Unusable("has a merge of " + Quoted(left_id < 0 ? left : right) +
                      ", which is no token");
    }
    merges.emplace_back(left_id, right_id);
  }
  BpeOptions options{.unk_token = std::move(members.unk_token),
                     .continuing_subword_prefix = std::move(members.continuing_subword_prefix),
                     .end_of_word_suffix = std::move(members.end_of_word_suffix),
                     .fuse_unk = members.fuse_unk,
                     .byte_fallback = members.byte_fallback,
                     .ignore_merges = members.ignore_merges};
  const bool takes_bytes = pipeline.splits.ends_in_bytes() && BpeModel::MayTakeBytes(options);
  if (takes_bytes) pipeline.splits.KeepBytes();
  auto model = BpeModel::Make(pipeline.vocabulary, merges, std::move(options), takes_bytes);
  if (!model.ok()) return Unusable("is none: " + std::string(model.status().message()));
  pipeline.model.emplace(*std::move(model));
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeModel(ModelMembers members, Pipeline& pipeline) {
  for (auto& [text, id] : members.tokens) {
    if (absl::Status status = pipeline.vocabulary.Add(std::move(text), id); !status.ok()) {
      return status;
    }
  }
  pipeline.vocabulary.Index();
  const std::string type = ModelTypeOf(members);
  if (type == "WordPiece") return MakeWordPiece(members, pipeline);
  if (type == "WordLevel") return MakeWordLevel(members, pipeline);
  if (type != "BPE" && type != "Unigram") {
    return Unusable(Quoted(type) +
                    " is not known here, expected one of WordPiece, WordLevel, BPE and "
                    "Unigram");
  }
  absl::Status status = type == "BPE" ? MakeBpe(members, pipeline) : MakeUnigram(members, pipeline);
  if (status.ok() && pipeline.splits.leaves_to_model()) {
    pipeline.neighbours.emplace(pipeline.vocabulary);
  }
  return status;
}

}  // namespace linserve
