#include "rest/tei/tei_routes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rest/json/json_members.h"
#include "rest/rest_routes.h"
#include "rest/tei/tei_embed.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_fields.h"
#include "rest/tei/tei_info.h"
#include "rest/tei/tei_predict.h"
#include "rest/tei/tei_tokens.h"
#include "serving/admission.h"
#include "serving/model_kind.h"

namespace linserve {
namespace {

// Returns the model that a body names, or the header; "" if neither does, or the body is no object.
std::string ModelNamedBy(const RestCall& call) {
  std::string name = TeiModelOf(call);
  JsonReader reader(call.http.body, WantedBy(call));
  const absl::Status read =
      ReadBody(reader, {{"model", [&] { return ReadName(reader, "model", name); }}});
  return read.ok() ? name : "";
}

// Returns the kind of the model that is asked. The body need not be read for it where all models
// are of one kind, as they mostly are.
ModelKind KindAsked(const RestCall& call) {
  const auto models = call.service.repository.List();
  const auto is_other = [&](const auto& model) { return KindOf(*model) != KindOf(*models[0]); };
  if (!models.empty() && std::none_of(models.begin(), models.end(), is_other)) {
    return KindOf(*models[0]);
  }
  const auto model = FindModel(call.service, *call.caller, ModelNamedBy(call), 0, kModelHeader);
  return model.ok() ? KindOf(**model) : ModelKind::kEmbedding;
}

// Answers what the model is for. A body that cannot be read is refused by those who read all of it.
HttpReply Root(const RestCall& call) {
  switch (KindAsked(call)) {
    case ModelKind::kSparse:
      return TeiEmbedSparse(call);
    case ModelKind::kClassifier:
      return TeiPredict(call);
    case ModelKind::kReranker:
      return TeiRerank(call);
    case ModelKind::kEmbedding:
      break;
  }
  return TeiEmbed(call);
}

}  // namespace

void AddTeiForms(std::vector<HttpForm>& forms) {
  for (const char* path : {"/embed", "/similarity", "/rerank", "/predict", "/tokenize", "/decode",
                           "/info", "/invocations"}) {
    forms.push_back(TeiForm(path));
  }
}

void AddTeiRoutes(ServiceContext& context, std::vector<HttpRoute>& routes) {
  for (const char* rpc : {"/embed", "/embed_all", "/embed_sparse", "/similarity", "/predict",
                          "/rerank", "/tokenize", "/decode"}) {
    context.metrics.ForRpc(rpc);  // so that its series are there before its first call
  }
  const auto add = [&](const std::string& method, const std::string& path, RestAnswer answer) {
    routes.push_back(RouteOf(context, method, path, std::move(answer), TeiError));
  };
  for (const char* path : {"/", "/invocations"}) add("POST", path, Root);
  add("POST", "/embed", TeiEmbed);
  add("POST", "/embed_all", TeiEmbedAll);
  add("POST", "/embed_sparse", TeiEmbedSparse);
  add("POST", "/similarity", TeiSimilarity);
  add("POST", "/predict", TeiPredict);
  add("POST", "/rerank", TeiRerank);
  add("POST", "/tokenize", TeiTokenize);
  add("POST", "/decode", TeiDecode);
  add("GET", "/info", TeiInfo);
}

}  // namespace linserve
