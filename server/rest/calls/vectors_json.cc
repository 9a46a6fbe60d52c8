#include "rest/calls/vectors_json.h"

namespace linserve {

absl::Status AppendVectors(const RestCall& call, const Embeddings& embeddings, int64_t answer_bytes,
                           const AppendVector& append, std::string& text) {
  constexpr size_t kAround = 64;  // what stands around a vector's elements
  size_t room = text.size();
  for (const Tensor& vector : embeddings.vectors) {
    const auto rows = static_cast<size_t>(vector.elements() / vector.shape().back());
    constexpr size_t kAroundRow = 3;  // "[],"
    room += kAround + kAroundRow * rows + static_cast<size_t>(answer_bytes) * vector.byte_size();
  }
  text.reserve(room);
  for (size_t i = 0; i < embeddings.vectors.size(); ++i) {
    if (call.http.abandoned()) return absl::CancelledError("the caller left");
    if (i > 0) text += ',';
    if (absl::Status status = append(i, embeddings.vectors[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace linserve
