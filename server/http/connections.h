#pragma once

namespace linserve {

// Ends all connections to this port of ours. httplib 0.11 tells nobody which descriptors they have,
// and so it looks at all that the process has.
void HangUp(int port);

}  // namespace linserve
