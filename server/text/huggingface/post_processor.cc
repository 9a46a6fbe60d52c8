#include "text/huggingface/post_processor.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/huggingface/members/part_members.h"
#include "text/huggingface/models/token_vocabulary.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr size_t kMostMarks = 64;
constexpr int64_t kMostTypes = 1024;

std::optional<int64_t> IdOf(const json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= uint64_t{kMostIds}) {
    return std::nullopt;
  }
  return value.get<int64_t>();
}

// Reads a pair such as ["[CLS]", 101].
int64_t ReadPair(PartMembers& members, const std::string& name) {
  const json pair = members.members().value(name, json());
  const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_string();
  const auto id = is_pair ? IdOf(pair[1]) : std::nullopt;
  members.Expect(id.has_value(), "has a '" + name + "' that is no pair of a token and its id");
  return id.value_or(0);
}

// Reads what the parts of byte-level tokenizers say of places.
void ReadTrimming(PartMembers& members, PostProcessing& made) {
  made.trims_places = members.Bool("trim_offsets", true);
  made.has_prefix = members.Bool("add_prefix_space", true);
}

// Reads a template: marks, and texts.
class Template {
 public:
  // `second` says whether it may have a second text.
  Template(PartMembers& members, const char* name, bool second)
      : members_(members), name_(name), second_(second) {}

  std::vector<PairPiece> Read() {
    const json* const pieces = members_.Parts(name_);
    for (const json& piece : pieces != nullptr ? *pieces : json::array()) ReadPiece(piece);
    return std::move(pieces_);
  }

 private:
  void ReadPiece(const json& piece) {
    const bool one = piece.is_object() && piece.size() == 1 && piece.front().is_object();
    const std::string kind = one ? piece.items().begin().key() : "";
    if (kind == "Sequence") {
      ReadText(piece.front());
    } else if (kind == "SpecialToken") {
      ReadMark(piece.front());
    } else {
      members_.Expect(false, "has a '" + name_ +
                                 "' template with a piece that is neither {\"Sequence\": ...} nor "
                                 "{\"SpecialToken\": ...}");
    }
  }

  int64_t ReadType(const json& piece) {
    const auto type = IdOf(piece.value("type_id", json()));
    members_.Expect(type && *type < kMostTypes,
                    "has a template with a 'type_id' that is no integer from 0 to " +
                        std::to_string(kMostTypes - 1));
    return type.value_or(0);
  }

  void ReadText(const json& piece) {
    const json text = piece.value("id", json());
    const bool second = second_ && text == "B";
    members_.Expect(text == "A" || second, "has a '" + name_ + "' template of another text");
    pieces_.push_back({.kind = second ? PairPiece::Kind::kSecond : PairPiece::Kind::kFirst,
                       .type = ReadType(piece)});
  }

  void ReadMark(const json& piece) {
    const json name = piece.value("id", json());
    const json tokens = members_.members().value("special_tokens", json::object());
    const auto found = name.is_string() && tokens.is_object()
                           ? tokens.find(name.get_ref<const std::string&>())
                           : tokens.end();
    const json ids =
        found != tokens.end() && found->is_object() ? found->value("ids", json()) : json();
    members_.Expect(ids.is_array() && ids.size() <= kMostMarks,
                    "has a template with a token whose 'ids' are not among its 'special_tokens'");
    const int64_t type = ReadType(piece);
    for (const json& one : ids.is_array() ? ids : json::array()) {
      const auto id = IdOf(one);
      members_.Expect(id.has_value(), "has 'special_tokens' with an id that is none");
      pieces_.push_back({.mark = id.value_or(0), .type = type});
    }
  }

  PartMembers& members_;
  const std::string name_;
  const bool second_;
  std::vector<PairPiece> pieces_;
};

int64_t CountOf(PairPiece::Kind kind, const std::vector<PairPiece>& pieces) {
  return std::count_if(pieces.begin(), pieces.end(),
                       [kind](const PairPiece& piece) { return piece.kind == kind; });
}

PostProcessing ReadTemplates(PartMembers& members) {
  using enum PairPiece::Kind;
  PostProcessing made;
  const std::vector<PairPiece> single = Template(members, "single", false).Read();
  members.Expect(CountOf(kFirst, single) == 1,
                 "has a 'single' template that does not have the text just once");
  bool after = false;
  for (const auto& [kind, mark, type] : single) {
    made.has_types = made.has_types || type != 0;
    if (kind == kMark) (after ? made.marks.after : made.marks.before).push_back(mark);
    after = after || kind == kFirst;
  }
  if (!members.members().contains("pair")) return made;
  PairTemplate pair{Template(members, "pair", true).Read()};
  if (CountOf(kFirst, pair.pieces) == 1 && CountOf(kSecond, pair.pieces) == 1) {
    made.pair = std::move(pair);
  }
  return made;
}

// Holds what a part says that is no Sequence.
struct Part {
  PostProcessing post;
  bool is_template = true;  // it says where texts stand, and does not only trim their places
};

absl::StatusOr<Part> ReadPart(PartMembers& members) {
  const std::string& type = members.type();
  Part part;
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const int64_t before = ReadPair(members, "cls");
    const int64_t after = ReadPair(members, "sep");
    part.post = type == "BertProcessing" ? PostProcessing::Bert(before, after)
                                         : PostProcessing::Roberta(before, after);
  } else if (type == "TemplateProcessing") {
    part.post = ReadTemplates(members);
  } else if (type == "ByteLevel") {
    part.is_template = false;
  } else {
    return members.Unknown();
  }
  if (type == "RobertaProcessing" || type == "ByteLevel") ReadTrimming(members, part.post);
  return part;
}

// Puts the parts of a sequence together, of which one at most has marks around one text. What two
// of them make of a pair is not known: the second one would get the first one's marks as texts.
absl::StatusOr<PostProcessing> Together(std::vector<Part> parts) {
  using enum PairPiece::Kind;
  PostProcessing made;
  made.marks.around_nothing = true;
  made.pair = {{{.kind = kFirst}, {.kind = kSecond, .type = 1}}};
  int marked = 0;
  int templates = 0;
  for (auto& [post, is_template] : parts) {
    if (post.trims_places) {
      made.trims_places = true;
      made.has_prefix = post.has_prefix;
    }
    if (!is_template) continue;
    made.pair = ++templates == 1 ? std::move(post.pair) : std::nullopt;
    if (post.marks.before.empty() && post.marks.after.empty() && !post.has_types) continue;
    if (++marked > 1) {
      return absl::InvalidArgumentError(
          "its post_processor 'Sequence' has two parts that put marks around a text, expected one");
    }
    made.marks.before = std::move(post.marks.before);
    made.marks.after = std::move(post.marks.after);
    made.has_types = post.has_types;
  }
  return made;
}

}  // namespace

absl::StatusOr<PostProcessing> PostProcessing::FromJson(const json& part) {
  std::vector<Part> parts;
  if (!part.is_null()) {
    absl::Status status = ReadParts(part, "post_processor", "processors", ReadPart, parts);
    if (!status.ok()) return status;
  }
  return Together(std::move(parts));
}

PostProcessing PostProcessing::Bert(int64_t before, int64_t after) {
  using enum PairPiece::Kind;
  return {.marks = {.before = {before}, .after = {after}, .around_nothing = true},
          .pair = {{{{.mark = before},
                     {.kind = kFirst},
                     {.mark = after},
                     {.kind = kSecond, .type = 1},
                     {.mark = after, .type = 1}}}}};
}

PostProcessing PostProcessing::Behind(int64_t after) {
  using enum PairPiece::Kind;
  return {.marks = {.before = {}, .after = {after}, .around_nothing = true},
          .pair = {{{{.kind = kFirst}, {.mark = after}, {.kind = kSecond}, {.mark = after}}}}};
}

PostProcessing PostProcessing::Roberta(int64_t before, int64_t after) {
  using enum PairPiece::Kind;
  return {.marks = {.before = {before}, .after = {after}, .around_nothing = true},
          .pair = {{{{.mark = before},
                     {.kind = kFirst},
                     {.mark = after},
                     {.mark = after},
                     {.kind = kSecond},
                     {.mark = after}}}}};
}

}  // namespace linserve
