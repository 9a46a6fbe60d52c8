#include "rest/openai/openai_embeddings.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "core/json/json_number.h"
#include "core/json/json_text.h"
#include "core/status/parameter.h"
#include "core/tensor/tensor.h"
#include "rest/calls/answering.h"
#include "rest/calls/http_errors.h"
#include "rest/calls/vectors_json.h"
#include "rest/json/json_members.h"
#include "rest/json/sequence_input.h"
#include "rest/json/tensor_json.h"
#include "rest/openai/openai_form.h"
#include "rpc/calls/grpc_status.h"
#include "serving/admission.h"

namespace linserve {
namespace {

using nlohmann::json;

constexpr int64_t kBase64Bytes = 2;  // four characters for three bytes

json OpenAiModelOf(const std::string& name) {
  return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "linserve"}};
}

absl::Status CheckEncoding(const std::string& encoding) {
  if (encoding.empty() || encoding == "float" || encoding == "base64") return absl::OkStatus();
  return absl::InvalidArgumentError("'encoding_format': expected \"float\" or \"base64\"");
}

// Reads vLLM's truncate_prompt_tokens: a number of tokens, or -1 for as many as the model takes.
absl::Status ReadMostTokens(JsonReader& reader, std::optional<int64_t>& most_tokens) {
  const auto text = reader.Skip();
  if (!text.ok() || *text == "null") return text.status();
  const auto most = IntegerOf<int64_t>(*text);
  if (!most || *most < -1 || *most == 0) {
    return absl::InvalidArgumentError(
        "'truncate_prompt_tokens': expected how many tokens to keep, or -1 for as many as the "
        "model takes");
  }
  most_tokens = std::max<int64_t>(*most, 0);
  return absl::OkStatus();
}

// Reads `truncate`: a bool, or where a text is cut, as NVIDIA's servers call it, too.
absl::Status ReadTruncate(JsonReader& reader, AskedTruncation& asked) {
  if (reader.Next() == JsonReader::Kind::kBool) return Put(reader.Bool(), asked.truncate);
  std::string given;
  absl::Status status = ReadName(reader, "truncate", given);
  if (!status.ok() || given.empty()) return status;
  const std::string side = absl::AsciiStrToLower(given);
  asked.truncate = side != "none";
  if (side == "left" || side == "start") asked.side = Truncation::kLeft;
  if (side == "right" || side == "end") asked.side = Truncation::kRight;
  if (side == "none" || asked.side) return status;
  return absl::InvalidArgumentError(
      "'truncate': expected true, false, \"none\", \"left\" (\"start\") or \"right\" "
      "(\"end\")");
}

absl::StatusOr<EmbeddingsQuery> ReadOpenAi(const RestCall& call) {
  const int64_t most = call.service.limits.max_sequences_per_request;
  EmbeddingsQuery query;
  std::string encoding;
  std::optional<int64_t> most_tokens;
  JsonReader reader(call.http.body, WantedBy(call));
  absl::Status status = ReadOpenAiBody(
      reader,
      {{"input", [&] { return ReadSequences(reader, "input", most, query.sequences); }},
       {"model", [&] { return ReadName(reader, "model", query.model); }},
       {"truncate", [&] { return ReadTruncate(reader, query.truncation); }},
       {"truncate_prompt_tokens", [&] { return ReadMostTokens(reader, most_tokens); }},
       {"encoding_format", [&] { return ReadName(reader, "encoding_format", encoding); }},
       {"prompt_name", [&] { return ReadName(reader, "prompt_name", query.prompt_name); }},
       {"normalize", [&] { return ReadBool(reader, "normalize", query.normalize); }},
       {"dimensions", [&] { return ReadPositive(reader, "dimensions", query.dimensions); }}});
  if (status.ok()) status = OfParameter(CheckEncoding(encoding), "encoding_format");
  if (status.ok() && most_tokens && query.truncation.truncate == false) {
    status = OfParameter(
        absl::InvalidArgumentError("'truncate' is false, but 'truncate_prompt_tokens' asks for it"),
        "truncate_prompt_tokens");
  }
  if (most_tokens) query.truncation.truncate = true;
  query.most_tokens = most_tokens.value_or(0);
  query.cause_of_foreign_ids =
      "; LangChain's OpenAIEmbeddings sends cl100k's ids unless check_embedding_ctx_length=False";
  query.answer_bytes = encoding == "base64" ? kBase64Bytes : kJsonOfFloatByte;
  if (!status.ok()) return status;
  if (query.model.empty()) query.model = call.http.Header("linserve-model");  // as for TEI's paths
  const bool none = std::visit([](const auto& all) { return all.empty(); }, query.sequences);
  if (!none) return query;
  return OfParameter(absl::InvalidArgumentError("expected a JSON object with 'input'"), "input");
}

absl::StatusOr<HttpReply> WriteOpenAi(const RestCall& call, const Embeddings& embeddings,
                                      int64_t answer_bytes) {
  std::string text = R"({"object":"list","data":[)";
  const auto append = [&](size_t index, const Tensor& vector) {
    text += R"({"object":"embedding","index":)" + std::to_string(index) + R"(,"embedding":)";
    absl::Status status;
    if (answer_bytes == kBase64Bytes) {
      text +=
          '"' +
          absl::Base64Escape({reinterpret_cast<const char*>(vector.bytes()), vector.byte_size()}) +
          '"';
    } else {
      status = AppendElements(vector, text);
    }
    text += '}';
    return status;
  };
  absl::Status written = AppendVectors(call, embeddings, answer_bytes, append, text);
  if (!written.ok()) return written;
  text += EndOfAnswer(embeddings.model, embeddings.tokens);
  return HttpReply{.body = std::move(text), .packable = true};
}

}  // namespace

HttpReply OpenAiEmbeddings(const RestCall& call) {
  int64_t answer_bytes = 0;
  const auto embeddings = Ask<EmbeddingsRequestState>(call, "/v1/embeddings", [&] {
    auto query = ReadOpenAi(call);
    if (query.ok()) answer_bytes = query->answer_bytes;
    return query;
  });
  const auto error = [&](absl::Status status) {
    // What could be read and is still not valid is the input, unless it says otherwise.
    const bool read = answer_bytes > 0 && absl::IsInvalidArgument(status);
    if (read && ParameterOf(status).empty()) status = OfParameter(std::move(status), "input");
    return OpenAiError(status);
  };
  return ReplyWith<Embeddings>(embeddings, error, [&](const Embeddings& answer) {
    return WriteOpenAi(call, answer, answer_bytes);
  });
}

HttpReply OpenAiModels(const RestCall& call) {
  json data = json::array();
  for (const auto& model : call.service.repository.List()) {
    if (!call.caller->Sees(model->name)) continue;
    if (!data.empty() && data.back()["id"] == model->name) continue;
    data.push_back(OpenAiModelOf(model->name));
  }
  return {.body = JsonText(json{{"object", "list"}, {"data", data}})};
}

HttpReply OpenAiModel(const RestCall& call) {
  const auto model = FindModel(call.service, *call.caller, call.http.captures.at(0), 0);
  if (!model.ok()) return OpenAiError(model.status());
  return {.body = JsonText(OpenAiModelOf((*model)->name))};
}

}  // namespace linserve
