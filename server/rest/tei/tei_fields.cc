#include "rest/tei/tei_fields.h"

#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "core/strings/quote.h"
#include "rest/json/sequence_input.h"
#include "rest/tei/tei_error.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;

absl::Status ReadDirection(JsonReader& reader, std::optional<Truncation>& side) {
  std::string given;
  absl::Status status = ReadName(reader, "truncation_direction", given);
  if (!status.ok() || given.empty()) return status;
  const std::string name = absl::AsciiStrToLower(given);
  if (name != "left" && name != "right") {
    return absl::InvalidArgumentError("'truncation_direction': expected \"Left\" or \"Right\"");
  }
  side = TruncationFromName(name);
  return status;
}

}  // namespace

std::string TeiModelOf(const RestCall& call) { return call.http.Header("linserve-model"); }

absl::Status ReadInputs(JsonReader& reader, const std::string& name, int64_t most,
                        SequenceInput& sequences) {
  if (reader.Next() != Kind::kArray || reader.NextInside() != Kind::kNone) {
    return ReadSequences(reader, name, most, sequences);
  }
  absl::Status empty = reader.Array([&] { return reader.Unexpected("no value"); });
  return empty.ok() ? EmptyList(Quoted(name) + " cannot be empty") : empty;
}

absl::Status ReadTextList(JsonReader& reader, const std::string& name, int64_t most, Texts& texts) {
  SequenceInput sequences;
  absl::Status status = ReadInputs(reader, name, most, sequences);
  if (!status.ok()) return status;
  if (auto* read = std::get_if<Texts>(&sequences)) {
    texts = std::move(*read);
    return status;
  }
  return absl::InvalidArgumentError(Quoted(name) + ": expected a text, or a list of texts");
}

std::vector<JsonMember> TextMembers(JsonReader& reader, AskedTruncation& asked,
                                    std::string& prompt_name) {
  return {{"truncate", [&] { return ReadBool(reader, "truncate", asked.truncate); }},
          {"truncation_direction", [&] { return ReadDirection(reader, asked.side); }},
          {"prompt_name", [&] { return ReadName(reader, "prompt_name", prompt_name); }}};
}

JsonMember ParametersOf(JsonReader& reader, std::vector<JsonMember> members) {
  return {"parameters", [&reader, members = std::move(members)]() -> absl::Status {
            if (reader.Next() == Kind::kNull) return reader.Skip().status();
            absl::Status object = reader.Expect(Kind::kObject, "'parameters': expected an object");
            return object.ok() ? ReadMembers(reader, members) : object;
          }};
}

JsonMember NotHere(JsonReader& reader, const char* name, const std::string& advice) {
  return {name, [&reader, message = Quoted(name) + ": " + advice]() -> absl::Status {
            absl::Status null = reader.Expect(Kind::kNull, message);
            return null.ok() ? reader.Skip().status() : null;
          }};
}

absl::Status CheckThere(absl::Status status, bool there, const std::string& name) {
  if (status.ok() && !there) {
    status = absl::InvalidArgumentError("expected a JSON object with " + Quoted(name));
  }
  return status;
}

}  // namespace linserve
