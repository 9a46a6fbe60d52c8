#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/huggingface/characters/characters.h"
#include "text/huggingface/members/part_members.h"
#include "text/huggingface/split/pre_tokenizers.h"

namespace linserve {
namespace {

using nlohmann::json;

SplitBehavior ReadBehavior(PartMembers& members, const std::optional<std::string>& otherwise) {
  const std::string name = members.Text("behavior", otherwise);
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  members.Expect(name == "Isolated",
                 "has a 'behavior' that is none of Removed, Isolated, MergedWithPrevious, "
                 "MergedWithNext and Contiguous");
  return SplitBehavior::kIsolated;
}

SplitPart ReadMetaspaceSplit(PartMembers& members) {
  MetaspaceSplit metaspace;
  metaspace.replacement = members.Character("replacement");
  const std::string scheme = members.Text("prepend_scheme", "always");
  members.Expect(scheme == "always" || scheme == "never" || scheme == "first",
                 "has a 'prepend_scheme' that is none of always, never and first");
  if (scheme == "never") metaspace.scheme = PrependScheme::kNever;
  if (scheme == "first") metaspace.scheme = PrependScheme::kFirst;
  // Older files say it in this way.
  if (!members.Bool("add_prefix_space", true)) {
    members.Expect(scheme == "never" || !members.members().contains("prepend_scheme"),
                   "has an 'add_prefix_space' that contradicts its 'prepend_scheme'");
    metaspace.scheme = PrependScheme::kNever;
  }
  metaspace.split = members.Bool("split", true);
  return metaspace;
}

absl::StatusOr<SplitPart> ReadSplit(PartMembers& members) {
  auto pattern = Pattern::FromJson(members.members().value("pattern", json()));
  if (!pattern.ok()) return pattern.status();
  return PatternSplit{*std::move(pattern), ReadBehavior(members, std::nullopt),
                      members.Bool("invert")};
}

absl::StatusOr<SplitPart> ReadPreTokenizer(PartMembers& members) {
  const std::string& type = members.type();
  if (type == "BertPreTokenizer") return BertSplit();
  if (type == "Whitespace") return WhitespaceWords();
  if (type == "WhitespaceSplit") return WhitespaceSplit();
  if (type == "Metaspace") return ReadMetaspaceSplit(members);
  if (type == "Split") return ReadSplit(members);
  if (type == "Punctuation") return PunctuationSplit{ReadBehavior(members, "Isolated")};
  if (type == "Digits") return DigitsSplit{members.Bool("individual_digits")};
  if (type == "CharDelimiterSplit") {
    return DelimiterSplit{CharacterAt(members.Character("delimiter"), 0).code};
  }
  if (type == "ByteLevel") {
    return ByteLevelSplit{members.Bool("add_prefix_space"), members.Bool("use_regex", true)};
  }
  return members.Unknown();
}

}  // namespace

absl::StatusOr<SplitChain> SplitChain::FromJson(const json& part) {
  std::vector<SplitPart> parts;
  if (part.is_null()) return SplitChain();
  if (absl::Status status =
          ReadParts(part, "pre_tokenizer", "pretokenizers", ReadPreTokenizer, parts);
      !status.ok())
    return status;
  return SplitChain(std::move(parts));
}

}  // namespace linserve
