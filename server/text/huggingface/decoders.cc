#include "text/huggingface/decoders.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "core/strings/utf8.h"
#include "text/huggingface/characters/byte_characters.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/members/part_members.h"

namespace linserve {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string made;
  size_t copied = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, copied)) {
    made.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  if (copied > 0) text = made.append(text, copied);
}

// Undoes what English texts look like where each mark is a word.
void CleanUp(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) ReplaceAll(text, from, to);
}

absl::Status Do(const WordPieceDecoder& part, Texts& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0 && token.starts_with(part.prefix)) {
      token.erase(0, part.prefix.size());
    } else if (i > 0) {
      token.insert(0, " ");
    }
    if (part.cleanup) CleanUp(token);
  }
  return absl::OkStatus();
}

// Returns whether bytes, of which there are two at least, lack only some at the end to be a
// character.
bool BeginsCharacter(std::string_view bytes) {
  constexpr std::string_view kRest = "\x80\x80";
  for (size_t rest = 1; rest <= kRest.size(); ++rest) {
    const std::string whole = std::string(bytes).append(kRest.substr(0, rest));
    if (CharacterBytes(whole) == whole.size()) return true;
  }
  return false;
}

// Appends the characters of a text; for what is none, one that says so for each maximal beginning
// of one, as Unicode recommends it.
void AppendSound(std::string_view bytes, std::string& text) {
  while (!bytes.empty()) {
    const size_t sound = Utf8Prefix(bytes);
    text += bytes.substr(0, sound);
    bytes.remove_prefix(sound);
    if (bytes.empty()) return;
    text += kNoCharacter;
    // What begins a character as far as it goes is one fault together.
    size_t fault = 1;
    while (fault < bytes.size() && BeginsCharacter(bytes.substr(0, fault + 1))) ++fault;
    bytes.remove_prefix(fault);
  }
}

absl::Status Do(const ByteLevelDecoder& /*part*/, Texts& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    const size_t before = bytes.size();
    for (size_t at = 0; at < token.size();) {
      const Character next = CharacterAt(token, at);
      const auto byte = ByteOfCharacter(next.code);
      if (!byte) {  // the token is none of bytes
        bytes.resize(before);
        bytes += token;
        break;
      }
      bytes += *byte;
      at += next.bytes;
    }
  }
  tokens.assign(1, "");
  AppendSound(bytes, tokens[0]);
  return absl::OkStatus();
}

absl::Status Do(const MetaspaceDecoder& part, Texts& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    ReplaceAll(tokens[i], part.replacement, i == 0 && part.drops_first ? "" : " ");
  }
  return absl::OkStatus();
}

// Returns the byte that a token such as <0x0A> names.
std::optional<char> ByteOfToken(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  uint8_t byte = 0;
  const char* const end = token.data() + 5;
  const auto read = std::from_chars(token.data() + 3, end, byte, 16);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

absl::Status Do(const ByteFallbackDecoder& /*part*/, Texts& tokens) {
  Texts made;
  std::string bytes;
  const auto end_bytes = [&] {
    if (IsUtf8(bytes)) {
      if (!bytes.empty()) made.push_back(bytes);
    } else {
      made.insert(made.end(), bytes.size(), std::string(kNoCharacter));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = ByteOfToken(token)) {
      bytes += *byte;
      continue;
    }
    end_bytes();
    made.push_back(std::move(token));
  }
  end_bytes();
  tokens = std::move(made);
  return absl::OkStatus();
}

absl::Status Do(const FuseDecoder& /*part*/, Texts& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens.clear();
  tokens.push_back(std::move(all));
  return absl::OkStatus();
}

absl::Status Do(const ReplaceDecoder& part, Texts& tokens) {
  for (std::string& token : tokens) {
    std::vector<ByteRange> matches;
    if (absl::Status status = part.pattern.Find(token, matches); !status.ok()) return status;
    std::string made;
    size_t copied = 0;
    for (const ByteRange& match : matches) {
      made.append(token, copied, match.begin - copied).append(part.content);
      copied = match.end;
    }
    token = made.append(token, copied);
  }
  return absl::OkStatus();
}

absl::Status Do(const StripDecoder& part, Texts& tokens) {
  for (std::string& token : tokens) {
    for (int64_t i = 0; i < part.start && token.starts_with(part.content); ++i) {
      token.erase(0, part.content.size());
    }
    for (int64_t i = 0; i < part.stop && token.ends_with(part.content); ++i) {
      token.resize(token.size() - part.content.size());
    }
  }
  return absl::OkStatus();
}

absl::Status Do(const BpeDecoder& part, Texts& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    ReplaceAll(tokens[i], part.suffix, i + 1 < tokens.size() ? " " : "");
  }
  return absl::OkStatus();
}

absl::StatusOr<DecoderPart> ReadReplaceDecoder(PartMembers& members) {
  auto pattern = Pattern::FromJson(members.members().value("pattern", json()));
  if (!pattern.ok()) return pattern.status();
  return ReplaceDecoder{*std::move(pattern), members.Text("content")};
}

MetaspaceDecoder ReadMetaspaceDecoder(PartMembers& members) {
  const bool never = members.Text("prepend_scheme", "always") == "never";
  return {members.Character("replacement"), !never && members.Bool("add_prefix_space", true)};
}

absl::StatusOr<DecoderPart> ReadDecoder(PartMembers& members) {
  constexpr int64_t kMostStripped = 1024;
  const std::string& type = members.type();
  if (type == "WordPiece") return WordPieceDecoder{members.Text("prefix"), members.Bool("cleanup")};
  if (type == "ByteLevel") return ByteLevelDecoder();
  if (type == "Metaspace") return ReadMetaspaceDecoder(members);
  if (type == "ByteFallback") return ByteFallbackDecoder();
  if (type == "Fuse") return FuseDecoder();
  if (type == "Replace") return ReadReplaceDecoder(members);
  if (type == "BPEDecoder") return BpeDecoder{members.Text("suffix")};
  if (type == "Strip") {
    return StripDecoder{members.Character("content"), members.Integer("start", 0, kMostStripped),
                        members.Integer("stop", 0, kMostStripped)};
  }
  return members.Unknown();
}

}  // namespace

absl::StatusOr<DecoderChain> DecoderChain::FromJson(const json& part) {
  std::vector<DecoderPart> parts;
  if (!part.is_null()) {
    if (absl::Status status = ReadParts(part, "decoder", "decoders", ReadDecoder, parts);
        !status.ok())
      return status;
  }
  DecoderChain chain(std::move(parts));
  chain.joins_with_spaces_ = part.is_null();
  return chain;
}

absl::StatusOr<std::string> DecoderChain::Decode(std::vector<std::string> tokens) const {
  for (const DecoderPart& part : parts_) {
    absl::Status status = std::visit([&](const auto& one) { return Do(one, tokens); }, part);
    if (!status.ok()) return status;
  }
  std::string text;
  for (const std::string& token : tokens) {
    if (joins_with_spaces_ && &token != tokens.data()) text += ' ';
    text += token;
  }
  return text;
}

}  // namespace linserve
