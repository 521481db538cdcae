#include "npu/registers.h"

namespace talpa::npu {

const char* axi_channel_name(unsigned channel) {
    switch (static_cast<AxiChannel>(channel)) {
        case AxiChannel::Command:
            return "command read";
        case AxiChannel::Ifm:
            return "IFM read";
        case AxiChannel::Weights:
            return "weight read";
        case AxiChannel::Scales:
            return "scale and bias read";
        case AxiChannel::Mem2MemRead:
            return "DMA read";
        case AxiChannel::OfmWrite:
            return "OFM write";
        case AxiChannel::Mem2MemWrite:
            return "DMA write";
    }
    return "unknown channel";
}

}  // namespace talpa::npu
