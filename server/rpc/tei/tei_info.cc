#include "rpc/tei/tei_info.h"

#include <algorithm>
#include <limits>

#include "absl/strings/escaping.h"
#include "core/sequence/truncation.h"
#include "serving/admission.h"
#include "serving/model_kind.h"

namespace linserve {
namespace {

// Returns a number as TEI has it; where there is no limit, it is the largest int32.
uint32_t Shown(int64_t number) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return static_cast<uint32_t>(number == 0 ? kMost : std::min(number, kMost));
}

// Returns a type by PyTorch's name.
const char* TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    case DType::kI8:
      return "int8";
    default:
      return "float32";
  }
}

tei::v1::ModelType TypeOf(ModelKind kind) {
  switch (kind) {
    case ModelKind::kClassifier:
      return tei::v1::MODEL_TYPE_CLASSIFIER;
    case ModelKind::kReranker:
      return tei::v1::MODEL_TYPE_RERANKER;
    case ModelKind::kEmbedding:
    case ModelKind::kSparse:
      break;
  }
  return tei::v1::MODEL_TYPE_EMBEDDING;
}

}  // namespace

absl::Status Describe(const ServiceContext& service, const Caller& caller, const std::string& model,
                      tei::v1::InfoResponse& info) {
  const auto found = FindModel(service, caller, model, 0, kModelHeader);
  if (!found.ok()) return found.status();
  const Engine& engine = *(*found)->engine;
  const Signature& signature = engine.info().signature;
  const auto& axes = signature.inputs[0].axes;
  const char letter = axes.empty() ? '\0' : axes[0].letter;
  info.set_version(service.version);
  info.set_model_id((*found)->name);
  info.set_model_sha(absl::BytesToHexString(engine.info().fingerprint));
  info.set_model_dtype(TypeOf(engine.info().dtype));
  info.set_model_type(TypeOf(KindOf(**found)));
  info.set_max_concurrent_requests(Shown(service.inflight->most_requests()));
  info.set_max_input_length(
      Shown(SmallerLimit((*found)->most_text_tokens, LongestFor(signature, Item(), letter))));
  info.set_max_batch_tokens(Shown(engine.options().policy.max_tokens));
  info.set_max_batch_requests(Shown(engine.options().policy.max_sequences));
  info.set_max_client_batch_size(Shown(service.limits.max_sequences_per_request));
  info.set_tokenization_workers(Shown(service.tokenizers.threads()));
  return absl::OkStatus();
}

}  // namespace linserve
