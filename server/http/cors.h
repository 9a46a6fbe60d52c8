#pragma once

#include <string>
#include <vector>

#include "http/http_message.h"

namespace linserve {

// Lets a browser show the reply to a page of one of the origins ("*": of any), as the Fetch
// standard has it, and call the path of a reply to OPTIONS.
void AllowOrigin(const std::vector<std::string>& origins, const HttpRequest& request,
                 HttpReply& reply);

}  // namespace linserve
