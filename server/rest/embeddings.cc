#include "rest/embeddings.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/pooling.h"
#include "core/quote.h"
#include "core/truncation.h"
#include "rest/float_json.h"
#include "rest/http_errors.h"
#include "rest/parse_json.h"
#include "rest/sequence_input.h"
#include "rest/waiting_infer.h"
#include "rpc/inference_checks.h"
#include "rpc/inference_texts.h"

namespace linserve {
namespace {

using nlohmann::json;
struct Vectors {
  std::string model;
  int64_t tokens = 0;              // of all sequences
  std::vector<std::string> bytes;  // of each one's floats
  std::shared_ptr<void> sending;   // InferAnswer::sending
};

// What the two APIs ask for in different words.
struct Asked {
  std::string model;
  SequenceInput sequences;
  bool normalize = true;
  Truncation truncation = Truncation::kNone;
  bool base64 = false;
};

absl::StatusOr<inference::ModelInferRequest> ToRequest(const RestCall& call,
                                                       const absl::StatusOr<Asked>& asked) {
  if (!asked.ok()) return asked.status();
  const auto model = FindModel(call.service, *call.caller, asked->model, "");
  if (!model.ok()) return model.status();
  inference::ModelInferRequest message;
  const absl::Status status =
      AddBatch(**model, asked->sequences, call.service.limits.max_message_bytes, message);
  if (!status.ok()) return status;
  const Pooling preferred = (*model)->default_pooling;
  const Pooling pooling = preferred == Pooling::kNone ? Pooling::kMean : preferred;
  message.set_model_name((*model)->name);
  message.add_outputs()->set_name(kTokensOutput);
  auto& parameters = *message.mutable_parameters();
  parameters["pooling"].set_string_param(std::string(Name(pooling)));
  parameters["normalize"].set_bool_param(asked->normalize);
  parameters["truncation"].set_string_param(std::string(Name(asked->truncation)));
  return message;
}

absl::StatusOr<Vectors> Embed(const RestCall& call, const std::string& rpc,
                              const absl::StatusOr<Asked>& asked) {
  const auto answer = InferAndWait(call, rpc, ToRequest(call, asked));
  if (!answer.ok()) return answer.status();
  const auto outputs = answer->Outputs(0);
  const Tensor& all = outputs[0].second;
  const Tensor& tokens = outputs[1].second;
  Vectors vectors{.model = answer->model_name,
                  .tokens = std::accumulate(tokens.data<int64_t>(),
                                            tokens.data<int64_t>() + tokens.elements(), int64_t{0}),
                  .bytes = {},
                  .sending = answer->sending};
  const auto count = static_cast<size_t>(tokens.elements());
  const size_t each = all.byte_size() / count;
  for (size_t i = 0; i < count; ++i) {
    vectors.bytes.emplace_back(reinterpret_cast<const char*>(all.bytes()) + i * each, each);
  }
  return vectors;
}

FloatJson Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

HttpReply OpenAiError(const absl::Status& status) {
  const int code = HttpCode(status);
  return ErrorReply(status,
                    ToText(json{{"error",
                                 {{"message", status.message()},
                                  {"type", code < 500 ? "invalid_request_error" : "server_error"},
                                  {"param", nullptr},
                                  {"code", nullptr}}}}));
}

HttpReply TeiError(const absl::Status& status) {
  std::string type = "backend";
  if (absl::IsInvalidArgument(status)) type = "validation";
  if (absl::IsResourceExhausted(status)) type = "overloaded";
  if (absl::IsUnavailable(status)) type = "unhealthy";
  return ErrorReply(status, ToText(json{{"error", status.message()}, {"error_type", type}}));
}

json OpenAiModelOf(const std::string& name) {
  return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "linserve"}};
}

// "" if there is none.
absl::StatusOr<std::string> TextOf(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return "";
  if (!found->is_string()) return absl::InvalidArgumentError(Quoted(name) + ": expected a string");
  return found->get<std::string>();
}

// "truncate" says whether, "truncation_direction" on which side.
absl::StatusOr<Truncation> TeiTruncation(const json& body) {
  const json truncate = body.value("truncate", json(false));
  const json side = body.value("truncation_direction", json("Right"));
  if (!truncate.is_null() && !truncate.is_boolean()) {
    return absl::InvalidArgumentError("'truncate': expected a bool");
  }
  if (side != "Left" && side != "Right") {
    return absl::InvalidArgumentError("'truncation_direction': expected \"Left\" or \"Right\"");
  }
  if (truncate != true) return Truncation::kNone;
  return side == "Left" ? Truncation::kLeft : Truncation::kRight;
}

absl::StatusOr<Asked> ReadOpenAi(const RestCall& call) {
  if (absl::Status admitted = Admit(call); !admitted.ok()) return admitted;
  const auto parsed = ParseObject(call.http.body);
  if (!parsed.ok()) return parsed.status();
  const json& body = *parsed;
  auto sequences = ReadSequences(body, "input");
  if (!sequences.ok()) return sequences.status();
  const auto model = TextOf(body, "model");
  if (!model.ok()) return model.status();
  const auto encoding = TextOf(body, "encoding_format");
  if (!encoding.ok()) return encoding.status();
  if (!encoding->empty() && *encoding != "float" && *encoding != "base64") {
    return absl::InvalidArgumentError("'encoding_format': expected \"float\" or \"base64\"");
  }
  if (body.contains("dimensions") && !body["dimensions"].is_null()) {
    return absl::InvalidArgumentError(
        "'dimensions': this model's vectors cannot be shortened; leave it out");
  }
  return Asked{
      .model = *model, .sequences = *std::move(sequences), .base64 = *encoding == "base64"};
}

absl::StatusOr<Asked> ReadTei(const RestCall& call) {
  if (absl::Status admitted = Admit(call); !admitted.ok()) return admitted;
  const auto parsed = ParseObject(call.http.body);
  if (!parsed.ok()) return parsed.status();
  const json& body = *parsed;
  auto sequences = ReadSequences(body, "inputs");
  if (!sequences.ok()) return sequences.status();
  const auto model = TextOf(body, "model");
  if (!model.ok()) return model.status();
  const json normalize = body.value("normalize", json(true));
  if (!normalize.is_boolean()) {
    return absl::InvalidArgumentError("'normalize': expected a bool");
  }
  const auto truncation = TeiTruncation(body);
  if (!truncation.ok()) return truncation.status();
  return Asked{.model = *model,
               .sequences = *std::move(sequences),
               .normalize = normalize,
               .truncation = *truncation};
}

}  // namespace

HttpReply OpenAiEmbeddings(const RestCall& call) {
  const auto asked = ReadOpenAi(call);
  const auto vectors = Embed(call, "/v1/embeddings", asked);
  if (!vectors.ok()) return OpenAiError(vectors.status());
  FloatJson answer = {
      {"object", "list"},
      {"model", vectors->model},
      {"usage", {{"prompt_tokens", vectors->tokens}, {"total_tokens", vectors->tokens}}}};
  FloatJson& data = answer["data"] = FloatJson::array();
  for (const std::string& bytes : vectors->bytes) {
    const size_t index = data.size();
    data.push_back({{"object", "embedding"}, {"index", index}});
    data.back()["embedding"] = asked->base64 ? FloatJson(absl::Base64Escape(bytes)) : Floats(bytes);
  }
  return {.body = ToText(answer), .sending = vectors->sending};
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
  const auto model = FindModel(call.service, *call.caller, call.http.captures.at(0), "");
  if (!model.ok()) return OpenAiError(model.status());
  return {.body = ToText(OpenAiModelOf((*model)->name))};
}

HttpReply TeiEmbed(const RestCall& call) {
  const auto vectors = Embed(call, "/embed", ReadTei(call));
  if (!vectors.ok()) return TeiError(vectors.status());
  FloatJson answer = FloatJson::array();
  for (const std::string& bytes : vectors->bytes) answer.push_back(Floats(bytes));
  return {.body = ToText(answer), .sending = vectors->sending};
}

}  // namespace linserve
