#include "rest/tei/tei_routes.h"

#include <string>
#include <utility>

#include "rest/rest_routes.h"
#include "rest/tei/tei_embed.h"
#include "rest/tei/tei_error.h"
#include "rest/tei/tei_info.h"
#include "rest/tei/tei_tokens.h"

namespace linserve {
namespace {

// Answers as TEI does where its model is of another kind than the path asks for.
RestAnswer NoSuchModel(const std::string& path, const std::string& kind) {
  return [message = "the models of this server are not " + kind + ", which " + path +
                    " is for; they embed: use /embed"](const RestCall&) {
    return TeiError(absl::UnimplementedError(message));
  };
}

}  // namespace

void AddTeiForms(std::vector<HttpForm>& forms) {
  for (const char* path : {"/embed", "/similarity", "/rerank", "/predict", "/tokenize", "/decode",
                           "/info", "/invocations"}) {
    forms.push_back(TeiForm(path));
  }
}

void AddTeiRoutes(ServiceContext& context, std::vector<HttpRoute>& routes) {
  for (const char* rpc : {"/embed", "/embed_all", "/similarity", "/tokenize", "/decode"}) {
    context.metrics.ForRpc(rpc);  // so that its series are there before its first call
  }
  const auto add = [&](const std::string& method, const std::string& path, RestAnswer answer) {
    routes.push_back(RouteOf(context, method, path, std::move(answer), TeiError));
  };
  for (const char* path : {"/", "/invocations", "/embed"}) add("POST", path, TeiEmbed);
  add("POST", "/embed_all", TeiEmbedAll);
  add("POST", "/similarity", TeiSimilarity);
  add("POST", "/tokenize", TeiTokenize);
  add("POST", "/decode", TeiDecode);
  add("GET", "/info", TeiInfo);
  add("POST", "/embed_sparse", NoSuchModel("/embed_sparse", "SPLADE models"));
  add("POST", "/predict", NoSuchModel("/predict", "classifiers"));
  add("POST", "/rerank", NoSuchModel("/rerank", "re-rankers"));
}

}  // namespace linserve
