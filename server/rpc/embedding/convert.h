#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "linserve/v1/embedding.pb.h"
#include "repository/repository.h"
#include "rpc/messages/wire.h"
#include "text/tokenizer.h"

namespace linserve {

// These functions convert between the wire and plain types. What the plain types take for granted
// (byte counts, known types, sizes that do not overflow) is checked here.

// Returns the ids in I64.
Tensor ToTensor(const google::protobuf::RepeatedField<uint32_t>& token_ids);

// Returns a view of the message's bytes, which `owner` keeps alive. INVALID_ARGUMENT names `field`.
absl::StatusOr<Tensor> ToTensor(const v1::Tensor& message, const std::string& field,
                                const std::shared_ptr<const void>& owner);

// Converts a sequence of a request that `owner` keeps alive. The input that its text becomes is
// left out. A chunk of a session that is faulty has its fault in it.
absl::StatusOr<Item> ToItem(const v1::Sequence& message, const OutputOptions& options,
                            const std::shared_ptr<const void>& owner);

// Returns nullopt where the model's default is asked for.
absl::StatusOr<std::optional<Truncation>> ToTruncation(v1::Truncation message);

// Converts the options. `fallback` is the model's pooling, for requests that ask for none in
// particular.
absl::StatusOr<OutputOptions> ToOptions(const v1::EmbedOptions& message, Pooling fallback,
                                        bool normalized = false);

// Writes a tensor as a v1::Tensor.
WireMessage ToWire(const Tensor& tensor);

void ToMessage(const Timing& timing, v1::Timing& message);
void ToMessage(const ItemProgress& progress, v1::Progress& message);
void ToMessage(const ServedModel& model, bool draining, v1::Model& message);

}  // namespace linserve
