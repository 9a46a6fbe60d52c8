#include <cstdint>
#include <string>

#include "fuzz/fuzz_infer.h"
#include "rest/oip/infer_json.h"
#include "rest/openai/openai_embeddings.h"
#include "rest/tei/tei_embed.h"
#include "rest/tei/tei_tokens.h"

namespace linserve {
namespace {

// Has the models answer the request, and writes their answers.
void Infer(const RestCall& call) {
  std::string id;
  auto asked = ReadInferRequest(call, id);
  if (!asked.ok()) return;
  for (const char* model : {"tokens", "floats"}) {
    inference::ModelInferRequest message = asked->message;
    message.set_model_name(model);
    const auto answer = FuzzInfer({.message = std::move(message)});
    if (answer.ok()) (void)WriteInferResponse(*answer, *asked);
  }
}

}  // namespace
}  // namespace linserve

// Asks for a page. The first byte says which one; where the second is not zero, it is how much of
// the body is JSON, and bytes follow.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace linserve;
  if (size < 2) return 0;
  HttpRequest http;
  http.body.assign(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[1] != 0) http.headers["inference-header-content-length"] = std::to_string(data[1]);
  const RestCall call{FuzzServer(), http, FuzzCaller()};
  if (data[0] % 3 == 0) Infer(call);
  if (data[0] % 3 == 1) (void)OpenAiEmbeddings(call);
  if (data[0] % 3 != 2) return 0;
  for (const auto answer : {TeiEmbed, TeiSimilarity, TeiTokenize, TeiDecode}) (void)answer(call);
  return 0;
}
