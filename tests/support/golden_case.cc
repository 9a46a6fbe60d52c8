#include "support/golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/files/safetensors.h"
#include "support/test_files.h"

namespace linserve {
namespace {

namespace fs = std::filesystem;

// Returns the tensor at `index` of an axis, which goes.
Tensor Select(const Tensor& tensor, size_t axis, size_t index) {
  Shape shape = tensor.shape();
  const auto count = static_cast<size_t>(shape[axis]);
  shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  auto [selected, bytes] = Tensor::Allocate(tensor.dtype(), shape);
  size_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(shape[i]);
  const size_t inner = selected.byte_size() / std::max<size_t>(outer, 1);
  for (size_t i = 0; i < outer; ++i) {
    std::memcpy(bytes + i * inner, tensor.bytes() + (i * count + index) * inner, inner);
  }
  return selected;
}

// Compares the elements of rows that count; if `rows` is null, all rows do.
double LargestDistance(const Tensor& a, const Tensor& b, const Tensor* rows) {
  if (a.shape() != b.shape() || a.dtype() != DType::kF32 || b.dtype() != DType::kF32) {
    return std::numeric_limits<double>::infinity();
  }
  const int64_t width = rows == nullptr ? 1 : a.elements() / rows->elements();
  double distance = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (rows != nullptr && rows->data<uint8_t>()[i / width] == 0) continue;
    const double difference = std::abs(double{a.data<float>()[i]} - double{b.data<float>()[i]});
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    distance = std::max(distance, difference);
  }
  return distance;
}

}  // namespace

GoldenCase::GoldenCase(const fs::path& directory)
    : directory_(directory),
      config_(nlohmann::json::parse(ReadAll(directory_ + "/config.json"))),
      tensors_(ReadSafetensors(directory_ + "/io.safetensors")->tensors) {}

int64_t GoldenCase::depth() const {
  const std::string architecture = config_.at("architecture");
  const bool two_by_default =
      architecture == "linformer_pytorch.LinformerLM" || architecture.ends_with("EncDec");
  int64_t depth = two_by_default ? 2 : 1;
  for (const char* key : {"depth", "enc_depth", "dec_depth", "num_hidden_layers", "num_layers",
                          "n_layers", "encoder_layers"}) {
    depth = std::max(depth, config_.at("params").value(key, int64_t{1}));
  }
  return depth;
}

bool GoldenCase::compares_in_16_bits() const {
  const bool beyond = name() == "molformer-kernel-tanh";  // has rows of ten millions
  return !beyond && depth() >= 2 && !compares_valid_rows_only();
}

bool GoldenCase::needs_zeros() const {
  const nlohmann::json wrapper = config_.value("wrapper", nlohmann::json());
  return wrapper.is_object() && wrapper.at("type") == "linformer_pytorch.Padder" &&
         !tensors_.contains("input.lengths");
}

std::vector<std::string> GoldenCase::outputs() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with("output.")) names.push_back(name.substr(7));
  }
  return names;
}

int GoldenCase::BatchAxis(const std::string& name) const {
  const std::string architecture = config_.at("architecture");
  if (architecture.starts_with("linear_multihead_attention.")) {
    if (name == "input.attn_mask") return tensors_.at(name).shape().size() == 2 ? -1 : 0;
    return name == "output.weights" || name == "input.key_padding_mask" ? 0 : 1;
  }
  return name == "input.e" || name == "input.f" ? -1 : 0;
}

const Tensor& GoldenCase::first_input() const {
  const auto x = tensors_.find("input.x");
  return x != tensors_.end() ? x->second : tensors_.at("input.query");
}

size_t GoldenCase::sequences() const {
  const std::string name = tensors_.contains("input.x") ? "input.x" : "input.query";
  return static_cast<size_t>(first_input().shape()[static_cast<size_t>(BatchAxis(name))]);
}

int64_t GoldenCase::Length(size_t sequence) const {
  const auto lengths = tensors_.find("input.lengths");
  if (lengths == tensors_.end()) return first_input().shape()[1];
  std::vector<int64_t> values(static_cast<size_t>(lengths->second.elements()));
  ConvertToInt64(lengths->second.dtype(), lengths->second.bytes(), lengths->second.elements(),
                 values.data());
  return values[sequence];
}

Tensor GoldenCase::Part(const std::string& name, size_t sequence) const {
  const Tensor& tensor = tensors_.at(name);
  const int axis = BatchAxis(name);
  if (axis < 0) return tensor;
  if (name != "input.attn_mask") return Select(tensor, static_cast<size_t>(axis), sequence);
  const int64_t heads = tensor.shape()[0] / static_cast<int64_t>(sequences());
  const auto first = static_cast<int64_t>(sequence) * heads;
  return tensor.Rows(first, first + heads);
}

TensorMap GoldenCase::Inputs(size_t sequence) const {
  TensorMap inputs;
  for (const auto& [name, tensor] : tensors_) {
    if (!name.starts_with("input.") || name == "input.lengths") continue;
    Tensor part = Part(name, sequence);
    const bool of_rows =
        name == "input.x" || name == "input.token_type_ids" || name.ends_with("attention_mask");
    if (of_rows && tensors_.contains("input.lengths")) part = part.Rows(0, Length(sequence));
    inputs[name.substr(6)] = std::move(part);
  }
  return inputs;
}

Tensor GoldenCase::Output(const std::string& name, size_t sequence) const {
  Tensor part = Part("output." + name, sequence);
  const bool rows = part.shape().size() > 1;  // else it is one vector of the sequence
  return rows && tensors_.contains("input.lengths") ? part.Rows(0, Length(sequence)) : part;
}

double GoldenCase::Distance(const std::string& output, const Tensor& computed) const {
  const bool valid_only = compares_valid_rows_only();
  return LargestDistance(computed, tensors_.at("output." + output),
                         valid_only ? &tensors_.at("input.input_mask") : nullptr);
}

double GoldenCase::Distance(const std::string& output, const Tensor& computed,
                            size_t sequence) const {
  const bool valid_only = compares_valid_rows_only();
  const Tensor mask = valid_only ? Part("input.input_mask", sequence) : Tensor();
  return LargestDistance(computed, Output(output, sequence), valid_only ? &mask : nullptr);
}

std::vector<GoldenCase> GoldenCases(const fs::path& root) {
  std::vector<fs::path> directories;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    directories.push_back(entry.path());
  }
  std::sort(directories.begin(), directories.end());
  return {directories.begin(), directories.end()};
}

}  // namespace linserve
