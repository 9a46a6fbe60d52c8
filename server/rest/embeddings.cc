#include "rest/embeddings.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/pooling.h"
#include "core/quote.h"
#include "rest/float_json.h"
#include "rest/http_errors.h"
#include "rest/parse_json.h"
#include "rest/waiting_infer.h"
#include "rpc/inference_request.h"

namespace linserve {
namespace {

using nlohmann::json;
using Sequences = std::vector<std::vector<int64_t>>;

absl::StatusOr<std::vector<int64_t>> ReadIds(const json& given) {
  std::vector<int64_t> ids;
  for (const json& id : given) {
    const bool too_large = id.is_number_unsigned() && !std::in_range<int64_t>(id.get<uint64_t>());
    if (!id.is_number_integer() || too_large) {
      return absl::InvalidArgumentError("expected token ids, found " + ToText(id).substr(0, 64) +
                                        (id.is_string() ? "; this model has no tokenizer" : ""));
    }
    ids.push_back(id);
  }
  return ids;
}

// [1, 2] or [[1, 2], [3]].
absl::StatusOr<Sequences> ReadSequences(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end()) {
    return absl::InvalidArgumentError("expected a JSON object with " + Quoted(name));
  }
  if (found->is_string()) {
    return absl::InvalidArgumentError(
        Quoted(name) + " is a text, expected token ids; this model has no tokenizer");
  }
  if (!found->is_array() || found->empty()) {
    return absl::InvalidArgumentError(Quoted(name) +
                                      ": expected token ids, or a list of such lists");
  }
  Sequences sequences;
  if (!found->front().is_array()) {
    auto ids = ReadIds(*found);
    if (!ids.ok()) return ids.status();
    sequences.push_back(*std::move(ids));
    return sequences;
  }
  for (const json& one : *found) {
    if (one.empty()) return absl::InvalidArgumentError(Quoted(name) + " holds an empty sequence");
    if (!one.is_array()) return absl::InvalidArgumentError(Quoted(name) + " mixes ids and lists");
    auto ids = ReadIds(one);
    if (!ids.ok()) return ids.status();
    sequences.push_back(*std::move(ids));
  }
  return sequences;
}

absl::StatusOr<std::string> TokenInput(const ServedModel& model) {
  const std::string* name = nullptr;
  for (const InputSpec& input : model.engine->info().signature.inputs) {
    if (input.optional) continue;
    if (name != nullptr || input.kind != InputKind::kToken) {
      return absl::InvalidArgumentError("model " + Quoted(model.name) +
                                        " does not take one sequence of token ids; use "
                                        "/v2/models/" +
                                        model.name + "/infer");
    }
    name = &input.name;
  }
  return *name;
}

void AddInput(const std::string& name, const std::vector<int64_t>& shape,
              const std::vector<int64_t>& values, inference::ModelInferRequest& message) {
  auto& input = *message.add_inputs();
  input.set_name(name);
  input.set_datatype("INT64");
  input.mutable_shape()->Assign(shape.begin(), shape.end());
  message.add_raw_input_contents(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(int64_t));
}

// The ragged sequences as one padded batch, of `most` bytes.
absl::StatusOr<inference::ModelInferRequest> BatchOf(const std::string& input,
                                                     const Sequences& sequences, int64_t most) {
  std::vector<int64_t> lengths;
  for (const auto& ids : sequences) lengths.push_back(static_cast<int64_t>(ids.size()));
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const auto per_sequence = static_cast<int64_t>(sizeof(int64_t) * sequences.size());
  if (longest > most / per_sequence) {
    return absl::InvalidArgumentError(
        std::to_string(sequences.size()) + " sequences of up to " + std::to_string(longest) +
        " token ids are too much for one request; send long and short ones apart");
  }
  std::vector<int64_t> padded(sequences.size() * static_cast<size_t>(longest));
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].begin(), sequences[i].end(),
              padded.begin() + static_cast<std::ptrdiff_t>(i) * longest);
  }
  const auto batch = static_cast<int64_t>(sequences.size());
  inference::ModelInferRequest message;
  AddInput(input, {batch, longest}, padded, message);
  AddInput("lengths", {batch}, lengths, message);
  return message;
}

struct Vectors {
  std::string model;
  std::vector<std::string> bytes;  // of each one's floats
};

absl::StatusOr<Vectors> Embed(const RestCall& call, const std::string& rpc,
                              const std::string& model_name, const Sequences& sequences,
                              bool normalize) {
  std::string input;
  Pooling pooling = Pooling::kMean;
  std::string name;
  {
    const auto model = FindModel(call.service, *call.caller, model_name, "");
    if (!model.ok()) return model.status();
    auto found = TokenInput(**model);
    if (!found.ok()) return found.status();
    input = *found;
    name = (*model)->name;
    if ((*model)->default_pooling != Pooling::kNone) pooling = (*model)->default_pooling;
  }
  auto message = BatchOf(input, sequences, call.service.limits.max_message_bytes);
  if (!message.ok()) return message.status();
  message->set_model_name(name);
  auto& parameters = *message->mutable_parameters();
  parameters["pooling"].set_string_param(std::string(Name(pooling)));
  parameters["normalize"].set_bool_param(normalize);
  const auto answer = InferAndWait(call, rpc, *std::move(message));
  if (!answer.ok()) return answer.status();
  const Tensor all = answer->Outputs(0)[0].second;
  Vectors vectors{.model = name, .bytes = {}};
  const size_t each = all.byte_size() / sequences.size();
  for (size_t i = 0; i < sequences.size(); ++i) {
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
  const int code = HttpCode(status.code());
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

// "" if there is none.
absl::StatusOr<std::string> TextOf(const json& body, const char* name) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return "";
  if (!found->is_string()) return absl::InvalidArgumentError(Quoted(name) + ": expected a string");
  return found->get<std::string>();
}

}  // namespace

HttpReply OpenAiEmbeddings(const RestCall& call) {
  if (const absl::Status admitted = Admit(call); !admitted.ok()) return OpenAiError(admitted);
  const auto parsed = ParseObject(call.http.body);
  if (!parsed.ok()) return OpenAiError(parsed.status());
  const json& body = *parsed;
  const auto sequences = ReadSequences(body, "input");
  if (!sequences.ok()) return OpenAiError(sequences.status());
  const auto model = TextOf(body, "model");
  if (!model.ok()) return OpenAiError(model.status());
  const auto encoding = TextOf(body, "encoding_format");
  if (!encoding.ok()) return OpenAiError(encoding.status());
  if (!encoding->empty() && *encoding != "float" && *encoding != "base64") {
    return OpenAiError(
        absl::InvalidArgumentError("'encoding_format': expected \"float\" or \"base64\""));
  }
  if (body.contains("dimensions") && !body["dimensions"].is_null()) {
    return OpenAiError(absl::InvalidArgumentError(
        "'dimensions': this model's vectors cannot be shortened; leave it out"));
  }
  const auto vectors = Embed(call, "/v1/embeddings", *model, *sequences, true);
  if (!vectors.ok()) return OpenAiError(vectors.status());
  int64_t tokens = 0;
  for (const auto& ids : *sequences) tokens += static_cast<int64_t>(ids.size());
  FloatJson answer = {{"object", "list"},
                      {"model", vectors->model},
                      {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
  FloatJson& data = answer["data"] = FloatJson::array();
  for (const std::string& bytes : vectors->bytes) {
    const size_t index = data.size();
    data.push_back({{"object", "embedding"}, {"index", index}});
    data.back()["embedding"] =
        *encoding == "base64" ? FloatJson(absl::Base64Escape(bytes)) : Floats(bytes);
  }
  return {.body = ToText(answer)};
}

HttpReply OpenAiModels(const RestCall& call) {
  json data = json::array();
  for (const auto& model : call.service.repository.List()) {
    if (!call.caller->Sees(model->name)) continue;
    if (!data.empty() && data.back()["id"] == model->name) continue;
    data.push_back(
        {{"id", model->name}, {"object", "model"}, {"created", 0}, {"owned_by", "linserve"}});
  }
  return {.body = ToText(json{{"object", "list"}, {"data", data}})};
}

HttpReply TeiEmbed(const RestCall& call) {
  if (const absl::Status admitted = Admit(call); !admitted.ok()) return TeiError(admitted);
  const auto parsed = ParseObject(call.http.body);
  if (!parsed.ok()) return TeiError(parsed.status());
  const json& body = *parsed;
  const auto sequences = ReadSequences(body, "inputs");
  if (!sequences.ok()) return TeiError(sequences.status());
  const auto model = TextOf(body, "model");
  if (!model.ok()) return TeiError(model.status());
  const json normalize = body.value("normalize", json(true));
  if (!normalize.is_boolean()) {
    return TeiError(absl::InvalidArgumentError("'normalize': expected a bool"));
  }
  const auto vectors = Embed(call, "/embed", *model, *sequences, normalize);
  if (!vectors.ok()) return TeiError(vectors.status());
  FloatJson answer = FloatJson::array();
  for (const std::string& bytes : vectors->bytes) answer.push_back(Floats(bytes));
  return {.body = ToText(answer)};
}

}  // namespace linserve
