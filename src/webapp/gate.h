// Who may ask: the Host header against DNS rebinding, the Origin against other sites' pages, the token against
// everybody else on the network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "webapp/problem.h"

namespace talpa::webapp {

class Gate {
  public:
    Gate(std::string token, std::vector<std::string> allowed_hosts)
        : token_(std::move(token)), allowed_hosts_(std::move(allowed_hosts)) {}
    /// Nothing: it may. `public_path`: needs no token.
    [[nodiscard]] std::optional<http::Response> refuse(const http::Head& head, bool public_path) const;

  private:
    std::string token_;
    std::vector<std::string> allowed_hosts_;
};

/// An address, `localhost`, a name without dots, or one of a local network (.local, .lan, .home.arpa, .internal): names
/// that no stranger's DNS server can give to this machine. The port is ignored.
[[nodiscard]] bool is_local_host_name(std::string_view host);

}  // namespace talpa::webapp
