// A target, and commands on it: the user's own OpenSSH with one multiplexed connection (a master that outlives the
// command by ten seconds), or this machine. Payloads run in a login shell, behind a marker, so that banners and noisy
// profiles are cut away (topo spec, section 3.2); engines are started without one, as docker's own ssh transport does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topo/system/process.h"
#include "topo/target/destination.h"

namespace talpa::topo {

struct ConnectOptions {
    Milliseconds timeout{30'000};  ///< to connect and log in; 0: none
    bool batch = true;             ///< ask nothing, only public keys
    bool accept_new_host_keys = false;
};

class Target {
  public:
    explicit Target(Destination destination, ConnectOptions options = {})
        : destination_(std::move(destination)), options_(options) {}

    [[nodiscard]] const Destination& destination() const { return destination_; }
    [[nodiscard]] bool is_local() const { return destination_.is_plain_localhost(); }

    /// Opens the connection. Where ssh may ask (not batch, and a terminal is there) it asks there.
    /// Errors: see ssh_error.h.
    [[nodiscard]] host::Result<void> connect() const;

    /// A POSIX shell script in a login shell of the target (local: /bin/sh -c). The outcome is the script's; ssh's own
    /// failures are errors.
    [[nodiscard]] host::Result<Outcome> run(const std::string& script, Milliseconds timeout = Milliseconds(0),
                                            std::string input = {}) const;

    /// A command without a login shell, to be run with process.h (captured, piped, on the terminal).
    [[nodiscard]] Command command(const std::vector<std::string>& argv, bool terminal = false) const;
    /// The same for a script of /bin/sh.
    [[nodiscard]] Command shell(const std::string& script) const;
    /// Runs it; a failure of ssh itself is an error.
    [[nodiscard]] host::Result<Outcome> capture(const std::vector<std::string>& argv,
                                                Milliseconds timeout = Milliseconds(0), std::string input = {}) const;

    /// The host name that the SSH configuration gives (`ssh -G`); of this machine the given text; of a virtual board
    /// 127.0.0.1, where its ports are forwarded.
    [[nodiscard]] host::Result<std::string> host_name() const;
    /// All of `ssh -G`: keyword (lower case) and value.
    [[nodiscard]] host::Result<std::vector<std::pair<std::string, std::string>>> ssh_configuration() const;

    /// "ssh …" up to the destination, without a command; extra options in front.
    [[nodiscard]] std::vector<std::string> ssh_words(const std::vector<std::string>& extra = {}) const;
    /// The same for a connection of its own, beside the shared one.
    [[nodiscard]] std::vector<std::string> ssh_words_alone(const std::vector<std::string>& extra) const;
    /// Ends the connection that stays for ten seconds.
    void disconnect() const;

  private:
    [[nodiscard]] std::vector<std::string> words_with(bool shared, const std::vector<std::string>& extra) const;
    Destination destination_;
    ConnectOptions options_;
};

/// A host name as it stands in a URL: an IPv6 address in brackets.
[[nodiscard]] std::string url_host(const std::string& name);

inline constexpr std::string_view kStartMarker = "__TOPO_COMMAND_START__";

/// What stands behind the marker line; the whole text if there is none. `found` says which.
[[nodiscard]] std::string after_marker(std::string_view text, bool& found);

/// The string that ssh hands to the target's shell for a script.
[[nodiscard]] std::string login_shell_payload(const std::string& script);

/// For board://NAME: brings the board up with `talpa` if it is not, and has its SSH configuration written to where
/// Target looks for it. Others: nothing. Interrupted in that, it ends the board again, and the error says so.
[[nodiscard]] host::Result<void> bring_up_board(const Destination& destination);
/// The name of the board that this process has brought up, if any.
[[nodiscard]] std::string board_brought_up();

/// Ports of a board://NAME that shall be reached on this machine, where the board's pages then are: 127.0.0.1. What is
/// forwarded already stays. Others: nothing.
[[nodiscard]] host::Result<void> publish_board_ports(const Destination& destination,
                                                     const std::vector<std::uint16_t>& ports);

/// A folder for control sockets whose path is short enough whatever HOME is: $XDG_RUNTIME_DIR/topo, else /tmp/topo-UID,
/// 0700 and ours. Empty if there is none to be had (then without multiplexing).
[[nodiscard]] std::string control_folder();

}  // namespace talpa::topo
