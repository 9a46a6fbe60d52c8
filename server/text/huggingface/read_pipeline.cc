#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/json/json_reader.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "text/huggingface/members/part_members.h"
#include "text/huggingface/pipeline.h"
#include "text/huggingface/read_model.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr size_t kLongestPart = 8 << 20;  // bytes; a charsmap has some 300 KB
constexpr size_t kMostAdded = 65'536;

// Holds the members of the file: the model, and the text of the others.
struct FileMembers {
  std::optional<ModelMembers> model;
  json version;
  json truncation;
  json added_tokens = json::array();
  json normalizer;
  json pre_tokenizer;
  json post_processor;
  json decoder;
};

// Returns where a member of this name belongs; null if it is not needed.
json* PlaceOf(const std::string& name, FileMembers& members) {
  if (name == "version") return &members.version;
  if (name == "truncation") return &members.truncation;
  if (name == "added_tokens") return &members.added_tokens;
  if (name == "normalizer") return &members.normalizer;
  if (name == "pre_tokenizer") return &members.pre_tokenizer;
  if (name == "post_processor") return &members.post_processor;
  return name == "decoder" ? &members.decoder : nullptr;
}

absl::StatusOr<FileMembers> ReadMembers(std::string_view text) {
  FileMembers members;
  JsonReader reader(
      text, [] { return absl::OkStatus(); }, "it");
  absl::Status status = reader.Expect(JsonReader::Kind::kObject, "it is no JSON object");
  if (!status.ok()) return status;
  status = reader.Object([&](const std::string& name) -> absl::Status {
    if (name == "model") return ReadModelMembers(reader, members.model.emplace());
    const auto value = reader.Skip();
    json* const place = PlaceOf(name, members);
    if (!value.ok() || place == nullptr) return value.status();
    if (value->size() > kLongestPart) {
      return absl::InvalidArgumentError("its " + name + " has " + std::to_string(value->size()) +
                                        " bytes, expected at most " + std::to_string(kLongestPart));
    }
    auto parsed = ParseJson(*value);
    if (!parsed.ok()) return parsed.status();
    *place = *std::move(parsed);
    return absl::OkStatus();
  });
  if (status.ok()) status = reader.End();
  if (!status.ok()) return status;
  return members;
}

absl::StatusOr<std::vector<AddedToken>> ReadAdded(const json& list) {
  if (!list.is_array() || list.size() > kMostAdded) {
    return absl::InvalidArgumentError("its added_tokens are no array of at most " +
                                      std::to_string(kMostAdded));
  }
  std::vector<AddedToken> tokens;
  for (const json& one : list) {
    PartMembers members(one, "added token");
    tokens.push_back({.content = members.Text("content"),
                      .single_word = members.Bool("single_word"),
                      .lstrip = members.Bool("lstrip"),
                      .rstrip = members.Bool("rstrip"),
                      .normalized = members.Bool("normalized"),
                      .special = members.Bool("special")});
    members.Expect(tokens.back().content.size() <= kLongestToken,
                   "has more than " + std::to_string(kLongestToken) + " bytes");
    if (!members.status().ok()) return members.status();
  }
  return tokens;
}

absl::StatusOr<std::optional<Truncation>> ReadTruncation(const json& truncation) {
  if (truncation.is_null()) return std::nullopt;
  PartMembers members(truncation, "truncation");
  const std::string direction = members.Text("direction", "Right");
  members.Expect(direction == "Right" || direction == "Left",
                 "has a 'direction' that is neither Left nor Right");
  // The names say which end is cut off in the one, and which tokens are dropped in the other: that
  // is the same.
  if (!members.status().ok()) return members.status();
  return direction == "Left" ? Truncation::kLeft : Truncation::kRight;
}

// Sets a part that was read, or returns why there is none.
template <typename Part>
absl::Status Take(absl::StatusOr<Part> read, Part& into) {
  if (!read.ok()) return read.status();
  into = *std::move(read);
  return absl::OkStatus();
}

absl::Status ReadParts(FileMembers& members, Pipeline& pipeline) {
  absl::Status status = Take(NormalizerChain::FromJson(members.normalizer), pipeline.normalizer);
  if (status.ok()) status = Take(SplitChain::FromJson(members.pre_tokenizer), pipeline.splits);
  if (status.ok()) status = MakeModel(*std::move(members.model), pipeline);
  if (status.ok()) {
    status = Take(PostProcessing::FromJson(members.post_processor), pipeline.post);
  }
  if (status.ok()) status = Take(DecoderChain::FromJson(members.decoder), pipeline.decoder);
  if (status.ok()) status = Take(ReadTruncation(members.truncation), pipeline.truncation);
  if (!status.ok()) return status;
  auto added = ReadAdded(members.added_tokens);
  return added.ok() ? pipeline.AddTokens(*std::move(added)) : added.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Pipeline>> ReadPipeline(std::string_view text,
                                                             const TokenizerSettings& settings) {
  auto members = ReadMembers(text);
  if (!members.ok()) return members.status();
  if (!members->version.is_null() && members->version != "1.0") {
    return absl::InvalidArgumentError("its version is " + Quoted(JsonText(members->version)) +
                                      ", expected 1.0");
  }
  if (!members->model) return absl::InvalidArgumentError("it has no 'model'");
  auto normalizer = NormalizerBy(settings, std::move(members->normalizer));
  if (!normalizer.ok()) return normalizer.status();
  members->normalizer = *std::move(normalizer);
  auto pipeline = std::make_unique<Pipeline>();
  if (absl::Status status = ReadParts(*members, *pipeline); !status.ok()) return status;
  if (settings.truncation) pipeline->truncation = settings.truncation;
  return pipeline;
}

}  // namespace linserve
