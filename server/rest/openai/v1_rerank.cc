#include "rest/openai/v1_rerank.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/json/json_text.h"
#include "core/status/parameter.h"
#include "rest/calls/answering.h"
#include "rest/json/json_members.h"
#include "rest/json/sequence_input.h"
#include "rest/json/tensor_json.h"
#include "rest/openai/openai_form.h"
#include "serving/requests/classify_request.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;
using nlohmann::json;

constexpr const char* kDocuments =
    "'documents': expected a list of texts, or of objects such as {\"text\": \"...\"}";

absl::Status ReadDocuments(JsonReader& reader, int64_t most, Texts& texts) {
  absl::Status list = reader.Expect(Kind::kArray, kDocuments);
  if (!list.ok()) return list;
  return reader.Array([&]() -> absl::Status {
    if (std::cmp_equal(texts.size(), most)) return TooManySequences(most);
    std::string& text = texts.emplace_back();
    if (reader.Next() == Kind::kString) return Put(reader.String(), text);
    bool has_text = false;
    absl::Status object = reader.Expect(Kind::kObject, kDocuments);
    if (object.ok()) {
      object = ReadMembers(reader, {{"text", [&] {
                                       has_text = true;
                                       return ReadText(reader, kDocuments, text);
                                     }}});
    }
    return object.ok() && !has_text ? absl::InvalidArgumentError(kDocuments) : object;
  });
}

absl::StatusOr<ClassifyQuery> ReadV1Rerank(const RestCall& call, int64_t& top) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  ClassifyQuery query{.model = "", .echoes_texts = true};
  std::optional<std::string> question;
  JsonReader reader(call.http.body, WantedBy(call));
  const auto read_question = [&] {
    return ReadText(reader, "'query': expected a text", question.emplace());
  };
  std::optional<bool>& cut = query.truncation.truncate;
  absl::Status status = ReadOpenAiBody(
      reader, {{"model", [&] { return ReadName(reader, "model", query.model); }},
               {"query", read_question},
               {"documents", [&] { return ReadDocuments(reader, most, query.texts); }},
               {"top_n", [&] { return ReadPositive(reader, "top_n", top); }},
               {"truncate", [&] { return ReadBool(reader, "truncate", cut); }},
               {"truncation", [&] { return ReadBool(reader, "truncation", cut); }},
               {"return_documents",
                [&] { return ReadBool(reader, "return_documents", query.echoes_texts); }}});
  if (!status.ok()) return status;
  if (!question || query.texts.empty()) {
    return OfParameter(
        absl::InvalidArgumentError("expected a JSON object with 'query', a text, and 'documents', "
                                   "one or more"),
        question ? "documents" : "query");
  }
  if (query.model.empty()) query.model = call.http.Header("linserve-model");
  query.RankAll(*std::move(question));
  return query;
}

HttpReply WriteV1Rerank(const Classified& classified, int64_t top) {
  HttpReply reply{.body = R"({"object":"list","results":[)", .packable = true};
  std::vector<size_t> ranking = classified.Ranking();
  ranking.resize(static_cast<size_t>(std::min(std::ssize(ranking), top)));
  for (const size_t place : ranking) {
    if (reply.body.back() != '[') reply.body += ',';
    reply.body += R"({"index":)" + std::to_string(place) + R"(,"relevance_score":)";
    AppendFloat(classified.Scores(place)[0], reply.body);
    if (classified.query->echoes_texts) {
      reply.body +=
          R"(,"document":{"text":)" + JsonText(json(classified.query->texts[place])) + '}';
    }
    reply.body += '}';
  }
  reply.body += EndOfAnswer(classified.model, classified.tokens);
  return reply;
}

}  // namespace

HttpReply V1Rerank(const RestCall& call) {
  int64_t top = std::numeric_limits<int64_t>::max();
  const auto classified =
      Ask<ClassifyRequestState>(call, "/v1/rerank", [&] { return ReadV1Rerank(call, top); });
  return ReplyWith<Classified>(classified, OpenAiError, [top](const Classified& answer) {
    return WriteV1Rerank(answer, top);
  });
}

}  // namespace linserve
