#include "core/threads/guarded.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

namespace linserve {
namespace {

void WriteToStderr(std::string_view work, const absl::Status& failure) {
  const std::string line = std::string(work) + " failed: " + failure.ToString() + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::atomic<FailureReporter> reporter_of_all = &WriteToStderr;

absl::Status Described(std::string_view work) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory for " + std::string(work));
  } catch (const std::exception& error) {
    return absl::InternalError(std::string(work) + " failed: " + error.what());
  } catch (...) {
    return absl::InternalError(std::string(work) + " failed with no std::exception");
  }
}

}  // namespace

absl::Status StatusOfException(std::string_view work) noexcept {
  try {
    return Described(work);
  } catch (...) {
    // There is no memory for the words. A status without them takes none.
    return {absl::StatusCode::kResourceExhausted, ""};
  }
}

void ReportFailuresTo(FailureReporter reporter) { reporter_of_all = reporter; }

void ReportFailure(std::string_view work, const absl::Status& failure) noexcept {
  try {
    reporter_of_all.load()(work, failure);
  } catch (...) {
    std::fputs("a failure could not be reported: not enough memory\n", stderr);
  }
}

}  // namespace linserve
