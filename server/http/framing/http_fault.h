#pragma once

namespace linserve {

// Says why a request is not taken, as an HTTP status and a text that needs no escape in JSON. What
// follows on its connection is not read.
struct HttpFault {
  int status;
  const char* text;
};

}  // namespace linserve
