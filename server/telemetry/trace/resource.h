#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace linserve {

// Holds attributes by their names in OpenTelemetry's semantic conventions.
using Resource = std::map<std::string, std::string>;

// Reads attributes as OTEL_RESOURCE_ATTRIBUTES has them: "key=value,key=value", with %XX for other
// bytes. INVALID_ARGUMENT says what is no attribute.
absl::StatusOr<Resource> ParseAttributes(const std::string& text);

// Describes this process: the service and its host, then the attributes of `given`, then
// `service_name`, where they say anything. Later ones override earlier ones. What cannot be read of
// `given` is overlooked as a whole, as OpenTelemetry has it, and the log says so.
Resource DescribeProcess(const std::string& version, const std::string& given,
                         const std::string& service_name);

}  // namespace linserve
