// SHA-256 (FIPS 180-4): Compose labels, names of sockets, layers and archives are told apart by it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace talpa::topo {

class Sha256 {
  public:
    void add(std::string_view bytes);
    /// 64 hex digits; the object must not be used after it.
    [[nodiscard]] std::string finish();

  private:
    void block(const unsigned char* data);
    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> buffer_{};
    std::size_t used_ = 0;
    std::uint64_t total_ = 0;
};

[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace talpa::topo
