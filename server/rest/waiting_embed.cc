#include "rest/waiting_embed.h"

#include <future>
#include <memory>
#include <utility>

namespace linserve {

absl::StatusOr<Embeddings> Embed(const RestCall& call, const std::string& rpc,
                                 absl::StatusOr<EmbeddingsQuery> query) {
  const auto answered = std::make_shared<std::promise<absl::StatusOr<Embeddings>>>();
  const auto state = std::make_shared<EmbeddingsRequestState>(
      SideOf(call, rpc), ContextOf(call, ""),
      [answered](absl::StatusOr<Embeddings> answer) { answered->set_value(std::move(answer)); });
  if (query.ok()) {
    state->Submit(call.service, *std::move(query));
  } else {
    state->Refuse(query.status());
  }
  return answered->get_future().get();
}

absl::Status AppendVectors(const RestCall& call, const Embeddings& embeddings,
                           const AppendVector& append, std::string& text) {
  constexpr size_t kAround = 64;  // what stands around a vector's elements
  const auto elements = static_cast<size_t>(embeddings.vectors[0].elements() * kLongestElement);
  text.reserve(embeddings.vectors.size() * (kAround + elements));
  for (size_t i = 0; i < embeddings.vectors.size(); ++i) {
    if (call.http.abandoned()) return absl::CancelledError("the caller left");
    if (i > 0) text += ',';
    if (absl::Status status = append(i, embeddings.vectors[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace linserve
