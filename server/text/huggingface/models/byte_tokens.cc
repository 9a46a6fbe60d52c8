#include "text/huggingface/models/byte_tokens.h"

#include <string>
#include <string_view>

namespace linserve {

std::array<int32_t, 256> ByteTokens(const TokenVocabulary& vocabulary) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::array<int32_t, 256> ids{};
  for (size_t byte = 0; byte < ids.size(); ++byte) {
    ids[byte] = vocabulary.Find(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">");
  }
  return ids;
}

}  // namespace linserve
