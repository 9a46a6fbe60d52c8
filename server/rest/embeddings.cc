#include "rest/embeddings.h"

#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "core/sequence/truncation.h"
#include "core/status/quote.h"
#include "core/tensor/tensor.h"
#include "rest/embeddings_request.h"
#include "rest/http_errors.h"
#include "rest/json/json_members.h"
#include "rest/json/json_number.h"
#include "rest/json/json_text.h"
#include "rest/openai_form.h"
#include "rest/sequence_input.h"
#include "rest/tensor_json.h"
#include "rpc/calls/grpc_status.h"
#include "serving/admission.h"

namespace linserve {
namespace {

using nlohmann::json;

HttpReply TeiError(const absl::Status& status) {
  std::string type = "backend";
  if (absl::IsInvalidArgument(status)) type = "validation";
  if (absl::IsResourceExhausted(status)) type = "overloaded";
  if (absl::IsUnavailable(status)) type = "unhealthy";
  return ErrorReply(status, ToText(json{{"error", MessageOf(status)}, {"error_type", type}}));
}

json OpenAiModelOf(const std::string& name) {
  return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "linserve"}};
}

// Returns the query once its body was read with this status; its sequences are under `name`.
absl::StatusOr<EmbeddingsQuery> Whole(const absl::Status& status, EmbeddingsQuery query,
                                      const std::string& name) {
  if (!status.ok()) return status;
  const bool none = std::visit([](const auto& all) { return all.empty(); }, query.sequences);
  if (none) {
    return OfParameter(absl::InvalidArgumentError("expected a JSON object with " + Quoted(name)),
                       name);
  }
  return query;
}

absl::Status CheckEncoding(const std::string& encoding) {
  if (encoding.empty() || encoding == "float" || encoding == "base64") return absl::OkStatus();
  return absl::InvalidArgumentError("'encoding_format': expected \"float\" or \"base64\"");
}

// Reads how wide the vectors are to be; null: as wide as they are.
absl::Status ReadDimensions(JsonReader& reader, int64_t& dimensions) {
  if (reader.Next() == JsonReader::Kind::kNull) return reader.Skip().status();
  const auto text = reader.Skip();
  if (!text.ok()) return text.status();
  dimensions = IntegerOf<int64_t>(*text).value_or(0);
  if (dimensions > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("'dimensions': expected an integer of at least 1");
}

absl::StatusOr<EmbeddingsQuery> ReadOpenAi(const RestCall& call) {
  if (absl::Status admitted = Admit(call); !admitted.ok()) return admitted;
  const int64_t most = call.service.limits.max_sequences_per_request;
  EmbeddingsQuery query;
  std::string encoding;
  JsonReader reader(call.http.body, WantedBy(call));
  absl::Status status = ReadBody(
      reader,
      {{"input",
        [&] {
          return OfParameter(ReadSequences(reader, "input", most, query.sequences), "input");
        }},
       {"model", [&] { return OfParameter(ReadName(reader, "model", query.model), "model"); }},
       {"encoding_format",
        [&] {
          return OfParameter(ReadName(reader, "encoding_format", encoding), "encoding_format");
        }},
       {"dimensions",
        [&] { return OfParameter(ReadDimensions(reader, query.dimensions), "dimensions"); }}});
  if (status.ok()) status = OfParameter(CheckEncoding(encoding), "encoding_format");
  query.cause_of_foreign_ids =
      "; LangChain's OpenAIEmbeddings sends cl100k's ids unless check_embedding_ctx_length=False";
  query.base64 = encoding == "base64";
  return Whole(status, std::move(query), "input");
}

// Says on which side a text is truncated, if it is.
absl::StatusOr<Truncation> TeiTruncation(bool truncate, const std::string& side) {
  if (side != "Left" && side != "Right") {
    return absl::InvalidArgumentError("'truncation_direction': expected \"Left\" or \"Right\"");
  }
  if (!truncate) return Truncation::kNone;
  return side == "Left" ? Truncation::kLeft : Truncation::kRight;
}

absl::StatusOr<EmbeddingsQuery> ReadTei(const RestCall& call) {
  if (absl::Status admitted = Admit(call); !admitted.ok()) return admitted;
  const int64_t most = call.service.limits.max_sequences_per_request;
  EmbeddingsQuery query;
  bool truncate = false;
  std::string side = "Right";
  JsonReader reader(call.http.body, WantedBy(call));
  absl::Status status = ReadBody(
      reader,
      {{"inputs", [&] { return ReadSequences(reader, "inputs", most, query.sequences); }},
       {"model", [&] { return ReadName(reader, "model", query.model); }},
       {"normalize", [&] { return ReadBool(reader, "normalize", query.normalize); }},
       {"truncate", [&] { return ReadBool(reader, "truncate", truncate); }},
       {"truncation_direction", [&] { return ReadName(reader, "truncation_direction", side); }}});
  if (status.ok()) {
    const auto truncation = TeiTruncation(truncate, side);
    if (!truncation.ok()) return truncation.status();
    query.truncation = *truncation;
  }
  return Whole(status, std::move(query), "inputs");
}

// Appends one vector, by its index.
using AppendVector = std::function<absl::Status(size_t index, const Tensor& vector)>;

// Appends the vectors with commas between them. CANCELLED if the caller leaves meanwhile.
absl::Status AppendVectors(const RestCall& call, const Embeddings& embeddings,
                           const AppendVector& append, std::string& text) {
  constexpr size_t kAround = 64;  // what stands around a vector's elements
  const auto elements = static_cast<size_t>(embeddings.vectors[0].elements() * kLongestElement);
  text.reserve(embeddings.vectors.size() * (kAround + elements));
  for (size_t i = 0; i < embeddings.vectors.size(); ++i) {
    if (call.http.abandoned()) return absl::CancelledError("the caller left");
    if (i > 0) text += ',';
    if (absl::Status status = append(i, embeddings.vectors[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

HttpReply OpenAiEmbeddings(const RestCall& call) {
  auto query = ReadOpenAi(call);
  const bool base64 = query.ok() && query->base64;
  const auto embeddings = Embed(call, "/v1/embeddings", std::move(query));
  if (!embeddings.ok()) return OpenAiError(embeddings.status());
  std::string text = R"({"object":"list","data":[)";
  const absl::Status written = AppendVectors(
      call, *embeddings,
      [&](size_t index, const Tensor& vector) {
        text += R"({"object":"embedding","index":)" + std::to_string(index) + R"(,"embedding":)";
        absl::Status status;
        if (base64) {
          text += '"' +
                  absl::Base64Escape(
                      {reinterpret_cast<const char*>(vector.bytes()), vector.byte_size()}) +
                  '"';
        } else {
          status = AppendElements(vector, text);
        }
        text += '}';
        return status;
      },
      text);
  if (!written.ok()) return OpenAiError(written);
  const json usage = {{"prompt_tokens", embeddings->tokens}, {"total_tokens", embeddings->tokens}};
  text += R"(],"model":)" + ToText(json(embeddings->model)) + R"(,"usage":)" + ToText(usage) + '}';
  return {.body = std::move(text), .packable = true, .sending = embeddings->sending};
}

HttpReply OpenAiModels(const RestCall& call) {
  json data = json::array();
  for (const auto& model : call.service.repository.List()) {
    if (!call.caller->Sees(model->name)) continue;
    if (!data.empty() && data.back()["id"] == model->name) continue;
    data.push_back(OpenAiModelOf(model->name));
  }
  return {.body = ToText(json{{"object", "list"}, {"data", data}})};
}

HttpReply OpenAiModel(const RestCall& call) {
  const auto model = FindModel(call.service, *call.caller, call.http.captures.at(0), 0);
  if (!model.ok()) return OpenAiError(model.status());
  return {.body = ToText(OpenAiModelOf((*model)->name))};
}

HttpReply TeiEmbed(const RestCall& call) {
  const auto embeddings = Embed(call, "/embed", ReadTei(call));
  if (!embeddings.ok()) return TeiError(embeddings.status());
  std::string text = "[";
  const absl::Status written = AppendVectors(
      call, *embeddings,
      [&](size_t /*index*/, const Tensor& vector) { return AppendElements(vector, text); }, text);
  if (!written.ok()) return TeiError(written);
  return {.body = std::move(text += ']'), .packable = true, .sending = embeddings->sending};
}

}  // namespace linserve
