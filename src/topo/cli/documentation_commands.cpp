// completion and man: what the command table says, for shells and readers.
#include "topo/cli/commands.h"
#include "topo/cli/completion.h"

namespace talpa::topo {

Done run_completion(const Invocation& invocation) {
    const auto script = completion_script(invocation.arguments[0], !invocation.on("--no-descriptions"));
    if (!script)
        return wrong_usage(
            fmt::format("no completion for \"{}\": bash, zsh, fish and powershell have one", invocation.arguments[0]));
    if (invocation.json())
        print(fmt::format("{{\"shell\":{},\"script\":{}}}", json_text(invocation.arguments[0]), json_text(*script)));
    else
        print(*script);
    return 0;
}

Done run_man(const Invocation& invocation) {
    const auto show = [&](const std::string& page) {
        print(invocation.json() ? fmt::format("{{\"page\":{}}}", json_text(page)) : page);
    };
    if (invocation.on("--markdown")) {
        show(reference_page());
        return 0;
    }
    const CommandRow* command = invocation.arguments.empty() ? nullptr : find_command(invocation.arguments[0]);
    if (command == nullptr && !invocation.arguments.empty())
        return wrong_usage(fmt::format("unknown command \"{}\" for \"topo\"", invocation.arguments[0]));
    show(manual_page(command));
    return 0;
}

}  // namespace talpa::topo
