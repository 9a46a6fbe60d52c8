#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "batching/inflight.h"
#include "core/signature.h"
#include "core/tensor.h"
#include "engine/repository.h"
#include "rpc/received.h"

namespace linserve {

// Whether the request is, or adds to, a sequence whose rows come in parts; and whether it adds.
bool IsPart(const v1::EmbedRequest& request);
bool IsLaterPart(const v1::EmbedRequest& request);

// Whether no part follows this one, by its own account.
bool IsLast(const v1::Sequence& part);

// The bytes of the whole request whose first part came in a message of `bytes`, about.
int64_t WholeSize(const v1::EmbedRequest& first, int64_t bytes);

// A sequence whose rows come in several messages. They are kept once, as the model reads them: in
// F32, token ids in I64.
class Upload {
 public:
  // INVALID_ARGUMENT: the model has no input `x` of rows, or takes no sequence that long.
  static absl::StatusOr<std::unique_ptr<Upload>> Begin(const Signature& signature,
                                                       uint64_t total_rows);

  int64_t bytes() const;

  // Keeps the reservation for as long as the rows; and gets the memory. RESOURCE_EXHAUSTED: there
  // is none.
  absl::Status Hold(Inflight::Reservation place);

  // Adds the rows of a part. INVALID_ARGUMENT if they are no rows of `x`, or not the next ones.
  // After Hold().
  absl::Status Add(const v1::Sequence& part, const LargeFields& large);

  bool complete() const { return rows_ == total_rows(); }
  // Of an upload whose stream has ended, or whose next part has not come for too long.
  absl::Status Incomplete() const;
  absl::Status Paused(std::chrono::nanoseconds pause) const;

  // What the rows are, and where they are counted. REQUIRES: complete().
  Tensor TakeRows() { return std::move(x_); }
  Inflight::Reservation TakePlace() { return std::move(place_); }

 private:
  Upload(Signature part, Shape shape) : part_(std::move(part)), shape_(std::move(shape)) {}

  int64_t total_rows() const { return shape_[0]; }
  bool tokens() const { return part_.inputs[0].kind == InputKind::kToken; }
  DType dtype() const { return tokens() ? DType::kI64 : DType::kF32; }

  const Signature part_;  // of a model that takes a part: x alone, of any length
  const Shape shape_;     // of all rows
  Inflight::Reservation place_;
  Tensor x_;
  std::byte* bytes_ = nullptr;  // of x_
  int64_t rows_ = 0;            // that are there
};

}  // namespace linserve
