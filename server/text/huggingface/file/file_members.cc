#include "text/huggingface/file/file_members.h"

#include <utility>

#include "core/json/json_reader.h"
#include "core/json/json_text.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr size_t kLongestPart = 8 << 20;  // bytes; a charsmap has some 300 KB

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

}  // namespace

absl::StatusOr<FileMembers> ReadFileMembers(std::string_view text) {
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
  if (!members.version.is_null() && members.version != "1.0") {
    return absl::InvalidArgumentError("its version is " + Quoted(JsonText(members.version)) +
                                      ", expected 1.0");
  }
  if (!members.model) return absl::InvalidArgumentError("it has no 'model'");
  return members;
}

}  // namespace linserve
