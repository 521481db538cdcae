#include "npu/hardware.h"

namespace talpa::npu {

const char* product_name(std::uint32_t product) {
    switch (product) {
        case 0:
            return "ethos-u55";
        case 1:
            return "ethos-u65";
        case 2:
            return "ethos-u85";
        default:
            return "ethos-u?";
    }
}

const Hardware* find_hardware(std::uint32_t config) {
    const ConfigWord wanted{config};
    for (const Hardware& h : kHardware)
        if (ConfigWord{h.config}.product() == wanted.product() && h.macs == wanted.macs()) return &h;
    return nullptr;
}

}  // namespace talpa::npu
