#include "client/files/outputs.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "core/files/npy.h"
#include "core/files/safetensors.h"

namespace linserve {
namespace {

class NpyWriter final : public ResultWriter {
 public:
  explicit NpyWriter(std::string path) : path_(std::move(path)) {}

  absl::Status Write(const SequenceResult& result) override {
    if (!result.status.ok()) {
      rows_.emplace_back();
      return absl::OkStatus();
    }
    if (result.outputs.size() != 1) {
      return absl::InvalidArgumentError("an .npy file holds one output, but sequence " +
                                        std::to_string(result.index) + " has " +
                                        std::to_string(result.outputs.size()) +
                                        "; ask for one --output-name, or write safetensors");
    }
    const Tensor& tensor = result.outputs.begin()->second;
    if (!first_) first_ = tensor;
    if (tensor.shape() != first_->shape() || tensor.dtype() != first_->dtype()) {
      return absl::InvalidArgumentError(
          "an .npy file needs equal shapes, but sequence " + std::to_string(result.index) +
          " has " + ToString(tensor.shape()) + " after " + ToString(first_->shape()) +
          "; use --pooling, or write safetensors");
    }
    rows_.emplace_back(tensor);
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (!first_) return absl::InvalidArgumentError("nothing to write to " + path_);
    Shape shape = first_->shape();
    const std::vector<float> nan(static_cast<size_t>(first_->elements()),
                                 std::numeric_limits<float>::quiet_NaN());
    auto missing = Convert(Tensor::FromFloats(shape, nan), first_->dtype());
    if (!missing.ok()) return missing.status();
    shape.insert(shape.begin(), static_cast<int64_t>(rows_.size()));
    auto [all, target] = Tensor::Allocate(first_->dtype(), std::move(shape));
    for (const auto& row : rows_) {
      const Tensor& source = row ? *row : *missing;
      target = std::copy_n(source.bytes(), source.byte_size(), target);
    }
    return WriteNpy(path_, all);
  }

 private:
  std::string path_;
  std::optional<Tensor> first_;
  std::vector<std::optional<Tensor>> rows_;
};

class SafetensorsWriter final : public ResultWriter {
 public:
  explicit SafetensorsWriter(std::string path) : path_(std::move(path)) {}

  absl::Status Write(const SequenceResult& result) override {
    if (!result.status.ok()) return absl::OkStatus();
    for (const auto& [output, tensor] : result.outputs) {
      std::string name = result.id;
      if (result.outputs.size() > 1) name += "." + output;
      if (tensors_.contains(name)) name += "#" + std::to_string(result.index);
      tensors_[name] = tensor;
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override { return WriteSafetensors(path_, tensors_); }

 private:
  std::string path_;
  TensorMap tensors_;
};

absl::Status CannotWrite(const std::string& path) {
  return absl::NotFoundError("cannot write to " + path +
                             (errno == 0 ? "" : ": " + std::generic_category().message(errno)));
}

}  // namespace

std::optional<OutputFormat> OutputFormatFromName(std::string_view name) {
  if (name == "jsonl") return OutputFormat::kJsonLines;
  if (name == "npy") return OutputFormat::kNpy;
  if (name == "safetensors") return OutputFormat::kSafetensors;
  return std::nullopt;
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool existed = exists(status);
  if (existed && !is_regular_file(status) && !is_directory(status)) return absl::OkStatus();
  errno = 0;
  if (!std::ofstream(path, std::ios::app)) return CannotWrite(path);
  if (!existed) std::filesystem::remove(path, error);
  return absl::OkStatus();
}

std::unique_ptr<ResultWriter> MakeNpyWriter(std::string path) {
  return std::make_unique<NpyWriter>(std::move(path));
}

std::unique_ptr<ResultWriter> MakeSafetensorsWriter(std::string path) {
  return std::make_unique<SafetensorsWriter>(std::move(path));
}

}  // namespace linserve
