#include "rpc/oip/inference_checks.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/sequence/content.h"
#include "core/sequence/package_layout.h"
#include "core/status/retry_delay.h"
#include "core/strings/quote.h"
#include "rpc/oip/inference_tensors.h"
#include "rpc/oip/inference_texts.h"
#include "serving/admission.h"

namespace linserve {
namespace {

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + Quoted(name);
  return "[" + text + "]";
}

// Names all inputs that the model takes.
std::string InputsOf(const Signature& signature, bool takes_text) {
  std::vector<std::string> all;
  for (const InputSpec& input : signature.inputs) all.push_back(input.name);
  return Names(all) + (takes_text ? ", or " + Quoted(kTextInput) + " in place of them" : "");
}

// Writes the axes of an input of a whole batch as "[batch, n, 64]".
std::string BatchForm(const InputSpec& input) {
  std::string axes = ToString(input.axes);
  if (input.batch_axis == BatchAxis::kSecond) {
    return axes.insert(axes.find_first_of(",]"), ", batch");
  }
  return axes.insert(1, input.axes.empty() ? "batch" : "batch, ") +
         (input.folds ? ", or further axes" : "");
}

}  // namespace

absl::StatusOr<int64_t> VersionOf(const std::string& text) {
  int64_t version = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, version);
  if (text.empty()) return 0;
  if (error != std::errc() || last != end || version < 1) {
    return absl::InvalidArgumentError("failed to get model version from specified version string " +
                                      Quoted(text) + ", expected an integer of 1 or more");
  }
  return version;
}

absl::StatusOr<std::shared_ptr<const ServedModel>> FindInferModel(const ServiceContext& service,
                                                                  const Caller& caller,
                                                                  const std::string& name,
                                                                  const std::string& version) {
  const auto number = VersionOf(version);
  if (!number.ok()) return number.status();
  return FindModel(service, caller, name, *number, "the field 'model_name'");
}

absl::Status WithRequestId(const absl::Status& status, const std::string& id) {
  return status.ok() ? status : WithPrefix(status, "[request id: " + id + "] ");
}

absl::Status CheckInputs(const Signature& signature, const inference::ModelInferRequest& message,
                         const std::string& model, bool takes_text) {
  std::vector<std::string> got;
  const std::string* unknown = nullptr;
  for (const auto& input : message.inputs()) {
    if (IsLengths(input.name())) continue;
    if (signature.FindInput(input.name()) == nullptr) unknown = &input.name();
    got.push_back(input.name());
  }
  std::vector<std::string> missing;
  int64_t required = 0;
  for (const InputSpec& input : signature.inputs) {
    if (input.optional) continue;
    ++required;
    if (std::find(got.begin(), got.end(), input.name) == got.end()) missing.push_back(input.name);
  }
  if (missing.empty() && unknown == nullptr) return absl::OkStatus();
  std::string text = unknown != nullptr
                         ? "unexpected inference input " + Quoted(*unknown)
                         : "expected " + std::to_string(required) + " inputs but got " +
                               std::to_string(got.size()) + " inputs";
  text += " for model " + Quoted(model);
  if (unknown == nullptr) text += ". Got input(s) " + Names(got);
  if (!missing.empty()) {
    text += ", but missing required input(s) " + Names(missing) +
            ". Please provide all required input(s)";
  }
  return absl::InvalidArgumentError(text + ". The model takes " + InputsOf(signature, takes_text));
}

absl::Status CheckRanks(const Signature& signature, const TensorMap& tensors,
                        const std::string& model) {
  for (const InputSpec& input : signature.inputs) {
    const auto tensor = tensors.find(input.name);
    const bool batched =
        input.batch_axis == BatchAxis::kFirst || input.batch_axis == BatchAxis::kSecond;
    if (tensor == tensors.end() || !batched) continue;
    const size_t rank = tensor->second.shape().size();
    const size_t expected = input.axes.size() + 1;
    if (rank == expected || (rank > expected && input.folds)) continue;
    return absl::InvalidArgumentError(
        "inference input " + Quoted(input.name) + " for model " + Quoted(model) + ": shape " +
        ToString(tensor->second.shape()) + ", expected " + BatchForm(input));
  }
  return absl::OkStatus();
}

absl::Status CheckDatatypes(const Signature& signature, const TensorMap& tensors,
                            const std::string& model) {
  for (const InputSpec& input : signature.inputs) {
    const auto tensor = tensors.find(input.name);
    if (tensor == tensors.end() || Takes(input.kind, tensor->second.dtype())) continue;
    return absl::InvalidArgumentError("inference input " + Quoted(input.name) + " data-type is '" +
                                      std::string(Datatype(tensor->second.dtype())) +
                                      "', but model " + Quoted(model) + " expects '" +
                                      std::string(Datatype(AnnouncedType(input.kind))) + "'");
  }
  return absl::OkStatus();
}

}  // namespace linserve
