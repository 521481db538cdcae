// topo doctor: what health finds, and with --fix the mending of it, one question each.
#include <unistd.h>

#include "base/host/file.h"
#include "base/host/json.h"
#include "topo/cli/look_at_target.h"
#include "topo/cli/opened.h"
#include "topo/system/text.h"
#include "topo/target/device_tree.h"
#include "topo/target/health.h"
#include "topo/target/install.h"
#include "topo/target/ssh_error.h"
#include "topo/target/ssh_keys.h"

namespace talpa::topo {
namespace {

namespace fs = std::filesystem;
using host::Json;

class Doctor {
  public:
    Doctor(const Invocation& invocation, Destination destination)
        : yes_(invocation.on("--yes")),
          fix_(invocation.on("--fix")),
          json_(invocation.json()),
          destination_(std::move(destination)) {}

    /// What was found and done, as JSON; the plain text has been printed by then.
    [[nodiscard]] const Json& findings() const { return findings_; }
    [[nodiscard]] const Json& done() const { return done_; }

    Done host(const HealthOptions& options) {
        int open = 0;
        for (const Check& check : check_host(options))
            if (check.status == Status::Error) say(check, "host"), ++open;
        return open;
    }

    // Connection first: without it nothing else can be asked. Returns whether there is one.
    std::expected<bool, Failure> connection(const HealthOptions& options) {
        for (int attempt = 0; attempt < 3; ++attempt) {
            const TargetHealth health = look_at_target(destination_, options);
            if (health.connectivity.status == Status::Ok) {
                health_ = health;
                return true;
            }
            say(health.connectivity, "target");
            bool tried = false;
            const auto& fix = health.connectivity.fix;
            if (fix && fix->description == kBringUp && agreed("Bring the board up?")) {
                TRY(bring_up_board(destination_));
                done_.push_back("brought the board up");
                tried = true;
            }
            if (!tried && health.ssh_fault == SshFault::HostKeyUnknown && agreed("Trust this host key?")) {
                HealthOptions trusting = options;
                trusting.accept_new_host_keys = true;
                (void)look_at_target(destination_, trusting);
                done_.push_back("trusted the host key");
                tried = true;
            } else if (!tried && health.ssh_fault == SshFault::HostKeyChanged &&
                       agreed("Remove the old host key? Only if you know why it changed")) {
                TRY_ASSIGN(
                    const Outcome ran,
                    pass_through({.argv = {"ssh-keygen", "-R", destination_.known_hosts_name()}}, Output::ErrorsOnly));
                tried = ran.status == 0;
                if (tried) done_.push_back("removed the old host key");
            } else if (!tried &&
                       (health.ssh_fault == SshFault::AuthenticationFailed ||
                        health.ssh_fault == SshFault::TooManyAuthenticationFailures) &&
                       agreed("Set up an SSH key?")) {
                TRY(setup_keys(destination_, {}));
                done_.push_back("set up an SSH key");
                tried = true;
            }
            if (!tried) return false;
        }
        return false;
    }

    Done target() {
        int open = 0;
        bool runtime = false;
        for (const Check& check : health_.dependencies) {
            if (check.status == Status::Ok || check.status == Status::Info) continue;
            say(check, "target");
            const bool installable = check.name == "Remoteproc Runtime" || check.name == "Remoteproc Shim";
            if (installable && !runtime && agreed("Install the Remoteproc Runtime?")) {
                runtime = true;
                // What cannot be mended is said, and the rest goes on.
                const auto installed = install_runtime(Target(destination_), std::nullopt);
                if (installed) {
                    if (!json_) print(installed_plain(*installed));
                    for (const Installed& one : *installed)
                        done_.push_back(fmt::format("installed {} to {}", one.binary, one.folder));
                } else {
                    log_error(installed.error());
                    ++open;
                }
            } else if (!(installable && runtime)) {
                ++open;
            }
        }
        TRY_ASSIGN(const int trees, device_tree());
        return open + trees;
    }

  private:
    void say(const Check& check, const char* where) {
        if (json_) {
            Json one = {{"where", where},
                        {"name", check.name},
                        {"status", check.status == Status::Error ? "error" : "warning"},
                        {"value", check.value}};
            if (check.fix) one["fix"] = {{"description", check.fix->description}, {"command", check.fix->command}};
            findings_.push_back(std::move(one));
            return;
        }
        print(printable(fmt::format("{}: {}", check.name, check.value)));
        if (check.fix)
            print(printable("  " + (check.fix->command.empty() ? check.fix->description : check.fix->command)));
    }

    // Asked on standard output, which belongs to the document under --json.
    [[nodiscard]] bool agreed(const std::string& question) const {
        return fix_ && (yes_ || (!json_ && confirmed(question)));
    }

    // Only where a tree to boot from is found: on a virtual board, or another board, there is nothing to patch.
    Done device_tree() {
        if (destination_.is_plain_localhost()) return 0;
        const Target target(destination_);
        TRY_ASSIGN(const std::string path, find_boot_tree(target));
        if (path.empty()) return 0;
        TRY_ASSIGN(const std::string bytes, read_tree(target, path));
        std::string scratch = (fs::temp_directory_path() / "topo-doctor-XXXXXX").string();
        if (::mkdtemp(scratch.data()) == nullptr)
            return std::unexpected(Failure(host::Error(ErrorCode::AccessFailed, "cannot make a temporary folder")));
        const Done done = patch(target, path, bytes, scratch);
        std::error_code ignored;
        fs::remove_all(scratch, ignored);
        return done;
    }

    Done patch(const Target& target, const std::string& path, const std::string& bytes, const fs::path& scratch) {
        const fs::path old_tree = scratch / "board.dtb", new_tree = scratch / "patched.dtb";
        TRY(host::write_text(old_tree, bytes));
        TRY_ASSIGN(const auto changes, missing_in_tree(old_tree));
        if (changes.empty()) return 0;
        const auto tell = [this](const std::string& text) {
            if (!json_) print(text);
        };
        tell(fmt::format("Device tree {}:", printable(path, LineEnds::Replace)));
        int by_hand = 0;
        for (const TreeChange& change : changes) {
            const std::string what = (change.words.empty() ? "it " : "must ") + change.what;
            tell(printable("  " + what, LineEnds::Replace));
            if (json_)
                findings_.push_back(
                    {{"where", "target"}, {"name", "Device Tree " + path}, {"status", "error"}, {"value", what}});
            by_hand += change.words.empty() ? 1 : 0;
        }
        if (by_hand == static_cast<int>(changes.size())) return by_hand;
        TRY(host::write_text(new_tree, bytes));
        TRY(patch_tree(new_tree, changes));
        TRY_ASSIGN(const std::string difference, tree_difference(old_tree, new_tree));
        tell(printable(difference));
        if (!agreed("Replace the device tree? The old one is kept beside it")) return by_hand + 1;
        TRY_ASSIGN(const std::string patched, host::read_text(new_tree));
        TRY_ASSIGN(const std::string backup, write_tree(target, path, patched));
        tell(fmt::format("Replaced; the old one is {}. Reboot the board for it to count.",
                         printable(backup, LineEnds::Replace)));
        done_.push_back(fmt::format("replaced the device tree {}, the old one is {}; reboot the board", path, backup));
        return by_hand;
    }

    bool yes_, fix_, json_;
    Destination destination_;
    TargetHealth health_;
    Json findings_ = Json::array(), done_ = Json::array();
};

}  // namespace

Done run_doctor(const Invocation& invocation) {
    HealthOptions options;
    TRY_ASSIGN(options.timeout, timeout_of(invocation, "--timeout", "5s"));
    TRY_ASSIGN(const auto destination, given_target(invocation));
    Doctor doctor(invocation, destination.value_or(Destination{}));
    TRY_ASSIGN(int open, doctor.host(options));
    bool connected = true;
    if (destination) {
        TRY_ASSIGN(connected, doctor.connection(options));
        if (connected) {
            TRY_ASSIGN(const int left, doctor.target());
            open += left;
        } else {
            ++open;
        }
    }
    if (invocation.json()) {
        const Json document = {{"findings", doctor.findings()}, {"done", doctor.done()}, {"open", open}};
        print(document.dump(2, ' ', false, Json::error_handler_t::replace));
    } else if (open == 0) {
        info("nothing is wrong");
    }
    return open == 0 ? 0 : 1;
}

}  // namespace talpa::topo
