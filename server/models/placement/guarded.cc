#include "models/placement/guarded.h"

#include <exception>
#include <new>
#include <string>

#include "attention/rows/aten.h"

namespace linserve {
namespace {

absl::Status FailureOf(const Placement& placement, const c10::AcceleratorError& error) {
  const std::string what = placement.device().str() + " failed: " + FirstLine(error);
  if (error.get_error_code() == kOutOfMemory) return absl::ResourceExhaustedError(what);
  placement.CheckDevice();
  return placement.lost() ? absl::UnavailableError(what) : absl::InternalError(what);
}

}  // namespace

std::string FirstLine(const c10::Error& error) {
  const std::string what = error.what_without_backtrace();
  return what.substr(0, what.find('\n'));
}

absl::Status StatusOfException(const Placement& placement) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for the forward pass");
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError("not enough memory on " + placement.device().str() +
                                        " for the forward pass: " + FirstLine(error));
  } catch (const c10::AcceleratorError& error) {
    return FailureOf(placement, error);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (what.find("allocate memory") != std::string::npos) {
      return absl::ResourceExhaustedError("not enough memory for the forward pass");
    }
    return absl::InternalError("the forward pass failed: " + what);
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("the forward pass failed: ") + error.what());
  }
}

}  // namespace linserve
