#include "rest/tei/tei_info.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/json/json_text.h"
#include "core/sequence/pooling.h"
#include "rest/oip/message_json.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_fields.h"
#include "rpc/tei/tei_info.h"
#include "serving/admission.h"
#include "serving/model_kind.h"

namespace linserve {
namespace {

using Json = nlohmann::ordered_json;

// Tells the kind of a model, and how its vectors are pooled, or which classes it scores.
Json TypeOf(const ServedModel& model) {
  const ModelKind kind = KindOf(model);
  if (kind == ModelKind::kSparse) return {{"embedding", {{"pooling", "splade"}}}};
  if (kind == ModelKind::kEmbedding) {
    return {{"embedding", {{"pooling", Name(PoolingOf(model))}}}};
  }
  // Its members are appended, since to look for each of them takes too long where they are many.
  Json names = Json::object();
  Json places = Json::object();
  std::map<std::string, size_t> place_of;
  for (const std::string& label : *model.engine->info().labels) {
    place_of.try_emplace(label, names.size());
    names.get_ref<Json::object_t&>().push_back({std::to_string(names.size()), label});
  }
  for (const auto& [label, place] : place_of) {
    places.get_ref<Json::object_t&>().push_back({label, place});
  }
  return {{kind == ModelKind::kReranker ? "reranker" : "classifier",
           {{"id2label", std::move(names)}, {"label2id", std::move(places)}}}};
}

}  // namespace

HttpReply TeiInfo(const RestCall& call) {
  const std::string name = TeiModelOf(call);
  tei::v1::InfoResponse info;
  const absl::Status status = Describe(call.service, *call.caller, name, info);
  if (!status.ok()) return TeiError(status);
  const auto model = FindModel(call.service, *call.caller, name, 0, kModelHeader);
  if (!model.ok()) return TeiError(model.status());
  Json json = ToJson(info);
  json["served_model_name"] = (*model)->name;
  json["model_type"] = TypeOf(**model);
  json["auto_truncate"] = (*model)->default_truncation != Truncation::kNone;
  json["sha"] = nullptr;
  json["docker_label"] = nullptr;
  return {.body = JsonText(json)};
}

}  // namespace linserve
