#include "board/linux/remoteproc.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "link/memory_map.h"

namespace talpa::board {
namespace {

/// sysfs_streq: equal, one trailing newline aside.
bool is_word(std::string_view text, std::string_view word) {
    if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    return text == word;
}

std::string up_to_newline(std::string_view text) {
    return std::string(text.substr(0, text.find('\n')));
}

constexpr const char* kCrashTypes[] = {"mmufault", "watchdog", "fatal error"};

}  // namespace

Remoteproc::Remoteproc(RemoteprocConfig config, SystemMemory& memory, CoreControl& core, Mailbox& mailbox,
                       FirmwareSource firmware, KernelLog& log, VirtioRpmsg::DriverFactory drivers)
    : config_(std::move(config)),
      memory_(memory),
      core_(core),
      mailbox_(mailbox),
      firmware_source_(std::move(firmware)),
      log_(log),
      drivers_(std::move(drivers)),
      firmware_(config_.default_firmware) {
    log_.line("remoteproc remoteproc{}: {} is available", config_.index, config_.name);
    if (config_.attached_at_probe) {
        state_ = State::Detached;
        const std::lock_guard lock(lock_);
        ++power_;
        (void)attach();
    }
}

Remoteproc::~Remoteproc() {
    const std::lock_guard lock(lock_);
    if (state_ == State::Running || state_ == State::Attached) stop_now();
}

std::string Remoteproc::read_state() const {
    switch (state_.load()) {
        case State::Offline:
            return "offline\n";
        case State::Suspended:
            return "suspended\n";
        case State::Running:
            return "running\n";
        case State::Crashed:
            return "crashed\n";
        case State::Deleted:
            return "deleted\n";
        case State::Attached:
            return "attached\n";
        case State::Detached:
            return "detached\n";
    }
    return "invalid\n";
}

std::string Remoteproc::read_firmware() const {
    if (state_ == State::Attached) return "unknown\n";  // Linux does not know what the boot loader loaded
    const std::lock_guard lock(facts_);
    return firmware_ + "\n";
}

std::string Remoteproc::read_recovery() const {
    const std::lock_guard lock(facts_);
    return recovery_disabled_ ? "disabled\n" : "enabled\n";
}

std::string Remoteproc::read_coredump() const {
    const std::lock_guard lock(facts_);
    return coredump_ + "\n";
}

int Remoteproc::write_state(std::string_view text) {
    if (is_word(text, "start")) {
        if (config_.profile == KernelProfile::Legacy && (state_ == State::Running || state_ == State::Attached))
            return -EBUSY;
        const std::lock_guard lock(lock_);
        const int error = boot();
        if (error != 0) log_.line("remoteproc remoteproc{}: Boot failed: {}", config_.index, error);
        return error;
    }
    if (is_word(text, "stop")) {
        const std::lock_guard lock(lock_);
        if (state_ != State::Running && state_ != State::Attached) return -EINVAL;
        if (power_ > 0 && --power_ > 0) return 0;  // somebody else started it too
        stop_now();
        return 0;
    }
    if (is_word(text, "detach")) {
        if (state_ != State::Attached) return -EINVAL;
        return detach();
    }
    log_.line("remoteproc remoteproc{}: Unrecognised option: {}", config_.index, up_to_newline(text));
    return -EINVAL;
}

int Remoteproc::write_firmware(std::string_view text) {
    const std::lock_guard lock(lock_);
    if (state_ != State::Offline) {
        log_.line("remoteproc remoteproc{}: can't change firmware while running", config_.index);
        return -EBUSY;
    }
    std::string name = up_to_newline(text);
    if (name.empty()) {
        log_.line("remoteproc remoteproc{}: can't provide empty string for firmware name", config_.index);
        return -EINVAL;
    }
    const std::lock_guard facts(facts_);
    firmware_ = std::move(name);
    return 0;
}

int Remoteproc::write_recovery(std::string_view text) {
    const bool enable = is_word(text, "enabled"), disable = is_word(text, "disabled");
    if (!enable && !disable && !is_word(text, "recover")) return -EINVAL;
    if (enable || disable) {
        const std::lock_guard facts(facts_);
        recovery_disabled_ = disable;
    }
    if (!disable) {
        const std::lock_guard lock(lock_);
        recover();
    }
    return 0;
}

int Remoteproc::write_coredump(std::string_view text) {
    if (state_ == State::Crashed) {
        log_.line("remoteproc remoteproc{}: can't change coredump configuration", config_.index);
        return -EBUSY;
    }
    for (const char* mode : {"disabled", "enabled", "inline"})
        if (is_word(text, mode)) {
            const std::lock_guard facts(facts_);
            coredump_ = mode;
            return 0;
        }
    log_.line("remoteproc remoteproc{}: Invalid coredump configuration", config_.index);
    return -EINVAL;
}

// Called with lock_ held, as are all that follow up to the debugfs part.
int Remoteproc::boot() {
    if (state_ == State::Deleted) return -ENODEV;
    if (++power_ > 1) return 0;  // up already, or crashed and still counted
    const int error = state_ == State::Detached ? attach() : load_and_start();
    if (error != 0) power_ = 0;  // it was 1: only the first start gets here
    return error;
}

int Remoteproc::load_and_start() {
    log_.line("remoteproc remoteproc{}: powering up {}", config_.index, config_.name);
    std::string name;
    {
        const std::lock_guard facts(facts_);
        name = firmware_;
    }
    const FirmwareFile file = firmware_source_(name);
    if (file.error != 0) {
        log_.line("remoteproc remoteproc{}: Direct firmware load for {} failed with error {}", config_.index, name,
                  file.error);
        log_.line("remoteproc remoteproc{}: request_firmware failed: {}", config_.index, file.error);
        return file.error;
    }
    log_.line("remoteproc remoteproc{}: Booting fw image {}, size {}", config_.index, name, file.bytes.size());
    const auto image = ElfImage::open(file.bytes);
    if (!image) {
        log_.line("remoteproc remoteproc{}: {}", config_.index, image.error().message);
        return -EINVAL;
    }

    set_table({});
    Resources resources;
    const ElfSection* const section = image->section(".resource_table");
    if (section != nullptr && link::check_resource_table(section->data)) {
        std::vector<std::uint8_t> table(section->data.begin(), section->data.end());
        auto handled = handle_resources(table, config_.reserved_nodes, log_, config_.index);
        if (handled.error != 0) return handled.error;
        resources = std::move(handled.resources);
        set_table(std::move(table));
    } else {
        if (section != nullptr)
            log_.line("remoteproc remoteproc{}: {}", config_.index,
                      host::Error(link::check_resource_table(section->data).error()).message);
        log_.line("imx-rproc remoteproc-cm33: No resource table in elf");
    }

    if (const int error = load_segments(*image); error != 0) {
        log_.line("remoteproc remoteproc{}: Failed to load program segments: {}", config_.index, error);
        set_table({});
        return error;
    }

    // Linux's copy goes to where the firmware looks, before the core runs; from then on that place is the table.
    if (!table_.empty() && !config_.table_copy_only) {
        std::uint8_t* to = nullptr;
        if (config_.live_table)
            to = memory_.at(config_.live_table_address, table_.size());
        else if (const auto system = device_to_system(section->address, table_.size(), config_.mapped_blocks))
            to = memory_.at(*system, table_.size());
        if (to != nullptr) {
            std::memcpy(to, table_.data(), table_.size());
            if (config_.live_table) core_.loaded(config_.live_table_address, table_.size());
            const std::lock_guard facts(facts_);
            loaded_table_ = to;
            loaded_table_size_ = table_.size();
        }
    }
    {
        const std::lock_guard facts(facts_);
        traces_ = resources.traces;
    }

    const ElfSection* const interrupts = image->section(".interrupts");
    const auto boot_address =
        config_.send_boot_address && interrupts != nullptr ? static_cast<std::uint32_t>(interrupts->address) : 0;
    config_.before_release();
    mailbox_.listen(true);
    core_.start(boot_address);
    std::this_thread::sleep_for(std::chrono::milliseconds(config_.startup_delay_ms));
    if (const int error = start_devices(); error != 0) {
        stop_now();
        return error;
    }
    state_ = State::Running;
    log_.line("remoteproc remoteproc{}: remote processor {} is now up", config_.index, config_.name);
    return 0;
}

int Remoteproc::load_segments(const ElfImage& image) {
    config_.before_load();
    firmware_segments_.clear();
    for (const ElfSegment& segment : image.segments()) {
        const auto system = device_to_system(segment.physical_address, segment.memory_size, config_.mapped_blocks);
        std::uint8_t* const to = system ? memory_.at(*system, segment.memory_size) : nullptr;
        if (to == nullptr) {
            log_.line("imx-rproc remoteproc-cm33: Translation failed: da = 0x{:x} len = 0x{:x}",
                      segment.physical_address, segment.memory_size);
            log_.line("remoteproc remoteproc{}: bad phdr da 0x{:x} mem 0x{:x}", config_.index, segment.physical_address,
                      segment.memory_size);
            // Linux leaves it at that; what there is helps more.
            for (const char* const window : address_map_lines()) log_.line("board: the M33 has {}", window);
            return -EINVAL;
        }
        std::memcpy(to, segment.data.data(), segment.data.size());
        std::memset(to + segment.data.size(), 0, segment.memory_size - segment.data.size());
        core_.loaded(*system, segment.memory_size);
        firmware_segments_.push_back({segment.physical_address, *system, segment.memory_size});
    }
    return 0;
}

void Remoteproc::set_table(std::vector<std::uint8_t> table) {
    const std::lock_guard facts(facts_);
    table_ = std::move(table);
    loaded_table_ = nullptr;
    loaded_table_size_ = 0;
    traces_.clear();
}

int Remoteproc::start_devices() {
    std::vector<std::uint8_t> copy = table_;
    if (copy.empty()) return 0;
    KernelLog quiet;  // everything worth saying was said when the table was handled
    const auto handled = handle_resources(copy, config_.reserved_nodes, quiet);
    if (handled.error != 0) return handled.error;
    for (const VdevEntry& vdev : handled.resources.vdevs) {
        if (vdev.id != link::kVirtioIdRpmsg) continue;
        log_.line("rproc-virtio rproc-virtio.{}.auto: assigned reserved memory node vdevbuffer@a4020000",
                  config_.index);
        std::uint8_t* const table = loaded_table_ != nullptr ? loaded_table_ : table_.data();
        auto rpmsg = std::make_shared<VirtioRpmsg>(
            VirtioRpmsg::Config{vdev, table, link::kVringBuffers.base, config_.index, config_.tracer}, memory_,
            mailbox_, log_, drivers_);
        {
            // Known before the probe ends: the firmware may announce its channels in the middle of it.
            const std::lock_guard facts(facts_);
            rpmsg_ = rpmsg;
        }
        if (const int error = rpmsg->probe(); error != 0) return error;
        log_.line("rproc-virtio rproc-virtio.{0}.auto: registered virtio{0} (type 7)", config_.index);
        break;  // one RPMsg device is what the mailbox serves
    }
    return 0;
}

void Remoteproc::stop_now() {
    // Devices first: a blocked reader of a tty wakes with an error while the core still runs, as on the board.
    std::shared_ptr<VirtioRpmsg> rpmsg;
    {
        const std::lock_guard facts(facts_);
        rpmsg.swap(rpmsg_);
    }
    if (rpmsg) rpmsg->remove();
    core_.stop();
    mailbox_.listen(false);
    set_table({});
    power_ = 0;
    state_ = State::Offline;
    log_.line("remoteproc remoteproc{}: stopped remote processor {}", config_.index, config_.name);
}

int Remoteproc::attach() {
    log_.line("remoteproc remoteproc{}: attaching to {}", config_.index, config_.name);
    mailbox_.listen(true);
    // The firmware's table is where it put it, if there is one.
    if (const std::uint8_t* const at = memory_.at(config_.live_table_address, link::kLiveResourceTable.size);
        at != nullptr && config_.live_table) {
        std::vector<std::uint8_t> table(at, at + link::kLiveResourceTable.size);
        if (link::check_resource_table(table)) {
            auto handled = handle_resources(table, config_.reserved_nodes, log_, config_.index);
            if (handled.error != 0) return handled.error;
            set_table(table);
            std::uint8_t* const live = memory_.at(config_.live_table_address, table.size());
            std::memcpy(live, table.data(), table.size());
            const std::lock_guard facts(facts_);
            loaded_table_ = live;
            loaded_table_size_ = table.size();
            traces_ = handled.resources.traces;
        }
    }
    if (const int error = start_devices(); error != 0) return error;
    state_ = State::Attached;
    log_.line("remoteproc remoteproc{}: remote processor {} is now attached", config_.index, config_.name);
    return 0;
}

int Remoteproc::detach() {
    const std::lock_guard lock(lock_);
    if (state_ != State::Attached) return -EINVAL;
    if (config_.profile == KernelProfile::Bsp66 && power_ > 1) {
        --power_;
        return 0;
    }
    // The i.MX 93's method has no detach; Linux finds that out after it has removed the devices.
    std::shared_ptr<VirtioRpmsg> rpmsg;
    {
        const std::lock_guard facts(facts_);
        rpmsg.swap(rpmsg_);
    }
    if (rpmsg) rpmsg->remove();
    return -EOPNOTSUPP;
}

void Remoteproc::report_crash(unsigned type) {
    const std::lock_guard lock(lock_);
    if (state_ != State::Running && state_ != State::Attached) return;
    log_.line("remoteproc remoteproc{}: crash detected in {}: type {}", config_.index, config_.name,
              kCrashTypes[type < 3 ? type : 2]);
    state_ = State::Crashed;
    log_.line("remoteproc remoteproc{}: handling crash #{} in {}", config_.index, ++crash_count_, config_.name);
    bool disabled = false;
    {
        const std::lock_guard facts(facts_);
        disabled = recovery_disabled_;
    }
    if (!disabled) recover();
}

void Remoteproc::recover() {
    if (state_ != State::Crashed) return;
    log_.line("remoteproc remoteproc{}: recovering {}", config_.index, config_.name);
    const unsigned count = power_;
    stop_now();
    dump();
    if (load_and_start() == 0)
        power_ = count == 0 ? 1 : count;
    else
        log_.line("remoteproc remoteproc{}: recovery of {} failed", config_.index, config_.name);
}

void Remoteproc::dump() {
    {
        const std::lock_guard facts(facts_);
        if (coredump_ == "disabled") return;
    }
    std::vector<DumpSegment> segments;
    for (const ReservedNode& node : config_.reserved_nodes) segments.push_back({node.base, node.base, node.size});
    segments.insert(segments.end(), firmware_segments_.begin(), firmware_segments_.end());
    config_.dumped(make_coredump(segments, memory_));
}

std::shared_ptr<VirtioRpmsg> Remoteproc::device() const {
    const std::lock_guard facts(facts_);
    return rpmsg_;
}

void Remoteproc::mailbox_received() {
    if (const auto rpmsg = device()) rpmsg->interrupt();
}

std::vector<VirtioRpmsg::Channel> Remoteproc::channels() const {
    const auto rpmsg = device();
    return rpmsg ? rpmsg->channels() : std::vector<VirtioRpmsg::Channel>{};
}

std::size_t Remoteproc::trace_count() const {
    const std::lock_guard facts(facts_);
    return traces_.size();
}

std::string Remoteproc::read_trace(std::size_t index) const {
    const std::lock_guard facts(facts_);
    if (index >= traces_.size()) return {};
    const TraceEntry& trace = traces_[index];
    const auto system = device_to_system(trace.da, trace.length, config_.mapped_blocks);
    const std::uint8_t* const text = system ? memory_.at(*system, trace.length) : nullptr;
    if (text == nullptr) return "Trace " + trace.name + " not available\n";
    std::size_t size = 0;
    while (size < trace.length && text[size] != 0) ++size;
    return {reinterpret_cast<const char*>(text), size};
}

std::string Remoteproc::read_resource_table() const {
    const std::lock_guard facts(facts_);
    if (loaded_table_ != nullptr) return describe_resource_table({loaded_table_, loaded_table_size_});
    if (!table_.empty()) return describe_resource_table(table_);
    return "No resource table found\n";
}

std::string Remoteproc::read_carveouts() const {
    std::string out;
    if (state_ == State::Offline) return out;
    for (const ReservedNode& node : config_.reserved_nodes)
        out += fmt::format(
            "Carveout memory entry:\n\tName: {}\n\tVirtual address: {:016x}\n\tDMA address: 0x{:08x}\n\tDevice "
            "address: 0x{:x}\n\tLength: 0x{:x} Bytes\n\n",
            node.name, node.base, node.base, node.base, node.size);
    return out;
}

int Remoteproc::write_crash(std::string_view text) {
    const std::string word = up_to_newline(text);
    if (word.empty() || word.size() > 1 || word[0] < '0' || word[0] > '9') return -EINVAL;
    report_crash(static_cast<unsigned>(word[0] - '0'));
    return 0;
}

}  // namespace talpa::board
