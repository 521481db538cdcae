#include "npu/registers.h"

#include "base/core/error.h"

namespace talpa::npu {

const char* axi_channel_name(unsigned channel) {
    switch (static_cast<AxiChannel>(channel)) {
        case AxiChannel::Command:
            return TALPA_SENTENCE("command read");
        case AxiChannel::Ifm:
            return TALPA_SENTENCE("IFM read");
        case AxiChannel::Weights:
            return TALPA_SENTENCE("weight read");
        case AxiChannel::Scales:
            return TALPA_SENTENCE("scale and bias read");
        case AxiChannel::Mem2MemRead:
            return TALPA_SENTENCE("DMA read");
        case AxiChannel::OfmWrite:
            return TALPA_SENTENCE("OFM write");
        case AxiChannel::Mem2MemWrite:
            return TALPA_SENTENCE("DMA write");
    }
    return TALPA_SENTENCE("unknown channel");
}

}  // namespace talpa::npu
