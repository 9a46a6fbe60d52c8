#include "rest/tei/tei_tokens.h"

#include <string>
#include <utility>
#include <variant>

#include "core/json/json_text.h"
#include "rest/calls/answering.h"
#include "rest/json/json_members.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_fields.h"
#include "serving/requests/text_requests.h"

namespace linserve {
namespace {

using nlohmann::json;

absl::StatusOr<TokenizeQuery> ReadTokenize(const RestCall& call) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  TokenizeQuery query{.model = TeiModelOf(call), .texts = {}};
  JsonReader reader(call.http.body, WantedBy(call));
  const absl::Status status = ReadBody(
      reader,
      {{"inputs", [&] { return ReadTextList(reader, "inputs", most, query.texts); }},
       {"add_special_tokens", [&] { return ReadBool(reader, "add_special_tokens", query.marks); }},
       {"prompt_name", [&] { return ReadName(reader, "prompt_name", query.prompt_name); }},
       {"model", [&] { return ReadName(reader, "model", query.model); }}});
  absl::Status whole = CheckThere(status, !query.texts.empty(), "inputs");
  if (!whole.ok()) return whole;
  return query;
}

absl::StatusOr<DecodeQuery> ReadDecode(const RestCall& call) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  DecodeQuery query{.model = TeiModelOf(call), .sequences = {}};
  SequenceInput read;
  JsonReader reader(call.http.body, WantedBy(call));
  const absl::Status status =
      ReadBody(reader, {{"ids", [&] { return ReadInputs(reader, "ids", most, read); }},
                        {"skip_special_tokens",
                         [&] { return ReadBool(reader, "skip_special_tokens", query.skip_marks); }},
                        {"model", [&] { return ReadName(reader, "model", query.model); }}});
  auto* const ids = std::get_if<IdSequences>(&read);
  absl::Status whole = CheckThere(status, ids != nullptr && !ids->empty(), "ids");
  if (!whole.ok()) return whole;
  query.sequences = std::move(*ids);
  return query;
}

void AppendToken(const Tokenized::Text& text, size_t index, const Tokenizer& tokenizer,
                 std::string& answer) {
  const TokenPlace& place = text.places[index];
  const bool mark = place.is_mark;
  if (answer.back() != '[') answer += ',';
  answer += R"({"id":)" + std::to_string(text.ids[index]) + R"(,"text":)" +
            JsonText(json(text.TokenText(index, tokenizer))) + R"(,"special":)" +
            (mark ? "true" : "false") + R"(,"start":)" +
            (mark ? "null" : std::to_string(place.begin)) + R"(,"stop":)" +
            (mark ? "null" : std::to_string(place.end)) + '}';
}

absl::StatusOr<HttpReply> WriteTokens(const RestCall& call, const Tokenized& tokenized) {
  std::string answer = "[";
  for (const Tokenized::Text& text : tokenized.texts) {
    if (call.http.abandoned()) return absl::CancelledError("the caller left");
    answer += answer == "[" ? "[" : ",[";
    for (size_t i = 0; i < text.ids.size(); ++i) {
      AppendToken(text, i, *tokenized.tokenizer, answer);
    }
    answer += ']';
  }
  return HttpReply{.body = std::move(answer += ']')};
}

}  // namespace

HttpReply TeiTokenize(const RestCall& call) {
  return ReplyWith<Tokenized>(
      Ask<TokenizeRequestState>(call, "/tokenize", [&] { return ReadTokenize(call); }), TeiError,
      [&](const Tokenized& tokenized) { return WriteTokens(call, tokenized); });
}

HttpReply TeiDecode(const RestCall& call) {
  return ReplyWith<Decoded>(
      Ask<DecodeRequestState>(call, "/decode", [&] { return ReadDecode(call); }), TeiError,
      [](const Decoded& decoded) { return HttpReply{.body = JsonText(json(decoded.texts))}; });
}

}  // namespace linserve
