#include "text/huggingface/file/model_members.h"

#include <algorithm>
#include <string_view>

#include "core/json/json_number.h"
#include "core/strings/quote.h"
#include "core/strings/utf8.h"
#include "text/huggingface/characters/characters.h"
#include "text/huggingface/models/token_vocabulary.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;

constexpr size_t kMostMerges = size_t{1} << 21;

absl::Status Fault(const std::string& what) {
  return absl::InvalidArgumentError("its model " + what);
}

// Splits the last merge, which is "left right" so far; a comment at the front of a file is none.
absl::Status SplitLastMerge(ModelMembers& members) {
  auto& [left, right] = members.merges.back();
  const size_t space = left.find(' ');
  if (left.starts_with("#version")) {
    members.merges.pop_back();
    return absl::OkStatus();
  }
  if (space == std::string::npos || left.find(' ', space + 1) != std::string::npos) {
    return Fault("has the merge " + Quoted(left) + ", expected two tokens and a space between");
  }
  right = left.substr(space + 1);
  left.resize(space);
  return absl::OkStatus();
}

std::string_view WithoutSpaceAtEnd(std::string_view line) {
  while (!line.empty()) {
    const Character last = CharacterBefore(line, line.size());
    if (!IsWhite(last.code)) break;
    line.remove_suffix(last.bytes);
  }
  return line;
}

// Returns the first line of a text, and takes it away.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Reads the members one by one.
class Reading {
 public:
  Reading(JsonReader& reader, ModelMembers& members) : reader_(reader), members_(members) {}

  absl::Status Member(const std::string& name) {
    if (name == "vocab") return Vocabulary();
    if (name == "merges") return Merges();
    if (reader_.Next() == Kind::kNull) return reader_.Skip().status();
    if (name == "type") return Text(members_.type);
    if (name == "unk_token") {
      members_.has_unk_token = true;
      return Text(members_.unk_token);
    }
    if (name == "continuing_subword_prefix") {
      members_.has_prefix = true;
      return Text(members_.continuing_subword_prefix);
    }
    if (name == "end_of_word_suffix") return Text(members_.end_of_word_suffix);
    if (name == "fuse_unk") return Bool(members_.fuse_unk);
    if (name == "byte_fallback") return Bool(members_.byte_fallback);
    if (name == "ignore_merges") return Bool(members_.ignore_merges);
    if (name == "unk_id") return Integer(members_.unk_id);
    if (name == "max_input_chars_per_word") return Integer(members_.max_input_chars_per_word);
    if (name == "dropout") return Double(members_.dropout);
    return reader_.Skip().status();
  }

 private:
  absl::Status Text(std::string& into) {
    absl::Status status = reader_.Expect(Kind::kString, "its model has a name that is no text");
    if (!status.ok()) return status;
    auto text = reader_.String();
    if (!text.ok()) return text.status();
    if (text->size() > kLongestToken) {
      return Fault("has a text of " + std::to_string(text->size()) + " bytes, expected at most " +
                   std::to_string(kLongestToken));
    }
    into = *std::move(text);
    return absl::OkStatus();
  }

  absl::Status Bool(bool& into) {
    absl::Status status = reader_.Expect(Kind::kBool, "its model has a switch that is no bool");
    if (!status.ok()) return status;
    const auto read = reader_.Bool();
    into = read.value_or(false);
    return read.status();
  }

  absl::Status Integer(int64_t& into) {
    absl::Status status = reader_.Expect(Kind::kNumber, "its model has a number that is none");
    if (!status.ok()) return status;
    const auto text = reader_.Number();
    if (!text.ok()) return text.status();
    const auto number = IntegerOf<int64_t>(*text);
    if (!number) return Fault("has the number " + Quoted(*text) + ", expected an integer");
    into = *number;
    return absl::OkStatus();
  }

  absl::Status Double(double& into) {
    absl::Status status = reader_.Expect(Kind::kNumber, "its model has a number that is none");
    if (!status.ok()) return status;
    const auto text = reader_.Number();
    if (!text.ok()) return text.status();
    const auto number = DoubleOf(*text);
    if (!number) return Fault("has the number " + Quoted(*text) + ", which is too large");
    into = *number;
    return absl::OkStatus();
  }

  absl::Status CheckTokens() const {
    if (members_.tokens.size() < static_cast<size_t>(kMostIds)) return absl::OkStatus();
    return Fault("has more than " + std::to_string(kMostIds) + " tokens");
  }

  // Reads {"token": id, ...}, or [["token", score], ...].
  absl::Status Vocabulary() {
    members_.tokens.clear();
    members_.scores.clear();
    if (reader_.Next() == Kind::kArray) return reader_.Array([this] { return ScoredToken(); });
    absl::Status status = reader_.Expect(
        Kind::kObject, "its model has a 'vocab' that is neither an object nor an array");
    if (!status.ok()) return status;
    return reader_.Object([this](const std::string& token) {
      absl::Status room = CheckTokens();
      if (!room.ok()) return room;
      members_.tokens.emplace_back(token, 0);
      return Integer(members_.tokens.back().second);
    });
  }

  absl::Status ScoredToken() {
    absl::Status status = CheckTokens();
    if (status.ok()) {
      status = reader_.Expect(Kind::kArray,
                              "its model has a 'vocab' with a token that is no pair of a text and "
                              "a score");
    }
    if (!status.ok()) return status;
    size_t parts = 0;
    status = reader_.Array([&] {
      ++parts;
      if (parts == 1) {
        members_.tokens.emplace_back("", static_cast<int64_t>(members_.tokens.size()));
        return Text(members_.tokens.back().first);
      }
      if (parts > 2) return Fault("has a token with more than a text and a score");
      return Double(members_.scores.emplace_back());
    });
    if (!status.ok()) return status;
    return parts == 2 ? status : Fault("has a token without a score");
  }

  absl::Status Merges() {
    members_.merges.clear();
    absl::Status status = reader_.Expect(Kind::kArray, "its model has 'merges' that are no array");
    if (!status.ok()) return status;
    return reader_.Array([this] { return OneMerge(); });
  }

  // Reads "left right", or ["left", "right"].
  absl::Status OneMerge() {
    if (members_.merges.size() >= kMostMerges) {
      return Fault("has more than " + std::to_string(kMostMerges) + " merges");
    }
    std::string& left = members_.merges.emplace_back().first;
    std::string& right = members_.merges.back().second;
    if (reader_.Next() == Kind::kArray) {
      size_t parts = 0;
      absl::Status status = reader_.Array([&] {
        ++parts;
        return parts <= 2 ? Text(parts == 1 ? left : right) : Fault("has a merge of three");
      });
      if (!status.ok()) return status;
      return parts == 2 ? status : Fault("has a merge of less than two");
    }
    absl::Status status = Text(left);
    return status.ok() ? SplitLastMerge(members_) : status;
  }

  JsonReader& reader_;
  ModelMembers& members_;
};

}  // namespace

absl::Status ReadModelMembers(JsonReader& reader, ModelMembers& members) {
  absl::Status status = reader.Expect(Kind::kObject, "its model is no object");
  if (!status.ok()) return status;
  Reading reading(reader, members);
  return reader.Object([&](const std::string& name) { return reading.Member(name); });
}

absl::Status ReadVocabularyLines(std::string_view text, ModelMembers& members) {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("it is not UTF-8");
  members.type = "WordPiece";
  while (!text.empty()) {
    const auto id = static_cast<int64_t>(members.tokens.size());
    if (id >= kMostIds) return Fault("has more than " + std::to_string(kMostIds) + " tokens");
    members.tokens.emplace_back(WithoutSpaceAtEnd(TakeLine(text)), id);
  }
  return absl::OkStatus();
}

absl::Status ReadVocabularyObject(std::string_view text, ModelMembers& members) {
  JsonReader reader(
      text, [] { return absl::OkStatus(); }, "it");
  absl::Status status = reader.Expect(Kind::kObject, "it is no object of tokens with their ids");
  if (status.ok()) status = Reading(reader, members).Member("vocab");
  return status.ok() ? reader.End() : status;
}

absl::Status ReadMergeLines(std::string_view text, ModelMembers& members) {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("its merges.txt is not UTF-8");
  members.type = "BPE";
  while (!text.empty()) {
    if (members.merges.size() >= kMostMerges) {
      return Fault("has more than " + std::to_string(kMostMerges) + " merges");
    }
    members.merges.emplace_back(TakeLine(text), "");
    if (absl::Status status = SplitLastMerge(members); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string ModelTypeOf(const ModelMembers& members) {
  if (!members.type.empty()) return members.type;
  if (!members.merges.empty()) return "BPE";
  if (!members.scores.empty()) return "Unigram";
  return members.has_prefix ? "WordPiece" : "WordLevel";
}

}  // namespace linserve
