#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "access/caller.h"
#include "batching/inflight.h"
#include "core/item.h"
#include "engine/engine.h"
#include "rpc/service_context.h"

namespace linserve {

// What a request must pass before an engine sees it: the caller's rights and rates, and the bounds
// on what is in flight. The reservation is for as long as the request is, its answer included.
absl::StatusOr<Inflight::Reservation> Admit(const ServiceContext& service, const Caller& caller,
                                            const ServedModel& model, int64_t request_bytes,
                                            const std::vector<absl::StatusOr<Item>>& items);

// The caller may use models of this name, to compute. For questions about a model, too.
absl::Status CheckModel(const ServiceContext& service, const Caller& caller,
                        const std::string& model);

}  // namespace linserve
