#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/json/json_text.h"
#include "rest/json/tensor_json.h"
#include "rest/oip/infer_json.h"
#include "rpc/oip/inference_tensors.h"

namespace linserve {
namespace {

using nlohmann::json;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool AsBytes(const JsonInferRequest& asked, const std::string& name, DType dtype) {
  return !HasElements(dtype) || Contains(asked.binary_outputs, name) ||
         (asked.all_binary && !Contains(asked.json_outputs, name));
}

json ParameterJson(const inference::InferParameter& parameter) {
  if (parameter.has_bool_param()) return parameter.bool_param();
  if (parameter.has_int64_param()) return parameter.int64_param();
  if (parameter.has_uint64_param()) return parameter.uint64_param();
  if (parameter.has_double_param()) return parameter.double_param();
  return parameter.string_param();
}

// Returns all of the answer but its outputs.
json HeadOf(const InferAnswer& answer) {
  json head = {{"model_name", answer.model_name}, {"model_version", answer.model_version}};
  if (!answer.id.empty()) head["id"] = answer.id;
  for (const auto& [name, parameter] : answer.parameters) {
    head["parameters"][name] = ParameterJson(parameter);
  }
  return head;
}

// Appends an object's text without its last brace.
void AppendOpen(const json& object, std::string& text) {
  text += JsonText(object);
  text.pop_back();
}

}  // namespace

int64_t JsonInferRequest::AnswerBytes() const {
  const bool one_by_one =
      std::cmp_equal(binary_outputs.size(), message.outputs_size()) && !binary_outputs.empty();
  if ((all_binary || one_by_one) && json_outputs.empty()) return 1;
  constexpr int64_t kHalf = 2;
  const bool other_type = message.parameters().contains("dtype");
  return kLongestElement / (other_type ? kHalf : int64_t{sizeof(float)});
}

absl::StatusOr<HttpReply> WriteInferResponse(const InferAnswer& answer,
                                             const JsonInferRequest& asked) {
  HttpReply reply;
  std::string& text = reply.body;
  AppendOpen(HeadOf(answer), text);
  text += R"(,"outputs":)";
  std::vector<Tensor> binary;
  char separator = '[';
  for (const auto& [name, tensor] : answer.Outputs(0)) {
    text += std::exchange(separator, ',');
    json output = {
        {"name", name}, {"datatype", Datatype(tensor.dtype())}, {"shape", tensor.shape()}};
    if (AsBytes(asked, name, tensor.dtype())) {
      output["parameters"][kBinarySize] = tensor.byte_size();
      binary.push_back(tensor);
      text += JsonText(output);
      continue;
    }
    text.reserve(text.size() + static_cast<size_t>(tensor.elements() * kLongestElement));
    AppendOpen(output, text);
    text += R"(,"data":)";
    absl::Status written = AppendElements(tensor, text);
    if (!written.ok()) return written;
    text += '}';
  }
  text += "]}";
  reply.packable = binary.empty();
  if (binary.empty()) return reply;
  reply.content_type = "application/octet-stream";
  reply.headers.emplace_back(kHeaderLength, std::to_string(text.size()));
  for (const Tensor& tensor : binary) {
    text.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
  }
  return reply;
}

}  // namespace linserve
