#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/huggingface/members/part_members.h"
#include "text/huggingface/normalize/normalizers.h"

namespace linserve {
namespace {

using nlohmann::json;

std::optional<UnicodeForm> FormOf(const std::string& type) {
  if (type == "NFC") return UnicodeForm::kNfc;
  if (type == "NFD") return UnicodeForm::kNfd;
  if (type == "NFKC") return UnicodeForm::kNfkc;
  if (type == "NFKD") return UnicodeForm::kNfkd;
  return std::nullopt;
}

NormalizerPart ReadBertNormalizer(PartMembers& members) {
  BertNormalizer bert{.clean_text = members.Bool("clean_text"),
                      .handle_chinese_chars = members.Bool("handle_chinese_chars"),
                      .strip_accents = false,
                      .lowercase = members.Bool("lowercase")};
  bert.strip_accents = members.Bool("strip_accents", bert.lowercase);
  return bert;
}

absl::StatusOr<NormalizerPart> ReadReplaceNormalizer(PartMembers& members) {
  const json pattern = members.members().value("pattern", json());
  auto found = Pattern::FromJson(pattern);
  if (!found.ok()) return found.status();
  return ReplaceNormalizer{*std::move(found), members.Text("content")};
}

absl::StatusOr<NormalizerPart> ReadCharsmap(PartMembers& members) {
  auto charsmap = Charsmap::FromBase64(members.Text("precompiled_charsmap"));
  if (!charsmap.ok()) return charsmap.status();
  return *std::move(charsmap);
}

absl::StatusOr<NormalizerPart> ReadNormalizer(PartMembers& members) {
  const std::string& type = members.type();
  if (const auto form = FormOf(type)) return NormalizerPart(*form);
  if (type == "BertNormalizer") return ReadBertNormalizer(members);
  if (type == "Lowercase") return LowercaseNormalizer();
  if (type == "StripAccents") return StripAccentsNormalizer();
  if (type == "Nmt") return NmtNormalizer();
  if (type == "ByteLevel") return ByteLevelNormalizer();
  if (type == "Replace") return ReadReplaceNormalizer(members);
  if (type == "Precompiled") return ReadCharsmap(members);
  if (type == "Prepend") return PrependNormalizer{members.Text("prepend")};
  if (type == "Strip") {
    return StripNormalizer{members.Bool("strip_left"), members.Bool("strip_right")};
  }
  return members.Unknown();
}

}  // namespace

absl::StatusOr<NormalizerChain> NormalizerChain::FromJson(const json& part) {
  std::vector<NormalizerPart> parts;
  if (part.is_null()) return NormalizerChain();
  if (absl::Status status = ReadParts(part, "normalizer", "normalizers", ReadNormalizer, parts);
      !status.ok())
    return status;
  return NormalizerChain(std::move(parts));
}

}  // namespace linserve
