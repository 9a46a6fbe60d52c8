#include "rest/openai/v1_rerank.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/json/json_number.h"
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

absl::Status ReadText(JsonReader& reader, const char* otherwise, std::string& text) {
  absl::Status status = reader.Expect(Kind::kString, otherwise);
  return status.ok() ? Put(reader.String(), text) : status;
}

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

// Reads whether what is too long is cut; null leaves that to the model.
absl::Status ReadCut(JsonReader& reader, const char* name, ClassifyQuery& query) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  return ReadBool(reader, name, query.truncation.truncate.emplace());
}

absl::Status ReadTop(JsonReader& reader, size_t& top) {
  const auto text = reader.Skip();
  if (!text.ok() || *text == "null") return text.status();
  const auto given = IntegerOf<int64_t>(*text);
  if (!given || *given < 1) {
    return absl::InvalidArgumentError("'top_n': expected an integer of at least 1");
  }
  top = static_cast<size_t>(*given);
  return absl::OkStatus();
}

absl::StatusOr<ClassifyQuery> ReadV1Rerank(const RestCall& call, size_t& top) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  ClassifyQuery query{.model = "", .echoes_texts = true};
  std::optional<std::string> question;
  JsonReader reader(call.http.body, WantedBy(call));
  const auto of = [](const char* name, const auto& read) {
    return JsonMember{name, [name, read] { return OfParameter(read(), name); }};
  };
  absl::Status status = ReadBody(
      reader, {of("model", [&] { return ReadName(reader, "model", query.model); }),
               of("query",
                  [&] { return ReadText(reader, "'query': expected a text", question.emplace()); }),
               of("documents", [&] { return ReadDocuments(reader, most, query.texts); }),
               of("top_n", [&] { return ReadTop(reader, top); }),
               of("truncate", [&] { return ReadCut(reader, "truncate", query); }),
               of("truncation", [&] { return ReadCut(reader, "truncation", query); }),
               of("return_documents",
                  [&] { return ReadBool(reader, "return_documents", query.echoes_texts); })});
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

HttpReply WriteV1Rerank(const Classified& classified, size_t top) {
  HttpReply reply{.body = R"({"object":"list","results":[)", .packable = true};
  std::vector<size_t> ranking = classified.Ranking();
  ranking.resize(std::min(ranking.size(), top));
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
  const json usage = {{"prompt_tokens", classified.tokens}, {"total_tokens", classified.tokens}};
  reply.body +=
      R"(],"model":)" + JsonText(json(classified.model)) + R"(,"usage":)" + JsonText(usage) + '}';
  return reply;
}

}  // namespace

HttpReply V1Rerank(const RestCall& call) {
  size_t top = std::string::npos;
  const auto classified =
      Ask<ClassifyRequestState>(call, "/v1/rerank", [&] { return ReadV1Rerank(call, top); });
  return ReplyWith<Classified>(classified, OpenAiError, [top](const Classified& answer) {
    return WriteV1Rerank(answer, top);
  });
}

}  // namespace linserve
