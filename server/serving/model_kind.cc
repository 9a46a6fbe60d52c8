#include "serving/model_kind.h"

#include "core/strings/quote.h"

namespace linserve {
namespace {

absl::Status Other(const ServedModel& model, const std::string& wanted) {
  std::string is;
  switch (KindOf(model)) {
    case ModelKind::kEmbedding:
      is = "it gives embeddings: use /embed, /v1/embeddings or tei.v1.Embed";
      break;
    case ModelKind::kSparse:
      is = "it gives sparse embeddings: use /embed_sparse or tei.v1.EmbedSparse";
      break;
    case ModelKind::kClassifier:
      is = "it scores " + std::to_string(model.engine->info().labels->size()) +
           " classes: use /predict or tei.v1.Predict";
      break;
    case ModelKind::kReranker:
      is = "it ranks texts: use /rerank, /v1/rerank or tei.v1.Rerank";
      break;
  }
  return absl::UnimplementedError("model " + Quoted(model.name) + " is no " + wanted + "; " + is);
}

// Returns the name of the only model that fits, of those that the caller may use.
template <typename Fits>
std::string OnlyThat(const ServiceContext& service, const Caller& caller, const Fits& fits) {
  std::string only;
  for (const auto& model : service.repository.List()) {
    if (!fits(*model) || !caller.Sees(model->name) || model->name == only) continue;
    if (!only.empty()) return "";
    only = model->name;
  }
  return only;
}

}  // namespace

ModelKind KindOf(const ServedModel& model) {
  const ModelInfo& info = model.engine->info();
  if (info.labels != nullptr) {
    return info.labels->size() == 1 ? ModelKind::kReranker : ModelKind::kClassifier;
  }
  const bool sparse = info.signature.outputs[0].name == kSparseEmbedding;
  return sparse ? ModelKind::kSparse : ModelKind::kEmbedding;
}

std::string OnlyModelOf(const ServiceContext& service, const Caller& caller, ModelKind kind) {
  return OnlyThat(service, caller,
                  [kind](const ServedModel& model) { return KindOf(model) == kind; });
}

std::string OnlyLateModelOf(const ServiceContext& service, const Caller& caller) {
  return OnlyThat(service, caller,
                  [](const ServedModel& model) { return model.late_texts.has_value(); });
}

absl::Status CheckEmbeds(const ServedModel& model) {
  if (KindOf(model) == ModelKind::kEmbedding) return absl::OkStatus();
  return Other(model, "embedding model");
}

absl::Status CheckEmbedsSparsely(const ServedModel& model) {
  if (KindOf(model) == ModelKind::kSparse) return absl::OkStatus();
  return Other(model, "sparse embedding model");
}

absl::Status CheckClassifies(const ServedModel& model) {
  if (model.engine->info().labels != nullptr) return absl::OkStatus();
  return Other(model, "classifier");
}

absl::Status CheckRanks(const ServedModel& model) {
  if (KindOf(model) == ModelKind::kReranker || model.late_texts) return absl::OkStatus();
  return Other(model, "re-ranker");
}

}  // namespace linserve
