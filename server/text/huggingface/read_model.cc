#include "text/huggingface/read_model.h"

#include <functional>
#include <map>
#include <string_view>

#include "core/json/json_number.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;

constexpr size_t kMostMerges = size_t{1} << 21;

absl::Status Fault(const std::string& what) {
  return absl::InvalidArgumentError("its model " + what);
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
    if (absl::Status status = Text(left); !status.ok()) return status;
    const size_t space = left.find(' ');
    if (left.starts_with("#version")) {
      members_.merges.pop_back();
      return absl::OkStatus();
    }
    if (space == std::string::npos || left.find(' ', space + 1) != std::string::npos) {
      return Fault("has the merge " + Quoted(left) + ", expected two tokens and a space between");
    }
    right = left.substr(space + 1);
    left.resize(space);
    return absl::OkStatus();
  }

  JsonReader& reader_;
  ModelMembers& members_;
};

absl::Status MakeWordPiece(const ModelMembers& members, Pipeline& pipeline) {
  constexpr int64_t kMostCharacters = 10'000;
  if (!members.has_unk_token || !members.has_prefix) {
    return Fault("has no 'unk_token' or no 'continuing_subword_prefix'");
  }
  if (members.max_input_chars_per_word < 1 || members.max_input_chars_per_word > kMostCharacters) {
    return Fault("has no 'max_input_chars_per_word' from 1 to " + std::to_string(kMostCharacters));
  }
  pipeline.model.emplace(std::in_place_type<WordPieceModel>, pipeline.vocabulary,
                         WordPieceOptions{members.unk_token, members.continuing_subword_prefix,
                                          members.max_input_chars_per_word});
  return absl::OkStatus();
}

absl::Status MakeWordLevel(const ModelMembers& members, Pipeline& pipeline) {
  if (!members.has_unk_token) return Fault("has no 'unk_token'");
  pipeline.model.emplace(std::in_place_type<WordLevelModel>, pipeline.vocabulary,
                         members.unk_token);
  return absl::OkStatus();
}

absl::Status MakeUnigram(ModelMembers& members, Pipeline& pipeline) {
  if (members.scores.size() != members.tokens.size()) {
    return Fault("has no 'vocab' of tokens with scores");
  }
  if (members.unk_id < -1 || members.unk_id >= std::ssize(members.scores)) {
    return Fault("has an 'unk_id' that is none of its " + std::to_string(members.scores.size()) +
                 " tokens'");
  }
  pipeline.model.emplace(std::in_place_type<UnigramModel>, pipeline.vocabulary,
                         std::move(members.scores), static_cast<int32_t>(members.unk_id),
                         members.byte_fallback);
  return absl::OkStatus();
}

absl::Status MakeBpe(ModelMembers& members, Pipeline& pipeline) {
  if (members.dropout != 0) return Fault("has a 'dropout', with which no two texts are alike");
  std::vector<BpeModel::Merge> merges;
  merges.reserve(members.merges.size());
  for (const auto& [left, right] : members.merges) {
    const int32_t left_id = pipeline.vocabulary.Find(left);
    const int32_t right_id = pipeline.vocabulary.Find(right);
    if (left_id < 0 || right_id < 0) {
      return Fault("has a merge of " + Quoted(left_id < 0 ? left : right) + ", which is no token");
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
  if (!model.ok()) return Fault("is none: " + std::string(model.status().message()));
  pipeline.model.emplace(*std::move(model));
  return absl::OkStatus();
}

// Returns the type of a model, which older files do not name.
std::string TypeOf(const ModelMembers& members) {
  if (!members.type.empty()) return members.type;
  if (!members.merges.empty()) return "BPE";
  if (!members.scores.empty()) return "Unigram";
  return members.has_prefix ? "WordPiece" : "WordLevel";
}

}  // namespace

absl::Status ReadModelMembers(JsonReader& reader, ModelMembers& members) {
  absl::Status status = reader.Expect(Kind::kObject, "its model is no object");
  if (!status.ok()) return status;
  Reading reading(reader, members);
  return reader.Object([&](const std::string& name) { return reading.Member(name); });
}

absl::Status MakeModel(ModelMembers members, Pipeline& pipeline) {
  for (auto& [text, id] : members.tokens) {
    if (absl::Status status = pipeline.vocabulary.Add(std::move(text), id); !status.ok()) {
      return status;
    }
  }
  pipeline.vocabulary.Index();
  const std::string type = TypeOf(members);
  if (type == "WordPiece") return MakeWordPiece(members, pipeline);
  if (type == "WordLevel") return MakeWordLevel(members, pipeline);
  if (type != "BPE" && type != "Unigram") {
    return Fault(Quoted(type) +
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
