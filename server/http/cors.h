#pragma once

#include <string>
#include <vector>

#include "http/http_message.h"

namespace linserve {

// Says whether the request is of no page, of one of this server, or of one of the origins. A
// browser sends some requests of any page without having asked, and only hides what they are
// answered. Where the server listens on this machine alone, its own pages have a host of this
// machine: another name is a stranger's that was made to lead here (DNS rebinding).
bool MayCall(const std::vector<std::string>& origins, bool on_loopback, const HttpRequest& request);

// Lets a browser show the reply to a page of one of the origins ("*": of any), as the Fetch
// standard has it, and call the path of a reply to OPTIONS.
void AllowOrigin(const std::vector<std::string>& origins, const HttpRequest& request,
                 HttpReply& reply);

}  // namespace linserve
