#include "rpc/oip/inference_checks.h"

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
  return FindModel(service, caller, name, *number);
}

absl::Status WithRequestId(const absl::Status& status, const std::string& id) {
  if (status.ok()) return status;
  const std::string name = id.empty() ? "<id_unknown>" : id;
  return WithPrefix(status, "[request id: " + name + "] ");
}

absl::Status CheckInputs(const Signature& signature, const TensorMap& tensors,
                         const std::string& model, bool takes_text) {
  std::vector<std::string> got;
  std::vector<std::string> missing;
  size_t required = 0;
  bool known = true;
  for (const auto& [name, tensor] : tensors) {
    if (IsLengths(name)) continue;
    got.push_back(name);
    known = known && signature.FindInput(name) != nullptr;
  }
  for (const InputSpec& input : signature.inputs) {
    if (input.optional) continue;
    ++required;
    if (!tensors.contains(input.name)) missing.push_back(input.name);
  }
  if (missing.empty() && known) return absl::OkStatus();
  std::string text = "expected " + std::to_string(required) + " inputs but got " +
                     std::to_string(got.size()) + " inputs for model " + Quoted(model) +
                     ". Got input(s) " + Names(got);
  if (!missing.empty()) {
    text += ", but missing required input(s) " + Names(missing) +
            ". Please provide all required input(s)";
  }
  std::vector<std::string> all;
  for (const InputSpec& input : signature.inputs) all.push_back(input.name);
  text += ". The model takes " + Names(all);
  if (takes_text) text += ", or " + Quoted(kTextInput) + " in place of them";
  return absl::InvalidArgumentError(text);
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
