#include "core/system/sha256.h"

#include <openssl/sha.h>

namespace linserve {

std::string Sha256(std::string_view bytes) {
  std::string hash(kSha256Bytes, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

}  // namespace linserve
