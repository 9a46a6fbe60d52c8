#include "rest/infer_json.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/quote.h"
#include "core/tensor.h"
#include "core/text_bytes.h"
#include "rest/float_json.h"
#include "rest/parse_json.h"
#include "rpc/inference_tensors.h"

namespace linserve {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using nlohmann::json;

constexpr const char* kBinarySize = "binary_data_size";
constexpr const char* kHeaderLength = "Inference-Header-Content-Length";

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

// The JSON of the body, and the bytes after it.
struct Body {
  json parsed;
  std::string_view binary;
};

absl::StatusOr<Body> ReadBody(const HttpRequest& request) {
  size_t length = request.body.size();
  const std::string header = request.Header("inference-header-content-length");
  if (!header.empty()) {
    const char* end = header.data() + header.size();
    const auto [last, error] = std::from_chars(header.data(), end, length);
    if (error != std::errc() || last != end || length > request.body.size()) {
      return Wrong(std::string(kHeaderLength) + " is " + Quoted(header) +
                   ", expected a number of bytes up to the body's " +
                   std::to_string(request.body.size()));
    }
  }
  const std::string_view body = request.body;
  auto parsed = ParseObject(body.substr(0, length));
  if (!parsed.ok()) return parsed.status();
  return Body{*std::move(parsed), body.substr(length)};
}

absl::StatusOr<InferParameter> ToParameter(const std::string& name, const json& value) {
  InferParameter parameter;
  if (value.is_boolean()) {
    parameter.set_bool_param(value);
  } else if (value.is_number_unsigned() &&
             value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    parameter.set_uint64_param(value);
  } else if (value.is_number_integer()) {
    parameter.set_int64_param(value);
  } else if (value.is_number_float()) {
    parameter.set_double_param(value);
  } else if (value.is_string()) {
    parameter.set_string_param(value);
  } else {
    return Wrong("parameter " + Quoted(name) + ": expected a bool, a number or a string");
  }
  return parameter;
}

// What is optional in an object, of a type that it must have if it is there.
const json* Find(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

template <typename Map>
absl::Status ReadParameters(const json& object, Map& parameters) {
  const json* given = Find(object, "parameters");
  if (given == nullptr) return absl::OkStatus();
  if (!given->is_object()) return Wrong("\"parameters\": expected an object");
  for (const auto& [name, value] : given->items()) {
    auto parameter = ToParameter(name, value);
    if (!parameter.ok()) return parameter.status();
    parameters[name] = *std::move(parameter);
  }
  return absl::OkStatus();
}

// Appends the elements of nested arrays to `raw`, each as a T.
template <typename T>
absl::Status Flatten(const json& data, const std::string& where, std::string& raw) {
  if (data.is_array()) {
    for (const json& part : data) {
      absl::Status status = Flatten<T>(part, where, raw);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  T value{};
  bool fits = false;
  if constexpr (std::is_same_v<T, bool>) {
    fits = data.is_boolean();
    if (fits) value = data.get<bool>();
  } else if constexpr (std::is_floating_point_v<T>) {
    fits = data.is_number();
    if (fits) value = static_cast<T>(data.get<double>());
  } else if (data.is_number_unsigned()) {
    fits = std::in_range<T>(data.get<uint64_t>());
    if (fits) value = static_cast<T>(data.get<uint64_t>());
  } else if (data.is_number_integer()) {
    fits = std::in_range<T>(data.get<int64_t>());
    if (fits) value = static_cast<T>(data.get<int64_t>());
  }
  if (!fits) return Wrong(where + ": " + ToText(data).substr(0, 64) + " is no such element");
  raw.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return absl::OkStatus();
}

absl::Status FlattenTexts(const json& data, const std::string& where, std::string& raw) {
  if (data.is_string()) {
    AppendText(data.get_ref<const std::string&>(), raw);
    return absl::OkStatus();
  }
  if (!data.is_array()) return Wrong(where + ": " + ToText(data).substr(0, 64) + " is no text");
  for (const json& part : data) {
    absl::Status status = FlattenTexts(part, where, raw);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Flatten(const std::string& datatype, const json& data, const std::string& where,
                     std::string& raw) {
  if (datatype == "BOOL") return Flatten<bool>(data, where, raw);
  if (datatype == "INT8") return Flatten<int8_t>(data, where, raw);
  if (datatype == "INT16") return Flatten<int16_t>(data, where, raw);
  if (datatype == "INT32") return Flatten<int32_t>(data, where, raw);
  if (datatype == "INT64") return Flatten<int64_t>(data, where, raw);
  if (datatype == "UINT8") return Flatten<uint8_t>(data, where, raw);
  if (datatype == "UINT16") return Flatten<uint16_t>(data, where, raw);
  if (datatype == "UINT32") return Flatten<uint32_t>(data, where, raw);
  if (datatype == "UINT64") return Flatten<uint64_t>(data, where, raw);
  if (datatype == "FP32") return Flatten<float>(data, where, raw);
  if (datatype == "FP64") return Flatten<double>(data, where, raw);
  if (datatype == "BYTES") return FlattenTexts(data, where, raw);
  return Wrong(where +
               ": elements of this datatype cannot stand in JSON; send them as binary data");
}

absl::Status ReadInput(const json& given, std::string_view& binary, ModelInferRequest& message) {
  if (!given.is_object() || !given.value("name", json()).is_string() ||
      !given.value("datatype", json()).is_string()) {
    return Wrong("\"inputs\": expected objects with \"name\", \"datatype\" and \"shape\"");
  }
  auto& input = *message.add_inputs();
  input.set_name(given["name"].get<std::string>());
  input.set_datatype(given["datatype"].get<std::string>());
  const std::string where = "input " + Quoted(input.name()) + " (" + input.datatype() + ")";
  const json* shape = Find(given, "shape");
  if (shape == nullptr || !shape->is_array()) return Wrong(where + ": expected a \"shape\"");
  for (const json& size : *shape) {
    if (!size.is_number_integer())
      return Wrong(where + ": \"shape\" holds something else than integers");
    input.add_shape(size);
  }
  absl::Status status = ReadParameters(given, *input.mutable_parameters());
  if (!status.ok()) return status;
  std::string& raw = *message.add_raw_input_contents();
  const json* data = Find(given, "data");
  if (const auto size = input.parameters().find(kBinarySize); size != input.parameters().end()) {
    const int64_t bytes = size->second.int64_param();
    if (data != nullptr || bytes < 0 || std::cmp_greater(bytes, binary.size())) {
      return Wrong(where + ": " + kBinarySize + " is " + std::to_string(bytes) + ", but " +
                   (data != nullptr
                        ? "there is \"data\", too"
                        : std::to_string(binary.size()) + " bytes are left in the body"));
    }
    raw = binary.substr(0, static_cast<size_t>(bytes));
    binary.remove_prefix(static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  if (data == nullptr) {
    return Wrong(where + ": expected \"data\", or binary data and its " + kBinarySize);
  }
  return Flatten(input.datatype(), *data, where, raw);
}

absl::Status ReadOutput(const json& given, JsonInferRequest& request) {
  if (!given.is_object() || !given.value("name", json()).is_string()) {
    return Wrong("\"outputs\": expected objects with a \"name\"");
  }
  auto& output = *request.message.add_outputs();
  output.set_name(given["name"].get<std::string>());
  absl::Status status = ReadParameters(given, *output.mutable_parameters());
  const auto binary = output.parameters().find("binary_data");
  if (binary != output.parameters().end()) {
    (binary->second.bool_param() ? request.binary_outputs : request.json_outputs)
        .push_back(output.name());
  }
  return status;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename T, typename Number = std::identity>
FloatJson Elements(const Tensor& tensor, Number number = {}) {
  FloatJson::array_t elements(static_cast<size_t>(tensor.elements()));
  const T* values = tensor.data<T>();
  std::transform(values, values + elements.size(), elements.begin(), number);
  return elements;
}

// Nothing if JSON has no such numbers.
std::optional<FloatJson> Elements(const Tensor& tensor) {
  if (tensor.dtype() == DType::kF32) return Elements<float>(tensor);
  if (tensor.dtype() == DType::kI8) return Elements<int8_t>(tensor);
  if (tensor.dtype() == DType::kI64) return Elements<int64_t>(tensor);
  if (tensor.dtype() == DType::kF16) return Elements<uint16_t>(tensor, HalfToFloat);
  if (tensor.dtype() == DType::kBF16) return Elements<uint16_t>(tensor, BFloat16ToFloat);
  return std::nullopt;
}

FloatJson ParameterJson(const inference::InferParameter& parameter) {
  if (parameter.has_bool_param()) return parameter.bool_param();
  if (parameter.has_int64_param()) return parameter.int64_param();
  return parameter.string_param();
}

}  // namespace

absl::StatusOr<JsonInferRequest> ReadInferRequest(const HttpRequest& request) {
  auto body = ReadBody(request);
  if (!body.ok()) return body.status();
  JsonInferRequest read;
  const json& given = body->parsed;
  if (const json* id = Find(given, "id")) {
    if (!id->is_string()) return Wrong("\"id\": expected a string");
    read.message.set_id(id->get<std::string>());
  }
  absl::Status status = ReadParameters(given, *read.message.mutable_parameters());
  const auto all = read.message.parameters().find("binary_data_output");
  read.all_binary = all != read.message.parameters().end() && all->second.bool_param();
  const json* inputs = Find(given, "inputs");
  if (inputs == nullptr || !inputs->is_array()) return Wrong("expected \"inputs\", an array");
  for (const json& input : *inputs) {
    if (status.ok()) status = ReadInput(input, body->binary, read.message);
  }
  if (status.ok() && !body->binary.empty()) {
    status =
        Wrong(std::to_string(body->binary.size()) + " bytes after the JSON belong to no input");
  }
  const json* outputs = Find(given, "outputs");
  if (outputs != nullptr && !outputs->is_array()) return Wrong("\"outputs\": expected an array");
  for (const json& output : outputs == nullptr ? json::array() : *outputs) {
    if (status.ok()) status = ReadOutput(output, read);
  }
  if (!status.ok()) return status;
  return read;
}

HttpReply WriteInferResponse(const InferAnswer& answer, const JsonInferRequest& asked) {
  FloatJson header = {{"model_name", answer.model_name},
                      {"model_version", answer.model_version},
                      {"outputs", FloatJson::array()}};
  if (!answer.id.empty()) header["id"] = answer.id;
  for (const auto& [name, parameter] : answer.parameters) {
    header["parameters"][name] = ParameterJson(parameter);
  }
  std::string binary;
  bool any_binary = false;
  for (const auto& [name, tensor] : answer.Outputs(0)) {
    FloatJson output = {
        {"name", name}, {"datatype", Datatype(tensor.dtype())}, {"shape", tensor.shape()}};
    auto elements = Elements(tensor);
    const bool as_bytes = Contains(asked.binary_outputs, name) ||
                          (asked.all_binary && !Contains(asked.json_outputs, name));
    if (as_bytes || !elements) {
      output["parameters"][kBinarySize] = tensor.byte_size();
      binary.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_size());
      any_binary = true;
    } else {
      output["data"] = *std::move(elements);
    }
    header["outputs"].push_back(std::move(output));
  }
  HttpReply reply;
  reply.body = ToText(header);
  if (any_binary) {
    reply.content_type = "application/octet-stream";
    reply.headers.emplace_back(kHeaderLength, std::to_string(reply.body.size()));
    reply.body += binary;
  }
  return reply;
}

}  // namespace linserve
