#pragma once

namespace linserve {

// kVersion is that of the release, kCommit is what `git describe` says of the sources. They are
// defined in a file of their own, so that a commit compiles that file again and no other.
extern const char* const kVersion;
extern const char* const kCommit;

}  // namespace linserve
