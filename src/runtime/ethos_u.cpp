#include "runtime/ethos_u.h"

#include "npu/cop.h"
#include "npu/hardware.h"
#include "npu/scan.h"

namespace talpa::runtime {
namespace {

using npu::Region;
enum : unsigned { kConstants = 0, kScratch = 1, kFastScratch = 2 };

// "--memory-mode=NAME" among the space-separated compiler options (section 5.6); empty when the program does not say.
std::string_view memory_mode(std::string_view flags) {
    constexpr std::string_view kOption = "--memory-mode=";
    const std::size_t at = flags.find(kOption);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = flags.substr(at + kOption.size());
    return rest.substr(0, rest.find(' '));
}

// Data of a block that lies elsewhere: first in the program's named data, then in the data files (V27).
Result<Bytes> find_external(std::string_view key, const pte::Program& program, pte::DataFiles data_files) {
    TRY_ASSIGN(std::optional<Bytes> found, program.find_named_data(key));
    for (const pte::DataFile& file : data_files) {
        if (found) break;
        TRY_ASSIGN(const std::optional<pte::DataEntry> entry, file.find(key));
        if (!entry) continue;
        TRY_ASSIGN(found, file.data(*entry));
    }
    if (!found)
        return fail(ErrorCode::NotFound,
                    "a block of the delegate lies outside the program, under the key '{}': no data file has it", key);
    if (reinterpret_cast<std::uintptr_t>(found->data()) % kPoolAlignment != 0)
        return fail(ErrorCode::InvalidExternalData,
                    "the data of the delegate under the key '{}' does not lie at a multiple of 16", key);
    return *found;
}

Result<Bytes> block_data(const pte::BlobBlock& block, const pte::Program& program, pte::DataFiles data_files) {
    return block.external ? find_external(block.key(), program, data_files) : Result<Bytes>(block.data);
}

// What a tensor must be to meet a record (section 7.3).
bool input_type_fits(ScalarType type, std::uint32_t element_size) {
    switch (type) {
        case ScalarType::Int32:
            return element_size == 4;
        case ScalarType::Int16:
            return element_size == 2;
        case ScalarType::Int8:
        case ScalarType::UInt8:
        case ScalarType::Bool:
            return element_size == 1;
        default:
            return false;
    }
}

enum class OutputCopy : std::uint8_t { Impossible, Whole, CutRows, Nibbles };

OutputCopy output_copy(const Tensor& tensor, const pte::IoRecord& record) {
    const std::size_t bytes = tensor.size_bytes();
    if (bytes == record.size_bytes) return OutputCopy::Whole;
    const std::uint32_t rows = record.rows();
    if (bytes % rows != 0) return OutputCopy::Impossible;
    const std::size_t row = bytes / rows;
    if (row == std::size_t{record.row_bytes()} * 2 && record.element_size == 1 && tensor.type == ScalarType::Int8)
        return OutputCopy::Nibbles;
    return row < record.row_bytes() ? OutputCopy::CutRows : OutputCopy::Impossible;
}

std::int8_t sign_extend_nibble(unsigned nibble) {
    return static_cast<std::int8_t>(static_cast<std::uint8_t>(nibble << 4)) >> 4;
}

void copy_output(const Tensor& tensor, const pte::IoRecord& record, const std::uint8_t* from) {
    const OutputCopy how = output_copy(tensor, record);
    if (how == OutputCopy::Whole) return copy_bytes(tensor.data, from, record.size_bytes);
    const std::uint32_t rows = record.rows();
    const std::size_t row = tensor.size_bytes() / rows;
    for (std::uint32_t r = 0; r < rows; ++r, from += record.row_bytes()) {
        std::uint8_t* const to = tensor.data + r * row;
        if (how == OutputCopy::CutRows) {
            copy_bytes(to, from, row);
            continue;
        }
        for (std::size_t i = 0; i < row; ++i)  // two to a byte, the low one first
            to[i] = static_cast<std::uint8_t>(sign_extend_nibble(i % 2 == 0 ? from[i / 2] & 0xF : from[i / 2] >> 4));
    }
}

// Of each output so many bytes are watched: enough to rule out chance, and a large picture costs nothing.
constexpr std::uint32_t kWatchedBytes = 1024;

std::uint32_t watched(const pte::IoRecord& record) {
    return record.size_bytes < kWatchedBytes ? record.size_bytes : kWatchedBytes;
}

// What an output's place holds before a run, so that an output which nobody wrote is recognised. Differs from byte to
// byte and from salt to salt.
std::uint8_t canary(std::uint32_t at, std::uint8_t salt) {
    return static_cast<std::uint8_t>(at * 151 + (at >> 8) * 59 + 0xA5 + salt * 101);
}

// What an input's byte is changed by in a run with `salt`: never 0 but for salt 0, and not the same everywhere, since
// equal bytes stay equal under averages and maxima.
std::uint8_t disturbance(std::uint32_t at, std::uint8_t salt) {
    return salt == 0 ? 0 : canary(at, salt) | 1;
}

}  // namespace

Result<EthosUDelegate> EthosUDelegate::load(const pte::Program& program, const pte::DelegateView& delegate,
                                            std::uint32_t index, pte::DataFiles data_files, const npu::Device* device) {
    if (delegate.id() == "ArmBackend")
        return fail(
            ErrorCode::NotSupported,
            "delegate {} is for ArmBackend, as ExecuTorch 0.5 and before wrote it: export again with 1.2 or later",
            index);
    if (delegate.id() != "EthosUBackend")
        return fail(ErrorCode::NotFound, "delegate {} is for the backend '{}', only EthosUBackend is known", index,
                    delegate.id());
    EthosUDelegate d;
    d.index_ = index;
    TRY(d.take_blocks(program, delegate, data_files));
    if (device != nullptr) TRY(npu::match_config(d.config_, d.id_, device->config(), device->id()));
    if (npu::find_hardware(d.config_) == nullptr)
        return fail(ErrorCode::NotSupported,
                    "delegate {} is compiled for {} with {} MACs (CONFIG {}): only Ethos-U55 and U65 streams are known",
                    index, npu::product_name(d.config_ >> 28), npu::ConfigWord{d.config_}.macs(), hex(d.config_));
    TRY(d.measure(memory_mode(delegate.compile_spec("compile_flags"))));
    return d;
}

Result<void> EthosUDelegate::take_blocks(const pte::Program& program, const pte::DelegateView& delegate,
                                         pte::DataFiles data_files) {
    TRY_ASSIGN(const Bytes payload, program.delegate_data(delegate));
    TRY_ASSIGN(const pte::DelegateBlob blob, pte::parse_delegate_blob(payload));
    TRY_ASSIGN(const Bytes weights, block_data(blob.weights, program, data_files));
    TRY_ASSIGN(const Bytes commands, block_data(blob.command_data, program, data_files));
    TRY_ASSIGN(const npu::Payload container, npu::parse_payload(commands));
    if (container.separate_io)
        return fail(
            ErrorCode::NotSupported,
            "delegate {} has a COP2 container with separate I/O regions (Vela's --cop-format COP2): compile with COP1",
            index_);
    if (reinterpret_cast<std::uintptr_t>(container.stream.data()) % kPoolAlignment != 0)
        return fail(ErrorCode::InvalidProgram,
                    "delegate {}: the command stream (at {} of cmd_data) does not lie at a multiple of 16", index_,
                    container.stream_offset_bytes);
    if (weights.size() > INT32_MAX)
        return fail(ErrorCode::InvalidProgram, "delegate {}: weights of {} bytes, at most {} are possible", index_,
                    weights.size(), INT32_MAX);
    stream_ = container.stream.data();
    stream_words_ = static_cast<std::uint32_t>(container.stream.size());
    weights_ = weights.data();
    weight_bytes_ = static_cast<std::uint32_t>(weights.size());
    scratch_bytes_ = blob.scratch_size;
    inputs_ = blob.inputs;
    outputs_ = blob.outputs;
    config_ = container.config;
    id_ = container.id;
    return {};
}

// V33: the scan's ends against what the regions have; and the fast scratch, whose size no file tells.
Result<void> EthosUDelegate::measure(std::string_view mode) {
    TRY_ASSIGN(const npu::ScanResult use, npu::scan(stream()));
    fast_is_scratch_ = mode == "Shared_Sram" || mode == "Sram_Only";
    if (use.regions[kConstants].written) {
        const npu::OpPlace at = use.regions[kConstants].first_write;
        return fail(ErrorCode::InvalidProgram,
                    "delegate {}: command stream offset {}: {} writes to region 0, the constants", index_,
                    at.offset_bytes, npu::op_kind_name(at.kind));
    }
    // `what`: the region's number and name.
    const auto check = [&](const npu::RegionUse& region, const char* what, std::uint64_t has) -> Result<void> {
        if (region.size() <= has) return {};
        return fail(ErrorCode::InvalidProgram,
                    "delegate {}: command stream offset {}: {} reaches {} bytes into region {}, which has {}", index_,
                    region.furthest.offset_bytes, npu::op_kind_name(region.furthest.kind), region.size(), what, has);
    };
    TRY(check(use.regions[kConstants], TALPA_SENTENCE("0, weight_data"), weight_bytes_));
    TRY(check(use.regions[kScratch], TALPA_SENTENCE("1, the scratch"), scratch_bytes_));
    TRY(check(use.regions[kFastScratch],
              fast_is_scratch_ ? TALPA_SENTENCE("2, here the scratch") : TALPA_SENTENCE("2, the fast scratch"),
              fast_is_scratch_ ? scratch_bytes_ : INT32_MAX));
    if (!fast_is_scratch_) fast_scratch_bytes_ = static_cast<std::uint32_t>(use.regions[kFastScratch].size());
    for (unsigned region = kFastScratch + 1; region < npu::kRegionCount; ++region)
        if (const npu::RegionUse& other = use.regions[region]; other.used())
            return fail(ErrorCode::InvalidProgram,
                        "delegate {}: command stream offset {}: {} uses region {}, which has no memory", index_,
                        other.furthest.offset_bytes, npu::op_kind_name(other.furthest.kind), region);
    if (!use.regions[kScratch].written && outputs_.count() != 0)
        return fail(ErrorCode::InvalidProgram,
                    "delegate {}: the command stream never writes to the scratch, where its outputs are", index_);
    return {};
}

Result<void> EthosUDelegate::check_arguments(std::span<const Value> values, pte::Vector<std::int32_t> args) const {
    if (args.size() != argument_count())
        return fail(ErrorCode::InvalidProgram,
                    "a call of delegate {} has {} arguments, its payload has {} inputs and {} outputs", index_,
                    args.size(), inputs_.count(), outputs_.count());
    for (std::uint32_t i = 0; i < args.size(); ++i) {
        const Value& value = values[static_cast<std::uint32_t>(args[i])];
        if (value.kind != Value::Kind::Tensor || value.tensor == nullptr)
            return fail(ErrorCode::InvalidProgram, "argument {} of delegate {} must be a Tensor, is {}", i, index_,
                        value_kind_name(value.kind));
        const Tensor& tensor = *value.tensor;
        if (tensor.is_dynamic)
            return fail(ErrorCode::NotSupported, "argument {} of delegate {} has a dynamic shape", i, index_);
        const bool is_input = i < inputs_.count();
        const pte::IoRecord record = is_input ? inputs_[i] : outputs_[i - inputs_.count()];
        if (is_input && !input_type_fits(tensor.type, record.element_size))
            return fail(ErrorCode::InvalidType,
                        "argument {} of delegate {}: its tensor is {}, its record has elements of {} bytes", i, index_,
                        scalar_name(tensor.type), record.element_size);
        if (!is_input && tensor.is_constant)
            return fail(ErrorCode::InvalidProgram, "argument {} of delegate {} is an output, but a constant", i,
                        index_);
        if (is_input ? tensor.size_bytes() != record.size_bytes : output_copy(tensor, record) == OutputCopy::Impossible)
            return fail(ErrorCode::InvalidProgram,
                        "argument {} of delegate {}: its tensor has {} bytes, its record {} in rows of {}", i, index_,
                        tensor.size_bytes(), record.size_bytes, record.row_bytes());
    }
    return {};
}

npu::Job EthosUDelegate::job(Pool scratch, Pool fast_scratch) const {
    npu::Job job;
    job.stream = stream();
    job.config = config_;
    job.id = id_;
    if (weight_bytes_ != 0) job.regions[kConstants] = {const_cast<std::uint8_t*>(weights_), weight_bytes_};
    job.regions[kScratch] = {scratch.data(), scratch_bytes_};
    if (fast_is_scratch_)
        job.regions[kFastScratch] = job.regions[kScratch];
    else if (fast_scratch_bytes_ != 0)
        job.regions[kFastScratch] = {fast_scratch.data(), fast_scratch_bytes_};
    return job;
}

std::uint8_t EthosUDelegate::prior_byte(std::span<const Value> values, pte::Vector<std::int32_t> args, std::uint32_t at,
                                        std::uint8_t salt) const {
    for (std::uint32_t i = inputs_.count(); i-- > 0;) {  // the last one copied wins
        const pte::IoRecord record = inputs_[i];
        if (at < record.offset || at - record.offset >= record.size_bytes) continue;
        return values[static_cast<std::uint32_t>(args[i])].tensor->data[at - record.offset] ^ disturbance(at, salt);
    }
    return canary(at, salt);
}

// The first output whose every watched byte is as it was before the run; -1 when there is none.
std::int32_t EthosUDelegate::untouched_output(std::span<const Value> values, pte::Vector<std::int32_t> args,
                                              Pool scratch, std::uint8_t salt) const {
    for (std::uint32_t o = 0; o < outputs_.count(); ++o) {
        const pte::IoRecord record = outputs_[o];
        std::uint32_t at = record.offset;
        const std::uint32_t end = at + watched(record);
        while (at < end && scratch[at] == prior_byte(values, args, at, salt)) ++at;
        if (at == end) return static_cast<std::int32_t>(o);
    }
    return -1;
}

Result<std::uint64_t> EthosUDelegate::run_once(npu::Device& device, std::span<const Value> values,
                                               pte::Vector<std::int32_t> args, Pool scratch, Pool fast_scratch,
                                               std::uint8_t salt) const {
    for (std::uint32_t o = 0; o < outputs_.count(); ++o) {
        const pte::IoRecord record = outputs_[o];
        for (std::uint32_t i = 0; i < watched(record); ++i)
            scratch[record.offset + i] = canary(record.offset + i, salt);
    }
    for (std::uint32_t i = 0; i < inputs_.count(); ++i) {
        const pte::IoRecord record = inputs_[i];
        const std::uint8_t* const from = values[static_cast<std::uint32_t>(args[i])].tensor->data;
        std::uint8_t* const to = scratch.data() + record.offset;
        copy_bytes(to, from, record.size_bytes);
        for (std::uint32_t b = 0; salt != 0 && b < record.size_bytes; ++b)
            to[b] ^= disturbance(record.offset + b, salt);
    }
    TRY_ASSIGN(const npu::JobStats stats, device.run(job(scratch, fast_scratch)));
    return stats.cycles;
}

Result<std::uint64_t> EthosUDelegate::run(npu::Device& device, std::span<const Value> values,
                                          pte::Vector<std::int32_t> args, Pool scratch, Pool fast_scratch) const {
    TRY(check_arguments(values, args));  // a MoveCall may have changed what was checked at load
    for (std::uint32_t i = 0; i < args.size(); ++i)
        if (values[static_cast<std::uint32_t>(args[i])].tensor->data == nullptr)
            return fail(ErrorCode::InvalidState, "argument {} of delegate {} is a tensor without memory", i, index_);
    TRY_ASSIGN(std::uint64_t cycles, run_once(device, values, args, scratch, fast_scratch, 0));
    // An output as it was before may be chance: a short one that happens to equal what was there, or what an input of
    // equal bytes gives in its place. Runs with other bytes before them tell: what was written then differs from those.
    // (Only from a copy of an input on itself it does not; the compiler makes none.)
    constexpr std::uint8_t kTries = 4;
    std::uint8_t salt = 0;
    for (std::int32_t o = 0; (o = untouched_output(values, args, scratch, salt)) >= 0;) {
        if (salt == kTries)
            return fail(ErrorCode::NpuFault,
                        "delegate {}: the NPU reported success, but did not write output {} (at {} of the scratch)",
                        index_, o, outputs_[static_cast<std::uint32_t>(o)].offset);
        TRY(run_once(device, values, args, scratch, fast_scratch, ++salt));
    }
    if (salt != 0) {
        TRY_ASSIGN(cycles, run_once(device, values, args, scratch, fast_scratch, 0));
    }
    for (std::uint32_t o = 0; o < outputs_.count(); ++o) {
        const pte::IoRecord record = outputs_[o];
        copy_output(*values[static_cast<std::uint32_t>(args[inputs_.count() + o])].tensor, record,
                    scratch.data() + record.offset);
    }
    return cycles;
}

}  // namespace talpa::runtime
