#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "client/files/outputs.h"
#include "core/json/json_text.h"

namespace linserve {
namespace {

// Appends the shortest digits that read back as the same number. (The JSON library knows only
// double, whose digits would double the size.)
template <typename Number>
void AppendNumber(Number value, std::string& line) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) {
      line += "null";
      return;
    }
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  line.append(digits, end.ptr);
}

// Appends nested arrays, one level an axis.
template <typename Number>
const Number* AppendArray(const Number* values, const Shape& shape, size_t axis,
                          std::string& line) {
  if (axis == shape.size()) {
    AppendNumber(*values, line);
    return values + 1;
  }
  line += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0) line += ',';
    values = AppendArray(values, shape, axis + 1, line);
  }
  line += ']';
  return values;
}

void AppendTensor(const Tensor& tensor, std::string& line) {
  const int64_t count = tensor.elements();
  if (IsFloat(tensor.dtype())) {
    std::vector<float> values(static_cast<size_t>(count));
    ConvertToFloat(tensor.dtype(), tensor.bytes(), count, values.data());
    AppendArray(values.data(), tensor.shape(), 0, line);
  } else {
    std::vector<int64_t> values(static_cast<size_t>(count));
    ConvertToInt64(tensor.dtype(), tensor.bytes(), count, values.data());
    AppendArray(values.data(), tensor.shape(), 0, line);
  }
}

void AppendMilliseconds(std::chrono::nanoseconds time, std::string& line) {
  AppendNumber(static_cast<double>(time.count()) / 1e6, line);
}

void AppendOutputs(const TensorMap& outputs, std::string& line) {
  if (outputs.size() == 1) {
    line += ",\"embedding\":";
    AppendTensor(outputs.begin()->second, line);
    return;
  }
  line += ",\"outputs\":{";
  for (const auto& [name, tensor] : outputs) {
    if (line.back() != '{') line += ',';
    line += JsonText(nlohmann::json(name)) + ':';
    AppendTensor(tensor, line);
  }
  line += '}';
}

class JsonLinesWriter final : public ResultWriter {
 public:
  explicit JsonLinesWriter(std::ostream& stream) : stream_(stream) {}

  absl::Status Write(const SequenceResult& result) override {
    std::string line = "{\"index\":" + std::to_string(result.index);
    line += ",\"id\":" + JsonText(nlohmann::json(result.id));
    if (result.status.ok()) {
      line += ",\"tokens\":" + std::to_string(result.tokens);
      // By the Open Inference Protocol the server tells no times.
      if (result.timing.batch_sequences > 0) {
        line += ",\"queue_ms\":";
        AppendMilliseconds(result.timing.queue, line);
        line += ",\"compute_ms\":";
        AppendMilliseconds(result.timing.compute, line);
      }
      AppendOutputs(result.outputs, line);
    } else {
      line += ",\"error\":" + ErrorJson(result.status);
    }
    line += "}\n";
    stream_ << line << std::flush;  // so that whoever interrupts the program is left whole lines
    return Check();
  }

  absl::Status Finish() override { return Check(); }

 private:
  absl::Status Check() {
    return stream_ ? absl::OkStatus() : absl::DataLossError("the results cannot be written");
  }

  std::ostream& stream_;
};

}  // namespace

std::string ErrorJson(const absl::Status& status) {
  return "{\"code\":\"" + absl::StatusCodeToString(status.code()) +
         "\",\"message\":" + JsonText(nlohmann::json(status.message())) + "}";
}

std::unique_ptr<ResultWriter> MakeJsonLinesWriter(std::ostream& stream) {
  return std::make_unique<JsonLinesWriter>(stream);
}

}  // namespace linserve
