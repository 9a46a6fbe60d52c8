#include "rest/tei/tei_embed.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/strings/quote.h"
#include "rest/calls/answering.h"
#include "rest/calls/vectors_json.h"
#include "rest/json/json_members.h"
#include "rest/json/sequence_input.h"
#include "rest/json/tensor_json.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_fields.h"
#include "rest/tei/tei_reply.h"

namespace linserve {
namespace {

// A byte of weights becomes up to so many of JSON: {"index":2147483647,"value":…},
constexpr int64_t kWeightTextBytes = (32 + kLongestElement) / int64_t{sizeof(float)};

size_t CountOf(const EmbeddingsQuery& query) {
  return std::visit([](const auto& all) { return all.size(); }, query.sequences);
}

EmbeddingsQuery QueryOf(const RestCall& call) {
  EmbeddingsQuery query;
  query.model = TeiModelOf(call);
  query.answer_bytes = kJsonOfFloatByte;
  return query;
}

// Reads what /embed and /embed_all have in common, and further members.
absl::StatusOr<EmbeddingsQuery> ReadEmbed(const RestCall& call, JsonReader& reader,
                                          EmbeddingsQuery& query,
                                          const std::vector<JsonMember>& further) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  std::vector<JsonMember> members = TextMembers(reader, query.truncation, query.prompt_name);
  members.insert(members.end(), further.begin(), further.end());
  members.push_back(ParametersOf(reader, members));
  members.push_back(
      {"inputs", [&] { return ReadInputs(reader, "inputs", most, query.sequences); }});
  members.push_back({"model", [&] { return ReadName(reader, "model", query.model); }});
  const absl::Status read = ReadBody(reader, members);
  absl::Status whole = CheckThere(read, CountOf(query) > 0, "inputs");
  if (!whole.ok()) return whole;
  return std::move(query);
}

// Reads a text and those to compare it with, which become the first sequence and the others.
absl::Status ReadCompared(JsonReader& reader, int64_t most, Texts& texts) {
  std::string source;
  bool has_source = false;
  Texts others;
  const auto read_source = [&] {
    has_source = true;
    return ReadText(reader, "'source_sentence': expected a text", source);
  };
  absl::Status status =
      reader.Expect(JsonReader::Kind::kObject,
                    "'inputs': expected an object of \"source_sentence\" and \"sentences\"");
  if (status.ok()) {
    status = ReadMembers(
        reader,
        {{"source_sentence", read_source},
         {"sentences", [&] { return ReadTextList(reader, "sentences", most - 1, others); }}});
  }
  status = CheckThere(std::move(status), has_source, "source_sentence");
  status = CheckThere(std::move(status), !others.empty(), "sentences");
  texts.push_back(std::move(source));
  std::move(others.begin(), others.end(), std::back_inserter(texts));
  return status;
}

absl::StatusOr<EmbeddingsQuery> ReadSimilarity(const RestCall& call) {
  EmbeddingsQuery query = QueryOf(call);
  query.answer_bytes = 0;  // a vector becomes one number
  Texts texts;
  JsonReader reader(call.http.body, WantedBy(call));
  const int64_t most = call.service.limits.max_sequences_per_request;
  const absl::Status status = ReadBody(
      reader, {{"inputs", [&] { return ReadCompared(reader, most, texts); }},
               ParametersOf(reader, TextMembers(reader, query.truncation, query.prompt_name)),
               {"model", [&] { return ReadName(reader, "model", query.model); }}});
  absl::Status whole = CheckThere(status, !texts.empty(), "inputs");
  if (!whole.ok()) return whole;
  query.sequences = std::move(texts);
  return query;
}

// Answers a query with each of the vectors as `append` writes it, which makes of a byte up to
// `answer_bytes`.
HttpReply AskForVectors(
    const RestCall& call, const std::string& rpc,
    absl::FunctionRef<absl::StatusOr<EmbeddingsQuery>()> read, int64_t answer_bytes,
    const std::function<absl::Status(const Tensor& vector, std::string& text)>& append) {
  const auto write = [&](const Embeddings& embeddings) -> absl::StatusOr<HttpReply> {
    std::string text = "[";
    absl::Status written = AppendVectors(
        call, embeddings, answer_bytes,
        [&](size_t, const Tensor& vector) { return append(vector, text); }, text);
    if (!written.ok()) return written;
    return HttpReply{.body = std::move(text += ']'), .packable = true};
  };
  return TeiReply<Embeddings>(call, Ask<EmbeddingsRequestState>(call, rpc, read), write);
}

// Appends the weights that are not 0, each with the place of its word.
absl::Status AppendSparse(const Tensor& weights, std::string& text) {
  const float* weight = weights.data<float>();
  text += '[';
  for (int64_t i = 0; i < weights.elements(); ++i) {
    if (weight[i] == 0) continue;
    if (!std::isfinite(weight[i])) {
      return absl::OutOfRangeError("a weight is not finite, which JSON has no form for");
    }
    if (text.back() != '[') text += ',';
    text += R"({"index":)" + std::to_string(i) + R"(,"value":)";
    AppendFloat(weight[i], text);
    text += '}';
  }
  text += ']';
  return absl::OkStatus();
}

// Returns the cosines between the first vector, which all have length one, and the others.
absl::StatusOr<HttpReply> WriteSimilarity(const Embeddings& embeddings) {
  const Tensor& source = embeddings.vectors[0];
  const auto count = std::ssize(embeddings.vectors) - 1;
  auto [cosines, bytes] = Tensor::Allocate(DType::kF32, {count});
  auto* cosine = reinterpret_cast<float*>(bytes);
  for (size_t i = 1; i < embeddings.vectors.size(); ++i) {
    const auto* other = embeddings.vectors[i].data<float>();
    *cosine++ = static_cast<float>(std::inner_product(
        source.data<float>(), source.data<float>() + source.elements(), other, 0.0));
  }
  HttpReply reply;
  if (absl::Status status = AppendElements(cosines, reply.body); !status.ok()) return status;
  return reply;
}

}  // namespace

HttpReply TeiEmbed(const RestCall& call) {
  EmbeddingsQuery query = QueryOf(call);
  JsonReader reader(call.http.body, WantedBy(call));
  const auto read = [&] {
    return ReadEmbed(
        call, reader, query,
        {{"normalize", [&] { return ReadBool(reader, "normalize", query.normalize); }},
         {"dimensions", [&] { return ReadPositive(reader, "dimensions", query.dimensions); }}});
  };
  return AskForVectors(call, "/embed", read, kJsonOfFloatByte, AppendElements);
}

HttpReply TeiEmbedAll(const RestCall& call) {
  EmbeddingsQuery query = QueryOf(call);
  query.all_rows = true;
  query.normalize = false;
  JsonReader reader(call.http.body, WantedBy(call));
  const auto read = [&] {
    return ReadEmbed(call, reader, query,
                     {NotHere(reader, "normalize", "/embed_all gives rows as they are"),
                      NotHere(reader, "dimensions", "/embed_all gives whole rows")});
  };
  const auto append = [](const Tensor& rows, std::string& text) {
    absl::Status status;
    text += '[';
    for (int64_t row = 0; row < rows.shape()[0] && status.ok(); ++row) {
      if (row > 0) text += ',';
      status = AppendElements(rows.Rows(row, row + 1), text);
    }
    text += ']';
    return status;
  };
  return AskForVectors(call, "/embed_all", read, kJsonOfFloatByte, append);
}

HttpReply TeiEmbedSparse(const RestCall& call) {
  EmbeddingsQuery query = QueryOf(call);
  query.sparse = true;
  query.normalize = false;
  query.answer_bytes = kWeightTextBytes;
  JsonReader reader(call.http.body, WantedBy(call));
  const auto read = [&] {
    return ReadEmbed(call, reader, query,
                     {NotHere(reader, "normalize", "/embed_sparse gives weights as they are"),
                      NotHere(reader, "dimensions", "/embed_sparse gives all weights")});
  };
  return AskForVectors(call, "/embed_sparse", read, kWeightTextBytes, AppendSparse);
}

HttpReply TeiSimilarity(const RestCall& call) {
  const auto embeddings =
      Ask<EmbeddingsRequestState>(call, "/similarity", [&] { return ReadSimilarity(call); });
  return TeiReply<Embeddings>(call, embeddings, WriteSimilarity);
}

}  // namespace linserve
