#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/sequence/signature.h"
#include "core/tensor/tensor.h"
#include "linserve/v1/embedding.pb.h"
#include "serving/inflight.h"

namespace linserve {

// Holds what must be known of a request before it may be decoded.
struct RequestHead {
  std::string id;            // cut to kMaxIdBytes
  bool id_cut = false;       // the id is longer, so that the request is refused
  bool chunk = false;        // its sequence's rows come in several messages
  bool later_chunk = false;  // it is a chunk, but not the first one
};
RequestHead HeadOf(const grpc::ByteBuffer& bytes);

// Returns whether no chunk follows this one, by its own account.
bool IsLast(const v1::Sequence& chunk);

// Estimates the bytes of the whole request whose first chunk came in a message of `bytes`.
int64_t WholeSize(const v1::EmbedRequest& first, int64_t bytes);

// Collects a sequence whose rows come in several messages. They are kept once, as the model reads
// them: in F32, token ids in I64.
class Upload {
 public:
  // Begins an upload. INVALID_ARGUMENT means that the model has no input `x` of rows, or takes no
  // sequence that long.
  static absl::StatusOr<std::unique_ptr<Upload>> Begin(const Signature& signature,
                                                       uint64_t total_rows);

  int64_t bytes() const;

  // Keeps the reservation for as long as the rows, and allocates their memory. `chunk_bytes` of it
  // are for a chunk while it is read. RESOURCE_EXHAUSTED means that there is no memory.
  absl::Status Hold(Inflight::Reservation place, int64_t chunk_bytes);

  // Reserves what a chunk takes while it is read, if the chunks before it took less.
  absl::Status ReserveChunk(int64_t bytes);

  // Adds the rows of a chunk. Returns INVALID_ARGUMENT if they are no rows of `x`, or not the next
  // ones. REQUIRES: Hold() returned OK.
  absl::Status Add(const v1::Sequence& chunk);

  bool complete() const { return rows_ == total_rows(); }
  // Incomplete() is the fault of an upload whose stream has ended, Paused() that of one whose next
  // chunk has not come for too long.
  absl::Status Incomplete() const;
  absl::Status Paused(std::chrono::nanoseconds pause) const;

  // TakeRows() returns the rows, and TakePlace() the reservation that counts them. REQUIRES:
  // complete().
  Tensor TakeRows() { return std::move(x_); }
  Inflight::Reservation TakePlace() { return std::move(place_); }

 private:
  Upload(Signature chunk, Shape shape) : chunk_(std::move(chunk)), shape_(std::move(shape)) {}

  int64_t total_rows() const { return shape_[0]; }
  bool tokens() const { return chunk_.inputs[0].kind == InputKind::kToken; }
  DType dtype() const { return tokens() ? DType::kI64 : DType::kF32; }

  const Signature chunk_;  // that of a model which takes one chunk: x alone, of any length
  const Shape shape_;      // shape of all rows
  Inflight::Reservation place_;
  int64_t chunk_bytes_ = 0;  // bytes of the place that are for a chunk while it is read
  Tensor x_;
  std::byte* bytes_ = nullptr;  // bytes of x_
  int64_t rows_ = 0;            // rows that have come
};

}  // namespace linserve
