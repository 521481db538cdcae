// SHA-256 (FIPS 180-4): digests of firmware, layers and archives, names of sockets, Compose labels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace talpa::host {

class Sha256 {
  public:
    void update(std::string_view bytes);
    /// The digest as 64 lower-case hex digits; the object is done then.
    [[nodiscard]] std::string finish();

  private:
    void block(const std::uint8_t* bytes);
    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, 64> pending_{};
    std::uint64_t size_ = 0;
};

[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace talpa::host
