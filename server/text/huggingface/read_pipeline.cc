#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "text/huggingface/file/file_members.h"
#include "text/huggingface/make_model.h"
#include "text/huggingface/members/part_members.h"
#include "text/huggingface/pipeline.h"
#include "text/huggingface/settings/class_parts.h"
#include "text/huggingface/settings/named_tokens.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr size_t kMostAdded = 65'536;

absl::StatusOr<std::vector<AddedToken>> ReadAdded(const json& of_file,
                                                  const TokenizerSettings& settings) {
  const auto all = of_file.is_array() && of_file.size() <= kMostAdded
                       ? AllAddedTokens(settings, of_file)
                       : absl::StatusOr<json>(json());
  if (!all.ok()) return all.status();
  if (!all->is_array() || all->size() > kMostAdded) {
    return absl::InvalidArgumentError("its added_tokens are no array of at most " +
                                      std::to_string(kMostAdded));
  }
  const auto splits_special = settings.Flag("split_special_tokens", false);
  if (!splits_special.ok()) return splits_special.status();
  std::vector<AddedToken> tokens;
  std::set<std::string> special;  // what is added once as special is so for the splitting of texts
  for (const json& one : *all) {
    PartMembers members(one, "added token");
    tokens.push_back({.content = members.Text("content"),
                      .single_word = members.Bool("single_word"),
                      .lstrip = members.Bool("lstrip"),
                      .rstrip = members.Bool("rstrip"),
                      .normalized = members.Bool("normalized"),
                      .special = members.Bool("special")});
    if (tokens.back().special) special.insert(tokens.back().content);
    tokens.back().stays_text = *splits_special && special.contains(tokens.back().content);
    members.Expect(tokens.back().content.size() <= kLongestToken,
                   "has more than " + std::to_string(kLongestToken) + " bytes");
    if (!members.status().ok()) return members.status();
  }
  for (const std::string& whole : settings.whole) {
    tokens.push_back({.content = whole, .normalized = false, .special = true});
  }
  return tokens;
}

// Reads which tokens of long texts are dropped, and how many are left.
absl::Status ReadTruncation(const json& truncation, Pipeline& pipeline) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  if (truncation.is_null()) return absl::OkStatus();
  PartMembers members(truncation, "truncation");
  const std::string direction = members.Text("direction", "Right");
  members.Expect(direction == "Right" || direction == "Left",
                 "has a 'direction' that is neither Left nor Right");
  // The names say which end is cut off in the one, and which tokens are dropped in the other: that
  // is the same.
  pipeline.truncation = direction == "Left" ? Truncation::kLeft : Truncation::kRight;
  const auto longest = truncation.find("max_length");
  if (longest != truncation.end() && longest->is_number_unsigned()) {
    pipeline.longest = static_cast<int64_t>(std::min(longest->get<uint64_t>(), kMost));
  }
  return members.status();
}

// Sets a part that was read, or returns why there is none.
template <typename Part>
absl::Status Take(absl::StatusOr<Part> read, Part& into) {
  if (!read.ok()) return read.status();
  into = *std::move(read);
  return absl::OkStatus();
}

// Returns the marks that are named, which are tokens of the pipeline by now.
PostProcessing PostOf(const NamedMarks& marks, const Pipeline& pipeline) {
  const int64_t after = pipeline.IdOf(marks.after);
  if (marks.before.empty()) return PostProcessing::Behind(after);
  const int64_t before = pipeline.IdOf(marks.before);
  PostProcessing post = marks.as_roberta ? PostProcessing::Roberta(before, after)
                                         : PostProcessing::Bert(before, after);
  post.trims_places = marks.trims_places;
  post.has_prefix = marks.has_prefix;
  return post;
}

// Refuses a tokenizer that would give the model types of tokens which are not all 0.
absl::Status CheckTypes(const TokenizerSettings& settings, const PostProcessing& post) {
  const bool named = settings.config.contains("model_input_names") && settings.takes_types();
  if (!named || !post.has_types) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "its post_processor gives tokens a 'type_id' other than 0, and tokenizer_config.json has "
      "'token_type_ids' among its model_input_names; texts are served with the type 0 alone");
}

// Leaves out the types of two texts, which transformers does not give to the model.
void DropTypes(PostProcessing& post) {
  if (!post.pair) return;
  for (PairPiece& piece : post.pair->pieces) piece.type = 0;
}

absl::StatusOr<std::unique_ptr<const Pipeline>> MakePipeline(FileMembers members,
                                                             const TokenizerSettings& settings) {
  auto pipeline = std::make_unique<Pipeline>();
  absl::Status status = FollowSettings(settings, members);
  const std::string unknown = members.model ? members.model->unk_token : "";
  const int64_t unknown_id = members.model ? members.model->unk_id : -1;
  if (status.ok())
    status = Take(NormalizerChain::FromJson(members.normalizer), pipeline->normalizer);
  if (status.ok()) status = Take(SplitChain::FromJson(members.pre_tokenizer), pipeline->splits);
  if (status.ok()) status = MakeModel(*std::move(members.model), *pipeline);
  if (status.ok()) status = Take(DecoderChain::FromJson(members.decoder), pipeline->decoder);
  if (status.ok()) status = ReadTruncation(members.truncation, *pipeline);
  std::vector<AddedToken> added;
  if (status.ok()) status = Take(ReadAdded(members.added_tokens, settings), added);
  if (status.ok()) status = pipeline->AddTokens(std::move(added));
  if (status.ok() && !members.marks) {
    status = Take(PostProcessing::FromJson(members.post_processor), pipeline->post);
    if (status.ok()) status = CheckTypes(settings, pipeline->post);
  }
  if (!status.ok()) return status;
  if (members.marks) pipeline->post = PostOf(*members.marks, *pipeline);
  if (!settings.takes_types()) DropTypes(pipeline->post);
  if (settings.truncation) pipeline->truncation = settings.truncation;
  const bool by_id = std::holds_alternative<UnigramModel>(*pipeline->model);
  const int64_t of_model = by_id ? unknown_id : pipeline->IdOf(unknown);
  if (of_model >= 0) pipeline->unknown = of_model;
  for (const char* mark : {"mask_token", "eos_token"}) {
    const int64_t id = pipeline->IdOf(settings.MarkText(mark));
    if (id >= 0 && !pipeline->filler) pipeline->filler = id;
  }
  return pipeline;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Pipeline>> ReadPipeline(std::string_view text,
                                                             const TokenizerSettings& settings) {
  auto members = ReadFileMembers(text);
  if (!members.ok()) return members.status();
  return MakePipeline(*std::move(members), settings);
}

absl::StatusOr<std::unique_ptr<const Pipeline>> PipelineOf(ModelMembers vocabulary,
                                                           const TokenizerSettings& settings) {
  FileMembers members;
  members.model = std::move(vocabulary);
  return MakePipeline(std::move(members), settings);
}

}  // namespace linserve
