#include "serving/admission.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/sequence/result_bytes.h"
#include "core/status/parameter.h"
#include "core/status/retry_delay.h"
#include "core/strings/quote.h"

namespace linserve {
namespace {

// Bounds the sum of the results' bytes, whatever a request says.
constexpr int64_t kMost = int64_t{1} << 60;

int64_t ResultsOf(const ModelInfo& info, const std::vector<absl::StatusOr<Item>>& items) {
  int64_t bytes = 0;
  for (const auto& item : items) {
    if (!item.ok()) continue;
    bytes = std::min(kMost, bytes + ResultBytes(info.signature, *item));
    if (item->chunk != nullptr && item->chunk->save) bytes += info.session_bytes;
  }
  return bytes;
}

// Returns the fault of a request whose model is not found, as this caller may know it.
absl::Status NotFoundFor(const Caller& caller, const std::string& name, const absl::Status& fault,
                         const std::string& named_by) {
  std::string text(fault.message());
  if (!caller.SeesAll() && name.empty()) {
    text = absl::IsUnavailable(fault) ? "no model was named, and none is served at the moment"
                                      : "no model was named, and there are several";
  } else if (!caller.SeesAll() && !absl::IsUnavailable(fault)) {
    text = "model " + Quoted(name) + " is not found";
  }
  if (!absl::IsInvalidArgument(fault)) return absl::Status(fault.code(), text);
  return OfParameter(absl::InvalidArgumentError(text + "; name one in " + named_by), "model");
}

}  // namespace

absl::Status CheckModel(const ServiceContext& service, const Caller& caller,
                        const std::string& model) {
  absl::Status status = caller.MayUse(model);
  if (!status.ok()) service.metrics.Refused(Refusal::kForbidden);
  return status;
}

absl::StatusOr<std::shared_ptr<const ServedModel>> FindModel(const ServiceContext& service,
                                                             const Caller& caller,
                                                             const std::string& given,
                                                             int64_t version,
                                                             const std::string& named_by) {
  // What another name stands for is told to those only who see that model.
  const std::string known = service.repository.NameOf(given);
  const std::string& called = caller.Sees(known) ? known : given;
  const std::string name = given.empty() ? caller.OnlyModel() : called;
  if (!name.empty()) {
    if (absl::Status status = CheckModel(service, caller, name); !status.ok()) return status;
  }
  auto model = service.repository.Find(name, version);
  if (!model.ok()) return NotFoundFor(caller, name, model.status(), named_by);
  absl::Status status = CheckModel(service, caller, (*model)->name);
  if (status.ok()) return model;
  // Who named none is not told the name of the only one.
  return given.empty() ? absl::PermissionDeniedError(
                             "no model was named, and the token may use none that is served")
                       : status;
}

absl::Status AdmitCaller(const ServiceContext& service, const Caller& caller,
                         int64_t request_bytes) {
  if (absl::Status status = caller.May(Right::kInfer); !status.ok()) {
    service.metrics.Refused(Refusal::kForbidden);
    return status;
  }
  absl::Status status = caller.Spend(request_bytes, std::chrono::steady_clock::now());
  if (!status.ok()) service.metrics.Refused(Refusal::kRate);
  return status;
}

absl::StatusOr<Inflight::Reservation> Reserve(const ServiceContext& service, const Caller& caller,
                                              const ServedModel& model, int64_t request_bytes,
                                              int64_t besides) {
  auto place = service.inflight->Reserve(caller.name(), request_bytes, besides);
  if (place.ok()) return place;
  return RetryAfter(place.status(), model.engine->RetryDelay());
}

absl::StatusOr<Inflight::Reservation> Reserve(const ServiceContext& service, const Caller& caller,
                                              int64_t request_bytes) {
  auto place = service.inflight->Reserve(caller.name(), request_bytes);
  if (place.ok()) return place;
  // What is in flight may be for any of the models.
  std::chrono::milliseconds delay(10);
  for (const auto& model : service.repository.List()) {
    delay = std::max(delay, model->engine->RetryDelay());
  }
  return RetryAfter(place.status(), delay);
}

absl::Status ReserveMore(const ServedModel& model, int64_t bytes,
                         Inflight::Reservation& reservation) {
  absl::Status status = reservation.Grow(bytes);
  return status.ok() ? status : RetryAfter(status, model.engine->RetryDelay());
}

absl::Status ReserveResults(const ServedModel& model,
                            const std::vector<absl::StatusOr<Item>>& items, int64_t copies,
                            Inflight::Reservation& reservation) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(copies, ResultsOf(model.engine->info(), items), &bytes)) {
    bytes = std::numeric_limits<int64_t>::max();
  }
  return ReserveMore(model, bytes, reservation);
}

}  // namespace linserve
