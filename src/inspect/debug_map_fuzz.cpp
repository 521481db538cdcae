// Any text as a debug database. What was read is written and read again the same.
#include <cstdlib>

#include "inspect/debug_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::inspect;
    const auto map = read_debug_map({reinterpret_cast<const char*>(data), size}, "fuzz.xml");
    if (!map) return 0;
    const std::uint32_t offsets[] = {0, 4, 260, UINT32_MAX};
    (void)map->nodes_of(0, offsets);
    const std::string xml = debug_map_xml(*map);
    const auto again = read_debug_map(xml, "again.xml");
    if (!again || again->queue.size() != map->queue.size() || again->performance.size() != map->performance.size() ||
        again->nodes_of(0, offsets).size() != 4)
        std::abort();
    return 0;
}
