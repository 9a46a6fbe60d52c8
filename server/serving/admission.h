#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "access/caller.h"
#include "core/sequence/item.h"
#include "engine/engine.h"
#include "serving/inflight.h"
#include "serving/service_context.h"

namespace linserve {

// Say where a request names its model, for those that name none.
inline constexpr const char* kModelField = "the field 'model'";
inline constexpr const char* kModelHeader =
    "the header 'linserve-model', or over HTTP in the field 'model'";

// Finds the model that the caller asks for: the one given, or if that is empty the only one, else
// the error says that it is to be named in `named_by`. A caller that may use only some models is
// told nothing of the others: the answer is PERMISSION_DENIED, whether they exist or not.
absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(
    const ServiceContext& service, const Caller& caller, const std::string& given, int64_t version,
    const std::string& named_by = kModelField);

// Checks what a request of so many bytes must pass before anybody decodes it: the caller's right
// and rates.
absl::Status AdmitCaller(const ServiceContext& service, const Caller& caller,
                         int64_t request_bytes);

// Checks the bounds on what is in flight, before any more is done for the request. The reservation
// is for as long as the request is, its answer included. `besides` is as for Inflight::Reserve().
absl::StatusOr<Inflight::Reservation> Reserve(const ServiceContext& service, const Caller& caller,
                                              const ServedModel& model, int64_t request_bytes,
                                              int64_t besides);

// Does this for a request whose model is not known yet.
absl::StatusOr<Inflight::Reservation> Reserve(const ServiceContext& service, const Caller& caller,
                                              int64_t request_bytes);

// Checks the bounds on what is in flight once more, with further bytes of the request.
absl::Status ReserveMore(const ServedModel& model, int64_t bytes,
                         Inflight::Reservation& reservation);

// Checks the bounds on what is in flight once more, with the bytes of the results, of which there
// will be so many copies, before an engine sees the sequences.
absl::Status ReserveResults(const ServedModel& model,
                            const std::vector<absl::StatusOr<Item>>& items, int64_t copies,
                            Inflight::Reservation& reservation);

// Returns OK if the caller may use models of this name to compute. Questions about a model are
// checked by it, too.
absl::Status CheckModel(const ServiceContext& service, const Caller& caller,
                        const std::string& model);

}  // namespace linserve
