#include "runtime/host/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/host/file.h"
#include "pte/host/file_hint.h"
#include "runtime/host/aligned_memory.h"

namespace talpa::runtime::host {
namespace {

using talpa::host::Error;
using talpa::host::MappedFile;
using talpa::host::with_context;
template <typename T>
using HostResult = talpa::host::Result<T>;
using Clock = std::chrono::steady_clock;

std::string joined_name(const pte::OperatorView& op) {
    return op.overload.empty() ? std::string(op.name) : fmt::format("{}.{}", op.name, op.overload);
}

// "aten::foo.out (instructions 3, 7)", for every operator that is missing.
Error missing_operators(const pte::MethodView& method, OperatorTable table) {
    std::map<std::string, std::vector<std::uint32_t>> callers;
    for (std::uint32_t c = 0; c < method.chain_count(); ++c) {
        for (std::uint32_t i = 0; i < method.instructions(c).size(); ++i) {
            const pte::InstructionView call(method.instructions(c)[i]);
            if (call.type() != pte::InstructionType::KernelCall || call.op_index() < 0) continue;
            const auto index = static_cast<std::uint32_t>(call.op_index());
            if (index < method.operators().size() && find_operator(table, method.op(index)) == nullptr)
                callers[joined_name(method.op(index))].push_back(i);
        }
    }
    std::vector<std::string> lines;
    for (const auto& [name, instructions] : callers)
        lines.push_back(fmt::format("{} (instruction{} {})", name, instructions.size() == 1 ? "" : "s",
                                    fmt::join(instructions, ", ")));
    std::vector<std::string_view> known;
    for (const Operator& op : table) known.push_back(op.name);
    std::ranges::sort(known);
    return Error(ErrorCode::OperatorMissing,
                 fmt::format("{} not built in: {}", lines.size() == 1 ? "an operator is" : "operators are",
                             fmt::join(lines, ", ")),
                 fmt::format("Built in are: {}", fmt::join(known, ", ")));
}

const char* hint_for(ErrorCode code, std::string_view message) {
    if (code == ErrorCode::NotFound && message.find("data file") != std::string_view::npos)
        return "Give the .ptd files that belong to the program with --data FILE.ptd.";
    if (code == ErrorCode::DelegateIncompatible)
        return "Export the model again for this NPU, for example with the target ethos-u65-256.";
    return "";
}

/// The error with the program and what was being done; the method only where the message does not name it itself.
std::unexpected<Error> located(Error error, const std::string& program, std::string_view method,
                               const std::string& doing = {}) {
    const std::string named = fmt::format("method '{}'", method);
    const bool says_it = error.message.find(named) != std::string::npos;
    return std::unexpected(
        std::move(error).with_context(says_it ? program : fmt::format("{}: {}{}", program, named, doing)));
}

/// Memory for a pool; the need is a program's, so there may not be so much.
HostResult<AlignedMemory> pool_memory(const std::string& pool, std::size_t bytes) {
    try {
        return AlignedMemory(bytes);
    } catch (const std::bad_alloc&) {
        return talpa::host::failure(ErrorCode::MemoryAllocation,
                                    "pool '{}' needs {} bytes, this machine does not have them", pool, bytes);
    }
}

/// Marks each job with a number of the session's own: its program and data files do not change while it lives, so the
/// device may keep what it made of them.
class ConstantDevice final : public npu::Device {
  public:
    explicit ConstantDevice(npu::Device& device) : device_(device) {}
    [[nodiscard]] std::uint32_t config() const override { return device_.config(); }
    [[nodiscard]] std::uint32_t id() const override { return device_.id(); }
    [[nodiscard]] talpa::Result<npu::JobStats> run(const npu::Job& job) override {
        npu::Job marked = job;
        marked.constant_id = number_;
        return device_.run(marked);
    }

  private:
    [[nodiscard]] static std::uint64_t next_number() {
        static std::atomic<std::uint64_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    npu::Device& device_;
    std::uint64_t number_ = next_number();
};

}  // namespace

struct Session::State {
    std::string name;
    std::optional<ConstantDevice> device;
    std::optional<MappedFile> file;
    std::vector<MappedFile> data_mappings;
    std::vector<pte::DataFile> data_files;
    Bytes bytes;
    std::optional<pte::Program> program;
    std::optional<Method> method;
    AlignedMemory method_pool;
    std::vector<AlignedMemory> arenas;
    std::vector<Pool> arena_pools;
    AlignedMemory temporary, scratch, fast_scratch;
    std::vector<AlignedMemory> outputs;
    PhaseTimes times;
    bool ran = false;

    [[nodiscard]] HostResult<void> bind() {
        TRY(method->bind({arena_pools, temporary.pool(), scratch.pool(), fast_scratch.pool()}));
        for (std::uint32_t i = 0; i < method->output_count(); ++i)
            if (method->output_is_unplanned(i)) TRY(method->set_output_memory(i, outputs[i].pool()));
        return {};
    }
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

HostResult<Session> Session::open(const std::filesystem::path& path, const SessionOptions& options) {
    auto state = std::make_unique<State>();
    state->name = path.string();
    TRY_ASSIGN(state->file, MappedFile::open(path));
    state->bytes = state->file->bytes();
    return finish(std::move(state), options);
}

HostResult<Session> Session::open(Bytes program, std::string name, const SessionOptions& options) {
    auto state = std::make_unique<State>();
    state->name = std::move(name);
    state->bytes = program;
    return finish(std::move(state), options);
}

HostResult<Session> Session::finish(std::unique_ptr<State> state, const SessionOptions& options) {
    const auto start = Clock::now();
    auto opened_program = pte::Program::open(state->bytes);
    if (!opened_program) {
        Error error(opened_program.error());
        error.hint = pte::host::file_hint(state->bytes, error.message);
        return std::unexpected(std::move(error).with_context(state->name));
    }
    state->program = *opened_program;
    for (const std::filesystem::path& path : options.data_files) {
        TRY_ASSIGN(MappedFile mapping, MappedFile::open(path));
        state->data_mappings.push_back(std::move(mapping));
        TRY_ASSIGN(const pte::DataFile data,
                   with_context(pte::DataFile::open(state->data_mappings.back().bytes()), path.string()));
        state->data_files.push_back(data);
    }
    const auto opened = Clock::now();
    const auto context = [&](Error error) {
        if (const char* hint = hint_for(error.code, error.message); *hint != '\0' && error.hint.empty())
            error.hint = hint;
        return located(std::move(error), state->name, options.method);
    };
    const auto view = state->program->find_method(options.method);
    if (!view) {
        std::vector<std::string_view> names;
        for (std::uint32_t i = 0; i < state->program->method_count(); ++i)
            names.push_back(state->program->method(i).name());
        return std::unexpected(Error(view.error())
                                   .with_hint(fmt::format("The program has: {}", fmt::join(names, ", ")))
                                   .with_context(state->name));
    }
    const auto pool_bytes = Method::pool_bytes(*view);
    if (!pool_bytes) return context(pool_bytes.error());
    const auto make_pool = [&](AlignedMemory& memory, const std::string& pool, std::size_t bytes) -> HostResult<void> {
        auto made = pool_memory(pool, bytes);
        if (!made) return context(std::move(made.error()));
        memory = std::move(*made);
        return {};
    };
    TRY(make_pool(state->method_pool, "method", *pool_bytes));
    if (options.device != nullptr) state->device.emplace(*options.device);
    auto method = Method::load(*state->program, options.method, state->method_pool.pool(),
                               {options.operators, state->device ? &*state->device : nullptr, state->data_files,
                                options.instruction_budget, options.observer});
    if (!method)
        return context(method.error().code == ErrorCode::OperatorMissing ? missing_operators(*view, options.operators)
                                                                         : Error(method.error()));
    state->method = *method;
    const auto loaded = Clock::now();

    const MemoryNeed& need = method->need();
    for (std::uint32_t i = 0; i < need.arena_count; ++i)
        TRY(make_pool(state->arenas.emplace_back(), fmt::format("planned {}", i + 1), need.planned[i]));
    for (const AlignedMemory& arena : state->arenas) state->arena_pools.push_back(arena.pool());
    TRY(make_pool(state->temporary, "temporary", need.temporary));
    TRY(make_pool(state->scratch, "scratch", need.scratch));
    TRY(make_pool(state->fast_scratch, "fast scratch", need.fast_scratch));
    for (std::uint32_t i = 0; i < method->output_count(); ++i)
        TRY(make_pool(state->outputs.emplace_back(), fmt::format("output {}", i),
                      method->output_is_unplanned(i) ? method->output(i).tensor->size_bytes() : 0));
    if (auto bound = state->bind(); !bound) return context(bound.error());
    state->times.open = opened - start;
    state->times.load = loaded - opened;
    state->times.bind = Clock::now() - loaded;
    return Session(std::move(state));
}

const pte::Program& Session::program() const {
    return *state_->program;
}
Method& Session::method() {
    return *state_->method;
}
const MemoryNeed& Session::need() const {
    return state_->method->need();
}
const PhaseTimes& Session::times() const {
    return state_->times;
}
std::uint32_t Session::input_count() const {
    return state_->method->input_count();
}
std::uint32_t Session::output_count() const {
    return state_->method->output_count();
}

namespace {

PortInfo port_info(const Value& value) {
    PortInfo info;
    info.kind = value.kind;
    if (value.kind == Value::Kind::Int || value.kind == Value::Kind::Bool) info.integer = value.i;
    if (value.kind == Value::Kind::Double) info.real = value.d;
    if (value.kind != Value::Kind::Tensor) return info;
    const Tensor& tensor = *value.tensor;
    info.type = tensor.type;
    info.sizes.assign(tensor.sizes.begin(), tensor.sizes.begin() + tensor.rank);
    info.dim_order.assign(tensor.dim_order.begin(), tensor.dim_order.begin() + tensor.rank);
    info.is_dynamic = tensor.is_dynamic;
    info.size_bytes = tensor.size_bytes();
    return info;
}

}  // namespace

PortInfo Session::input(std::uint32_t i) const {
    const Method& method = *state_->method;
    PortInfo info = port_info(method.input(i));
    info.is_planned = !method.input_is_unplanned(i);
    info.quantization = pte::io_quantization(*state_->program, method.view(), pte::IoSide::Input, i);
    if (info.kind != Value::Kind::Tensor) return info;
    const auto bounds = method.view().value(static_cast<std::uint32_t>(method.view().inputs()[i])).as_tensor().sizes();
    info.size_bytes = scalar_size(info.type);
    for (std::uint32_t d = 0; d < bounds.size(); ++d) {
        info.sizes[d] = bounds[d];
        info.size_bytes *= static_cast<std::size_t>(bounds[d]);
    }
    return info;
}

PortInfo Session::output(std::uint32_t i) const {
    const Method& method = *state_->method;
    PortInfo info = port_info(method.output(i));
    info.is_planned = !method.output_is_unplanned(i);
    info.quantization = pte::io_quantization(*state_->program, method.view(), pte::IoSide::Output, i);
    return info;
}

HostResult<void> Session::set_input(std::uint32_t i, Bytes bytes, std::span<const std::int32_t> sizes) {
    const auto start = Clock::now();
    if (state_->ran) state_->times.set_inputs = {};
    state_->ran = false;
    if (sizes.empty()) {
        TRY(with_context(state_->method->set_input(i, bytes), state_->name));
    } else {
        if (i >= input_count()) return with_context(state_->method->set_input(i, bytes), state_->name);
        TRY(with_context(state_->method->set_input(i, {input(i).type, sizes, {}, bytes}), state_->name));
    }
    state_->times.set_inputs += Clock::now() - start;
    return {};
}

HostResult<void> Session::run() {
    const auto start = Clock::now();
    const auto done = state_->method->execute();
    state_->times.run = Clock::now() - start;
    state_->ran = true;
    if (done) return {};
    return located(Error(done.error()), state_->name, state_->method->view().name(),
                   fmt::format(", instruction {}", state_->method->last_step().instruction));
}

HostResult<Bytes> Session::output_bytes(std::uint32_t i) const {
    TRY_ASSIGN(const Tensor* const tensor, with_context(state_->method->output_tensor(i), state_->name));
    return Bytes(tensor->data, tensor->size_bytes());
}

HostResult<void> Session::reset() {
    return with_context(state_->bind(), state_->name);
}

std::string PortInfo::describe() const {
    if (kind == Value::Kind::Double) return fmt::format("{} {}", value_kind_name(kind), real);
    if (kind != Value::Kind::Tensor) return fmt::format("{} {}", value_kind_name(kind), integer);
    return fmt::format("{} [{}]", scalar_name(type), fmt::join(sizes, ", "));
}

HostResult<MemoryNeed> memory_need(const pte::Program& program, const SessionOptions& options,
                                   std::span<const pte::DataFile> data_files) {
    TRY_ASSIGN(const pte::MethodView view, program.find_method(options.method));
    TRY_ASSIGN(const std::size_t bytes, Method::pool_bytes(view));
    TRY_ASSIGN(const AlignedMemory pool, pool_memory("method", bytes));
    const auto method =
        Method::load(program, options.method, pool.pool(),
                     {options.operators, options.device, data_files, options.instruction_budget, nullptr});
    if (method) return method->need();
    if (method.error().code == ErrorCode::OperatorMissing)
        return std::unexpected(missing_operators(view, options.operators));
    return std::unexpected(Error(method.error()));
}

}  // namespace talpa::runtime::host
