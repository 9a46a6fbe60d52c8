#include "text/huggingface/post_processor.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

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

PostProcessing ReadBert(PartMembers& members) {
  PostProcessing made;
  made.marks.before = {ReadPair(members, "cls")};
  made.marks.after = {ReadPair(members, "sep")};
  return made;
}

// Reads what the parts of byte-level tokenizers say of places.
void ReadTrimming(PartMembers& members, PostProcessing& made) {
  made.trims_places = members.Bool("trim_offsets", true);
  made.has_prefix = members.Bool("add_prefix_space", true);
}

// Reads the template of one text: marks, the text, and marks.
class Template {
 public:
  explicit Template(PartMembers& members) : members_(members) {}

  PostProcessing Read() {
    const json* const pieces = members_.Parts("single");
    for (const json& piece : pieces != nullptr ? *pieces : json::array()) ReadPiece(piece);
    members_.Expect(texts_ == 1, "has a 'single' template that does not have the text just once");
    return std::move(made_);
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
      members_.Expect(false,
                      "has a 'single' template with a piece that is neither {\"Sequence\": ...} "
                      "nor {\"SpecialToken\": ...}");
    }
  }

  void ReadType(const json& piece) {
    const auto type = IdOf(piece.value("type_id", json()));
    members_.Expect(type && *type < kMostTypes,
                    "has a template with a 'type_id' that is no integer from 0 to " +
                        std::to_string(kMostTypes - 1));
    if (type.value_or(0) != 0) made_.has_types = true;
  }

  void ReadText(const json& piece) {
    members_.Expect(piece.value("id", json()) == "A", "has a 'single' template of another text");
    ++texts_;
    ReadType(piece);
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
    ReadType(piece);
    for (const json& one : ids.is_array() ? ids : json::array()) {
      const auto id = IdOf(one);
      members_.Expect(id.has_value(), "has 'special_tokens' with an id that is none");
      (texts_ == 0 ? made_.marks.before : made_.marks.after).push_back(id.value_or(0));
    }
  }

  PartMembers& members_;
  PostProcessing made_;
  int texts_ = 0;  // of the template so far
};

absl::StatusOr<PostProcessing> Read(const json& part);

// Reads a sequence, of which one part at most has marks.
absl::StatusOr<PostProcessing> ReadSequence(PartMembers& members) {
  PostProcessing made;
  const json* const parts = members.Parts("processors");
  if (parts == nullptr) return members.status();
  int marked = 0;
  for (const json& part : *parts) {
    auto one = Read(part);
    if (!one.ok()) return one.status();
    if (one->trims_places) {
      made.trims_places = true;
      made.has_prefix = one->has_prefix;
    }
    const bool plain = one->marks.before.empty() && one->marks.after.empty() && !one->has_types;
    if (plain) continue;
    members.Expect(++marked == 1, "has two parts that put marks around a text, expected one");
    one->trims_places = made.trims_places;
    one->has_prefix = made.has_prefix;
    made = *std::move(one);
  }
  if (!members.status().ok()) return members.status();
  return made;
}

absl::StatusOr<PostProcessing> Read(const json& part) {
  PartMembers members(part, "post_processor");
  const std::string& type = members.type();
  if (type == "Sequence") return ReadSequence(members);
  PostProcessing made;
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    made = ReadBert(members);
    if (type == "RobertaProcessing") ReadTrimming(members, made);
  } else if (type == "TemplateProcessing") {
    made = Template(members).Read();
  } else if (type == "ByteLevel") {
    ReadTrimming(members, made);
  } else {
    return members.Unknown();
  }
  if (!members.status().ok()) return members.status();
  return made;
}

}  // namespace

absl::StatusOr<PostProcessing> PostProcessing::FromJson(const json& part) {
  auto made = part.is_null() ? absl::StatusOr<PostProcessing>(PostProcessing()) : Read(part);
  if (made.ok()) made->marks.around_nothing = true;
  return made;
}

}  // namespace linserve
