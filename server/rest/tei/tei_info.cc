#include "rest/tei/tei_info.h"

#include <nlohmann/json.hpp>
#include <string>

#include "core/json/json_text.h"
#include "core/sequence/pooling.h"
#include "rest/oip/message_json.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_fields.h"
#include "rpc/tei/tei_info.h"
#include "serving/admission.h"

namespace linserve {

HttpReply TeiInfo(const RestCall& call) {
  const std::string name = TeiModelOf(call);
  tei::v1::InfoResponse info;
  const absl::Status status = Describe(call.service, *call.caller, name, info);
  if (!status.ok()) return TeiError(status);
  const auto model = FindModel(call.service, *call.caller, name, 0, kModelHeader);
  if (!model.ok()) return TeiError(model.status());
  nlohmann::ordered_json json = ToJson(info);
  json["served_model_name"] = (*model)->name;
  const Pooling pooling = PoolingOf(**model);
  json["model_type"] = {{"embedding", {{"pooling", Name(pooling)}}}};
  json["auto_truncate"] = (*model)->default_truncation != Truncation::kNone;
  json["sha"] = nullptr;
  json["docker_label"] = nullptr;
  return {.body = JsonText(json)};
}

}  // namespace linserve
