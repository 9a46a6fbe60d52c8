#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/json/json_number.h"
#include "core/status/retry_delay.h"
#include "core/strings/quote.h"
#include "core/tensor/tensor.h"
#include "rest/json/json_members.h"
#include "rest/json/tensor_json.h"
#include "rest/oip/infer_json.h"
#include "rpc/oip/inference_parameters.h"
#include "rpc/oip/inference_tensors.h"

namespace linserve {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using Input = ModelInferRequest::InferInputTensor;
using Kind = JsonReader::Kind;

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status TooMany(const std::string& what, size_t most) {
  return Wrong(what + ": expected at most " + std::to_string(most));
}

// Returns how much of the body is JSON; the rest is binary data.
absl::StatusOr<size_t> JsonSize(const HttpRequest& request) {
  const std::string header = request.Header("inference-header-content-length");
  if (header.empty()) return request.body.size();
  const auto size = JsonLength(request);
  if (size && *size <= request.body.size()) return *size;
  return Wrong(std::string(kHeaderLength) + " is " + Quoted(header) +
               ", expected a number of bytes up to the body's " +
               std::to_string(request.body.size()));
}

absl::Status ReadNumber(JsonReader& reader, const std::string& name, InferParameter& parameter) {
  const auto text = reader.Number();
  if (!text.ok()) return text.status();
  if (const auto integer = IntegerOf<int64_t>(*text)) {
    parameter.set_int64_param(*integer);
  } else if (const auto large = IntegerOf<uint64_t>(*text)) {
    parameter.set_uint64_param(*large);
  } else if (const auto real = DoubleOf(*text)) {
    parameter.set_double_param(*real);
  } else {
    return Wrong("parameter " + Quoted(name) + ": " + Quoted(*text) + " is too large a number");
  }
  return absl::OkStatus();
}

absl::Status ReadParameter(JsonReader& reader, const std::string& name, InferParameter& parameter) {
  switch (reader.Next()) {
    case Kind::kBool: {
      const auto given = reader.Bool();
      if (given.ok()) parameter.set_bool_param(*given);
      return given.status();
    }
    case Kind::kString:
      return Put(reader.String(), *parameter.mutable_string_param());
    case Kind::kNumber:
      return ReadNumber(reader, name, parameter);
    default:
      return reader.Unexpected("parameter " + Quoted(name) +
                               ": expected a bool, a number or a string");
  }
}

template <typename Map>
absl::Status ReadParameters(JsonReader& reader, Map& parameters) {
  if (reader.Next() == Kind::kNull) return reader.Skip().status();
  absl::Status object = reader.Expect(Kind::kObject, "\"parameters\": expected an object");
  if (!object.ok()) return object;
  return reader.Object([&](const std::string& name) -> absl::Status {
    if (parameters.contains(name)) {
      return Wrong("parameter " + Quoted(name) + " is given more than once");
    }
    if (parameters.size() == kMaxParameters) return TooMany("\"parameters\"", kMaxParameters);
    absl::Status bounded = CheckName("a parameter's name", name);
    if (!bounded.ok()) return bounded;
    return ReadParameter(reader, name, parameters[name]);
  });
}

absl::Status ReadShape(JsonReader& reader, Input& input) {
  const std::string where = "input " + Quoted(input.name());
  absl::Status array = reader.Expect(Kind::kArray, where + ": expected a \"shape\", an array");
  if (!array.ok()) return array;
  return reader.Array([&]() -> absl::Status {
    const auto text = reader.Skip();
    if (!text.ok()) return text.status();
    const auto size = IntegerOf<int64_t>(*text);
    if (!size) {
      return Wrong(where + ": \"shape\" holds something else than integers: " + Quoted(*text));
    }
    if (input.shape_size() == kMaxAxes) return TooMany(where + ": axes of \"shape\"", kMaxAxes);
    input.add_shape(*size);
    return absl::OkStatus();
  });
}

// Refuses a shape before anything is made of it that no data have, or that has none and yet says
// how many sequences there are.
absl::Status CheckShape(const Input& input, int64_t most_sequences, const std::string& where) {
  const Shape shape(input.shape().begin(), input.shape().end());
  const auto elements = CheckedElementCount(shape);
  if (!elements) return Wrong(where + ": no tensor has the shape " + ToString(shape));
  const bool too_many =
      *elements == 0 && *std::max_element(shape.begin(), shape.end()) > most_sequences;
  if (!too_many) return absl::OkStatus();
  return Wrong(where + ": shape " + ToString(shape) + " has no elements, expected at most " +
               std::to_string(most_sequences) + " of them (max_sequences_per_request)");
}

// Reads one request, of which `binary` are the bytes after the JSON that no input has taken yet.
class InferReader {
 public:
  InferReader(const RestCall& call, size_t json_size, JsonInferRequest& request, std::string& id)
      : go_on_(WantedBy(call)),
        reader_(std::string_view(call.http.body).substr(0, json_size), go_on_),
        binary_(std::string_view(call.http.body).substr(json_size)),
        most_sequences_(call.service.limits.max_sequences_per_request),
        request_(request),
        id_(id) {}

  absl::Status Read();

 private:
  absl::Status ReadId(std::string& id);
  absl::Status ReadInputs();
  absl::Status ReadInput();
  absl::Status ReadContents(const Input& input, std::optional<std::string_view> data);
  absl::Status ReadOutputs();
  absl::Status ReadOutput();

  const JsonReader::GoOn go_on_;
  JsonReader reader_;
  std::string_view binary_;
  const int64_t most_sequences_;
  JsonInferRequest& request_;
  std::string& id_;
  bool has_inputs_ = false;
};

absl::Status InferReader::Read() {
  std::string& id = *request_.message.mutable_id();
  auto& parameters = *request_.message.mutable_parameters();
  absl::Status status =
      ReadBody(reader_, {{"id", [&] { return ReadId(id); }},
                         {"parameters", [&] { return ReadParameters(reader_, parameters); }},
                         {"inputs", [&] { return ReadInputs(); }},
                         {"outputs", [&] { return ReadOutputs(); }}});
  if (!status.ok()) return status;
  if (!has_inputs_) return Wrong("expected \"inputs\", an array");
  if (!binary_.empty()) {
    return Wrong(std::to_string(binary_.size()) + " bytes after the JSON belong to no input");
  }
  return ReadFlag(parameters, "binary_data_output", request_.all_binary);
}

// Reads the request's id, which is known from then on, whatever is wrong with the rest.
absl::Status InferReader::ReadId(std::string& id) {
  absl::Status status = ReadName(reader_, "id", id);
  if (status.ok()) id_ = id;
  return status;
}

absl::Status InferReader::ReadInputs() {
  absl::Status status = reader_.Expect(Kind::kArray, "expected \"inputs\", an array");
  if (!status.ok()) return status;
  has_inputs_ = true;
  return reader_.Array([this] { return ReadInput(); });
}

absl::Status InferReader::ReadInput() {
  const std::string form = "\"inputs\": expected objects with \"name\", \"datatype\" and \"shape\"";
  ModelInferRequest& message = request_.message;
  if (std::cmp_equal(message.inputs_size(), kMaxTensors)) return TooMany("\"inputs\"", kMaxTensors);
  Input& input = *message.add_inputs();
  bool shaped = false;
  std::optional<std::string_view> data;
  const auto read_shape = [&] {
    shaped = true;
    return ReadShape(reader_, input);
  };
  // The elements can only be read once their datatype is known, which may stand behind them.
  const auto find_data = [&] {
    const auto text = reader_.Skip();
    if (text.ok()) data = *text;
    return text.status();
  };
  absl::Status status = reader_.Expect(Kind::kObject, form);
  if (!status.ok()) return status;
  status = ReadMembers(
      reader_,
      {{"name", [&] { return ReadName(reader_, "name", *input.mutable_name()); }},
       {"datatype", [&] { return ReadName(reader_, "datatype", *input.mutable_datatype()); }},
       {"shape", read_shape},
       {"parameters", [&] { return ReadParameters(reader_, *input.mutable_parameters()); }},
       {"data", find_data}});
  if (!status.ok()) return status;
  if (input.name().empty() || input.datatype().empty()) return Wrong(form);
  if (!shaped) return Wrong("input " + Quoted(input.name()) + ": expected a \"shape\", an array");
  return ReadContents(input, data);
}

absl::Status InferReader::ReadContents(const Input& input, std::optional<std::string_view> data) {
  absl::Status status = CheckDatatype(input.datatype());
  if (!status.ok()) return WithPrefix(status, "input " + Quoted(input.name()) + ": ");
  const std::string where =
      "input " + Quoted(input.name()) + " of type " + Quoted(input.datatype());
  status = CheckShape(input, most_sequences_, where);
  if (!status.ok()) return status;
  if (input.parameters().contains("shared_memory_region")) {
    return absl::UnimplementedError(where + ": shared memory is not supported; send the data");
  }
  std::string& raw = *request_.message.add_raw_input_contents();
  const auto size = input.parameters().find(kBinarySize);
  if (size == input.parameters().end()) {
    if (data) return ReadElements(input.datatype(), *data, go_on_, where, raw);
    return Wrong(where + ": expected \"data\", or binary data and its " + kBinarySize);
  }
  if (!size->second.has_int64_param()) {
    return Wrong(where + ": " + kBinarySize + " is no number of bytes below 2^63");
  }
  const int64_t bytes = size->second.int64_param();
  if (data || bytes < 0 || std::cmp_greater(bytes, binary_.size())) {
    return Wrong(where + ": " + kBinarySize + " is " + std::to_string(bytes) + ", but " +
                 (data ? "there is \"data\", too"
                       : std::to_string(binary_.size()) + " bytes are left in the body"));
  }
  raw = binary_.substr(0, static_cast<size_t>(bytes));
  binary_.remove_prefix(static_cast<size_t>(bytes));
  return absl::OkStatus();
}

absl::Status InferReader::ReadOutputs() {
  if (reader_.Next() == Kind::kNull) return reader_.Skip().status();
  absl::Status status = reader_.Expect(Kind::kArray, "\"outputs\": expected an array");
  if (!status.ok()) return status;
  return reader_.Array([this] { return ReadOutput(); });
}

absl::Status InferReader::ReadOutput() {
  const std::string form = "\"outputs\": expected objects with a \"name\"";
  ModelInferRequest& message = request_.message;
  if (std::cmp_equal(message.outputs_size(), kMaxTensors)) {
    return TooMany("\"outputs\"", kMaxTensors);
  }
  auto& output = *message.add_outputs();
  absl::Status status = reader_.Expect(Kind::kObject, form);
  if (status.ok()) {
    status = ReadMembers(
        reader_,
        {{"name", [&] { return ReadName(reader_, "name", *output.mutable_name()); }},
         {"parameters", [&] { return ReadParameters(reader_, *output.mutable_parameters()); }}});
  }
  if (!status.ok()) return status;
  if (output.name().empty()) return Wrong(form);
  if (!output.parameters().contains("binary_data")) return absl::OkStatus();
  bool binary = false;
  status = ReadFlag(output.parameters(), "binary_data", binary);
  (binary ? request_.binary_outputs : request_.json_outputs).push_back(output.name());
  return status;
}

}  // namespace

std::optional<uint64_t> JsonLength(const HttpRequest& request) {
  return IntegerOf<uint64_t>(request.Header("inference-header-content-length"));
}

absl::StatusOr<JsonInferRequest> ReadInferRequest(const RestCall& call, std::string& id) {
  const auto json_size = JsonSize(call.http);
  if (!json_size.ok()) return json_size.status();
  JsonInferRequest request;
  absl::Status status = InferReader(call, *json_size, request, id).Read();
  if (!status.ok()) return status;
  return request;
}

}  // namespace linserve
