#include "firmware/chip/trace.h"

#include <cstdint>

#include "firmware/chip/registers.h"
#include "link/memory_map.h"

namespace talpa::firmware {
namespace {

constinit std::uint32_t used = 0;

volatile char* buffer() {
    return reinterpret_cast<volatile char*>(std::uintptr_t{link::kTraceBuffer.base});
}

// Keeps the newest half, from the start of a line on.
void drop_older_half() {
    volatile char* const text = buffer();
    std::uint32_t from = used / 2;
    while (from < used && text[from - 1] != '\n') ++from;
    for (std::uint32_t i = 0; i < used - from; ++i) text[i] = text[from + i];
    used -= from;
    text[used] = '\0';
}

}  // namespace

void trace_clear() {
    auto* const words = reinterpret_cast<volatile std::uint32_t*>(std::uintptr_t{link::kTraceBuffer.base});
    for (std::uint32_t i = 0; i < link::kTraceBuffer.size / 4; ++i) words[i] = 0;
    used = 0;
}

void trace(std::string_view line) {
    const CriticalSection one_writer;
    volatile char* const text = buffer();
    constexpr std::uint32_t kRoom = link::kTraceBuffer.size - 2;  // line end and NUL
    if (line.size() > kRoom / 2) line = line.substr(0, kRoom / 2);
    if (used + line.size() > kRoom) drop_older_half();
    // From the end forward to the NUL that stands at `used`: a reader sees the old text or the new line, never half.
    const auto size = static_cast<std::uint32_t>(line.size());
    text[used + size + 1] = '\0';
    text[used + size] = '\n';
    for (std::uint32_t i = size; i-- > 0;) text[used + i] = line[i];
    used += size + 1;
}

}  // namespace talpa::firmware
