#include "rest/json/sequence_input.h"

#include <utility>

#include "absl/status/statusor.h"
#include "core/json/json_number.h"
#include "core/status/retry_delay.h"
#include "core/strings/quote.h"
#include "rest/json/json_members.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;

absl::Status ReadIds(JsonReader& reader, std::vector<int64_t>& ids) {
  ids.reserve(reader.ElementsAhead());
  return reader.Array([&]() -> absl::Status {
    const auto text = reader.Skip();
    if (!text.ok()) return text.status();
    const auto id = IntegerOf<int64_t>(*text);
    if (!id) return absl::InvalidArgumentError("expected token ids, found " + Quoted(*text));
    ids.push_back(*id);
    return absl::OkStatus();
  });
}

absl::StatusOr<Texts> ReadTexts(JsonReader& reader, const std::string& name, int64_t most) {
  Texts texts;
  absl::Status status = reader.Array([&]() -> absl::Status {
    absl::Status fault =
        reader.Expect(Kind::kString, Quoted(name) + " mixes texts with something else");
    if (!fault.ok()) return fault;
    if (std::cmp_equal(texts.size(), most)) return TooManySequences(most);
    return Put(reader.String(), texts.emplace_back());
  });
  if (!status.ok()) return status;
  return texts;
}

absl::StatusOr<IdSequences> ReadIdSequences(JsonReader& reader, const std::string& name,
                                            int64_t most) {
  IdSequences sequences;
  absl::Status status = reader.Array([&]() -> absl::Status {
    absl::Status fault = reader.Expect(Kind::kArray, Quoted(name) + " mixes ids and lists");
    if (!fault.ok()) return fault;
    if (std::cmp_equal(sequences.size(), most)) return TooManySequences(most);
    fault = ReadIds(reader, sequences.emplace_back());
    if (!fault.ok() || !sequences.back().empty()) return fault;
    return absl::InvalidArgumentError(Quoted(name) + " holds an empty sequence");
  });
  if (!status.ok()) return status;
  return sequences;
}

}  // namespace

absl::Status TooManySequences(int64_t most) {
  return NeverFits(absl::InvalidArgumentError(
      "the request holds more than " + std::to_string(most) +
      " sequences, which are taken at once (max_sequences_per_request); send them in several "
      "requests"));
}

absl::Status ReadSequences(JsonReader& reader, const std::string& name, int64_t most,
                           SequenceInput& sequences) {
  if (reader.Next() == Kind::kString) {
    return Put(reader.String(), sequences.emplace<Texts>().emplace_back());
  }
  const Kind first = reader.NextInside();
  if (first == Kind::kString) return Put(ReadTexts(reader, name, most), sequences);
  if (first == Kind::kArray) return Put(ReadIdSequences(reader, name, most), sequences);
  if (first == Kind::kNone) {
    const absl::Status whole = reader.Skip().status();
    return whole.ok() ? absl::InvalidArgumentError(
                            Quoted(name) + ": expected a text, token ids, or a list of such")
                      : whole;
  }
  return ReadIds(reader, sequences.emplace<IdSequences>().emplace_back());
}

}  // namespace linserve
