#include "rest/tei/tei_predict.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json/json_text.h"
#include "core/strings/quote.h"
#include "rest/calls/answering.h"
#include "rest/json/json_members.h"
#include "rest/json/sequence_input.h"
#include "rest/json/tensor_json.h"
#include "rest/openai/v1_rerank.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_fields.h"
#include "rest/tei/tei_reply.h"
#include "serving/requests/classify_request.h"

namespace linserve {
namespace {

using Kind = JsonReader::Kind;
using nlohmann::json;

constexpr const char* kForms =
    "'inputs': expected a text, a pair of texts such as [\"one\", \"other\"], or a list of such: "
    "[[\"a text\"], [\"one\", \"other\"]]";

// Reads an array of a text, or of two that are read together.
absl::Status ReadOneOrTwo(JsonReader& reader, ClassifyQuery& query) {
  const size_t first = query.texts.size();
  absl::Status status = reader.Array([&]() -> absl::Status {
    if (query.texts.size() == first + 2) return absl::InvalidArgumentError(kForms);
    return ReadText(reader, kForms, query.texts.emplace_back());
  });
  if (!status.ok()) return status;
  const size_t count = query.texts.size() - first;
  if (count == 0) return absl::InvalidArgumentError(kForms);
  query.sequences.push_back({.text = first});
  if (count == 2) query.sequences.back().second = first + 1;
  return absl::OkStatus();
}

// Reads what is to be scored; `several` says whether that is a list, as the answer then is.
absl::Status ReadScored(JsonReader& reader, int64_t most, ClassifyQuery& query, bool& several) {
  if (reader.Next() == Kind::kString) {
    query.sequences = {{.text = 0}};
    return Put(reader.String(), query.texts.emplace_back());
  }
  absl::Status list = reader.Expect(Kind::kArray, kForms);
  if (!list.ok()) return list;
  const Kind first = reader.NextInside();
  if (first == Kind::kString) return ReadOneOrTwo(reader, query);
  several = true;
  list = reader.Array([&]() -> absl::Status {
    absl::Status one = reader.Expect(Kind::kArray, kForms);
    if (!one.ok()) return one;
    if (std::cmp_equal(query.sequences.size(), most)) return TooManySequences(most);
    return ReadOneOrTwo(reader, query);
  });
  return list.ok() && query.sequences.empty() ? EmptyList("'inputs' cannot be empty") : list;
}

// Reads what both paths have in common, and further members.
absl::Status ReadClassify(JsonReader& reader, ClassifyQuery& query,
                          const std::vector<JsonMember>& further) {
  std::vector<JsonMember> members = TextMembers(reader, query.truncation, query.prompt_name);
  members.push_back(
      {"raw_scores", [&] { return ReadBool(reader, "raw_scores", query.raw_scores); }});
  members.push_back(ParametersOf(reader, members));
  members.push_back({"model", [&] { return ReadName(reader, "model", query.model); }});
  for (const char* name : {"normalize", "dimensions"}) {
    members.push_back(NotHere(reader, name, "scores are no vectors"));
  }
  members.insert(members.end(), further.begin(), further.end());
  return ReadBody(reader, members);
}

absl::StatusOr<ClassifyQuery> ReadPredict(const RestCall& call, bool& several) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  ClassifyQuery query{.model = TeiModelOf(call)};
  JsonReader reader(call.http.body, WantedBy(call));
  absl::Status status = ReadClassify(
      reader, query, {{"inputs", [&] { return ReadScored(reader, most, query, several); }}});
  status = CheckThere(std::move(status), !query.sequences.empty(), "inputs");
  if (!status.ok()) return status;
  return query;
}

absl::StatusOr<ClassifyQuery> ReadRerank(const RestCall& call) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  ClassifyQuery query{.model = TeiModelOf(call)};
  std::optional<std::string> question;
  Texts texts;
  JsonReader reader(call.http.body, WantedBy(call));
  const auto read_question = [&] {
    return ReadText(reader, "'query': expected a text", question.emplace());
  };
  absl::Status status = ReadClassify(
      reader, query,
      {{"query", read_question},
       {"texts", [&] { return ReadTextList(reader, "texts", most, texts); }},
       {"return_text", [&] { return ReadBool(reader, "return_text", query.echoes_texts); }}});
  status = CheckThere(std::move(status), question.has_value(), "query");
  status = CheckThere(std::move(status), !texts.empty(), "texts");
  if (!status.ok()) return status;
  query.texts = std::move(texts);
  query.RankAll(*std::move(question));
  return query;
}

// Says whether the body is one of vLLM's, Infinity's or Cohere's, which have no texts.
bool HasDocuments(const RestCall& call) {
  bool has = false;
  JsonReader reader(call.http.body, WantedBy(call));
  const absl::Status read = ReadBody(reader, {{"documents", [&] {
                                                 has = true;
                                                 return reader.Skip().status();
                                               }}});
  return read.ok() && has;
}

void AppendPredictions(const Classified& classified, size_t sequence, std::string& text) {
  const std::vector<float> scores = classified.Scores(sequence);
  text += '[';
  for (const size_t label : classified.BestFirst(sequence)) {
    if (text.back() != '[') text += ',';
    text += R"({"score":)";
    AppendFloat(scores[label], text);
    text += R"(,"label":)" + JsonText(json((*classified.labels)[label])) + '}';
  }
  text += ']';
}

HttpReply WritePredictions(const Classified& classified, bool several) {
  HttpReply reply{.body = "", .packable = true};
  if (!several) {
    AppendPredictions(classified, 0, reply.body);
    return reply;
  }
  for (size_t i = 0; i < classified.logits.size(); ++i) {
    reply.body += i == 0 ? '[' : ',';
    AppendPredictions(classified, i, reply.body);
  }
  reply.body += ']';
  return reply;
}

HttpReply WriteRanks(const Classified& classified) {
  HttpReply reply{.body = "[", .packable = true};
  for (const size_t place : classified.Ranking()) {
    if (reply.body.size() > 1) reply.body += ',';
    reply.body += R"({"index":)" + std::to_string(place) + R"(,"score":)";
    AppendFloat(classified.Scores(place)[0], reply.body);
    if (classified.query->echoes_texts) {
      reply.body += R"(,"text":)" + JsonText(json(classified.query->texts[place]));
    }
    reply.body += '}';
  }
  reply.body += ']';
  return reply;
}

}  // namespace

HttpReply TeiPredict(const RestCall& call) {
  bool several = false;
  return TeiReply<Classified>(
      call, Ask<ClassifyRequestState>(call, "/predict", [&] { return ReadPredict(call, several); }),
      [&](const Classified& classified) { return WritePredictions(classified, several); });
}

HttpReply TeiRerank(const RestCall& call) {
  if (HasDocuments(call)) return V1Rerank(call);
  return TeiReply<Classified>(
      call, Ask<ClassifyRequestState>(call, "/rerank", [&] { return ReadRerank(call); }),
      WriteRanks);
}

}  // namespace linserve
