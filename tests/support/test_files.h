#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace linserve {

// Makes a directory that goes away with the test.
class TempDir {
 public:
  TempDir() {
    std::string form = (std::filesystem::temp_directory_path() / "linserve-XXXXXX").string();
    EXPECT_NE(::mkdtemp(form.data()), nullptr);
    path_ = form;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }

  std::string File(const std::string& name) const { return (path_ / name).string(); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Copies bytes into a block of exactly their size, so that AddressSanitizer sees a read past their
// end.
inline std::shared_ptr<std::byte[]> ExactCopy(const std::string& bytes) {
  std::shared_ptr<std::byte[]> copy(new std::byte[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  return copy;
}

// Returns the status, or the status of the result, whose code and message a test looks at.
inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// Tests ask IsStatus() for these codes.
inline constexpr auto kNotFoundCode = absl::StatusCode::kNotFound;
inline constexpr auto kUnavailableCode = absl::StatusCode::kUnavailable;
inline constexpr auto kExhaustedCode = absl::StatusCode::kResourceExhausted;

MATCHER_P2(IsStatus, code, part, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(status.message()).find(part) != std::string::npos;
}

MATCHER_P(IsInvalid, part, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == absl::StatusCode::kInvalidArgument &&
         std::string(status.message()).find(part) != std::string::npos;
}

}  // namespace linserve
