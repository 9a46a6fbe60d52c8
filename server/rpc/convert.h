#pragma once

#include <grpcpp/support/status.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/item.h"
#include "engine/repository.h"
#include "linserve/v1/embedding.pb.h"
#include "rpc/received.h"
#include "rpc/wire.h"
#include "text/tokenizer.h"

namespace linserve {

// Wire to plain types and back. What the plain types take for granted (byte counts, known types,
// sizes that do not overflow) is checked here.

grpc::Status ToGrpcStatus(const absl::Status& status);

// The tensor of an input with these bytes, U8. INVALID_ARGUMENT names `field`.
absl::StatusOr<Tensor> ToTensor(const v1::Tensor& message, const std::string& field,
                                const Tensor& bytes);
// Views the message's bytes, which `owner` keeps alive.
absl::StatusOr<Tensor> ToTensor(const v1::Tensor& message, const std::string& field,
                                const std::shared_ptr<const void>& owner);

// Sequence `place` of a request that `owner` keeps alive; without the input that its text becomes.
absl::StatusOr<Item> ToItem(const v1::Sequence& message, const OutputOptions& options,
                            const std::shared_ptr<const void>& owner, const LargeFields& large = {},
                            int place = 0);

absl::StatusOr<Truncation> ToTruncation(v1::Truncation message);

// `fallback` is the model's pooling, for requests that ask for none in particular.
absl::StatusOr<OutputOptions> ToOptions(const v1::EmbedOptions& message, Pooling fallback);

// A v1::Tensor.
WireMessage ToWire(const Tensor& tensor);

void ToMessage(const Timing& timing, v1::Timing& message);
void ToMessage(const ItemProgress& progress, v1::Progress& message);
void ToMessage(const ServedModel& model, bool draining, v1::Model& message);

}  // namespace linserve
