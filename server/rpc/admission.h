#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "access/caller.h"
#include "batching/inflight.h"
#include "core/item.h"
#include "engine/engine.h"
#include "rpc/received.h"
#include "rpc/service_context.h"

namespace linserve {

// The model that the caller asks for. Whoever may use some only is told nothing of the others:
// PERMISSION_DENIED for these, whether there are such or not.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ServiceContext& service,
                                                             const Caller& caller,
                                                             const std::string& name,
                                                             int64_t version);

// What a request of so many bytes must pass before anybody decodes it: the caller's right and
// rates.
absl::Status AdmitCaller(const ServiceContext& service, const Caller& caller,
                         int64_t request_bytes);

// The smallest field that stays where gRPC received it: none does where much is in flight, since
// what gRPC may hold bounds the messages that are not whole yet, too.
size_t LeastLargeField(const ServiceContext& service);

// What it must pass before any more is done for it: the bounds on what is in flight. The
// reservation is for as long as the request is, its answer included.
absl::StatusOr<Inflight::Reservation> Reserve(const ServiceContext& service, const Caller& caller,
                                              const ServedModel& model, int64_t request_bytes);

// And before an engine sees its sequences: the same bounds, with their results.
absl::Status ReserveResults(const ServedModel& model,
                            const std::vector<absl::StatusOr<Item>>& items,
                            Inflight::Reservation& reservation);

// The caller may use models of this name, to compute. For questions about a model, too.
absl::Status CheckModel(const ServiceContext& service, const Caller& caller,
                        const std::string& model);

}  // namespace linserve
