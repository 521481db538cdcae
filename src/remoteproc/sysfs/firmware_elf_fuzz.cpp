// Any bytes as a firmware file: a verdict, never more. The first byte chooses core and policy.
#include <cstring>

#include "base/core/byte_reader.h"
#include "remoteproc/sysfs/firmware_elf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::remoteproc;
    if (size == 0) return 0;
    const std::span<const std::uint8_t> bytes(data + 1, size - 1);
    const FirmwareBytes file{bytes.size(), [&](std::uint64_t at, std::span<std::uint8_t> out) {
                                 if (!talpa::range_inside(at, out.size(), bytes.size())) return false;
                                 if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
                                 return true;
                             }};
    const CoreFacts* core = (data[0] & 1) != 0 ? &all_known_cores()[0] : nullptr;
    (void)check_firmware(file, core, {static_cast<ElfPolicy>((data[0] >> 1) % 3), std::nullopt});
    (void)elf_machine(file);
    return 0;
}
