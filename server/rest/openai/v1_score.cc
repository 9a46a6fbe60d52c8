#include "rest/openai/v1_score.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "core/status/parameter.h"
#include "rest/calls/answering.h"
#include "rest/json/json_members.h"
#include "rest/json/sequence_input.h"
#include "rest/json/tensor_json.h"
#include "rest/openai/openai_form.h"
#include "serving/requests/classify_request.h"

namespace linserve {
namespace {

absl::Status ReadSide(JsonReader& reader, const std::string& name, int64_t most, Texts& texts) {
  SequenceInput sequences;
  absl::Status status = ReadSequences(reader, name, most, sequences);
  if (!status.ok()) return status;
  auto* const read = std::get_if<Texts>(&sequences);
  if (read == nullptr) {
    return absl::InvalidArgumentError("'" + name + "': expected a text, or a list of texts");
  }
  texts = std::move(*read);
  return absl::OkStatus();
}

// Pairs the texts of both sides.
absl::Status Pair(Texts first, Texts second, ClassifyQuery& query) {
  const size_t firsts = first.size();
  const size_t seconds = second.size();
  if (firsts == 0 || seconds == 0) {
    return OfParameter(
        absl::InvalidArgumentError("expected a JSON object with 'text_1' and 'text_2', each a text "
                                   "or a list of one or more"),
        firsts == 0 ? "text_1" : "text_2");
  }
  if (firsts != seconds && firsts != 1 && seconds != 1) {
    return OfParameter(absl::InvalidArgumentError("'text_1' has " + std::to_string(firsts) +
                                                  " texts and 'text_2' " + std::to_string(seconds) +
                                                  ", expected as many, or one of either"),
                       "text_2");
  }
  query.texts = std::move(first);
  query.texts.insert(query.texts.end(), second.begin(), second.end());
  for (size_t i = 0; i < std::max(firsts, seconds); ++i) {
    query.sequences.push_back(
        {.text = firsts == 1 ? 0 : i, .second = firsts + (seconds == 1 ? 0 : i)});
  }
  return absl::OkStatus();
}

absl::StatusOr<ClassifyQuery> ReadScore(const RestCall& call) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  ClassifyQuery query{.model = "", .ranks = true};
  Texts first;
  Texts second;
  JsonReader reader(call.http.body, WantedBy(call));
  absl::Status status = ReadOpenAiBody(
      reader, {{"model", [&] { return ReadName(reader, "model", query.model); }},
               {"text_1", [&] { return ReadSide(reader, "text_1", most, first); }},
               {"text_2", [&] { return ReadSide(reader, "text_2", most, second); }}});
  if (status.ok()) status = Pair(std::move(first), std::move(second), query);
  if (!status.ok()) return status;
  if (query.model.empty()) query.model = call.http.Header("linserve-model");
  return query;
}

HttpReply WriteScores(const Classified& classified) {
  HttpReply reply{.body = R"({"object":"list","data":[)", .packable = true};
  for (size_t i = 0; i < classified.logits.size(); ++i) {
    if (i > 0) reply.body += ',';
    reply.body += R"({"index":)" + std::to_string(i) + R"(,"object":"score","score":)";
    AppendFloat(classified.Scores(i)[0], reply.body);
    reply.body += '}';
  }
  reply.body += EndOfAnswer(classified.model, classified.tokens);
  return reply;
}

}  // namespace

HttpReply V1Score(const RestCall& call) {
  return ReplyWith<Classified>(
      Ask<ClassifyRequestState>(call, "/v1/score", [&] { return ReadScore(call); }), OpenAiError,
      WriteScores);
}

}  // namespace linserve
