// A stranger's form data: the parts lie inside the body, whatever it is.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "webapp/http/message.h"
#include "webapp/http/multipart.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::webapp::http;
    // The first line is the content type, the rest the body.
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::size_t end = std::min(all.find('\n'), all.size());
    const std::string_view body = all.substr(std::min(end + 1, all.size()));
    Head head;
    (void)parse_target(all.substr(0, end), head);
    const auto parts = parse_multipart(all.substr(0, end), body, 16);
    if (!parts) return 0;
    if (parts->size() > 16) std::abort();
    for (const Part& part : *parts)
        if (part.bytes.data() < body.data() || part.bytes.data() + part.bytes.size() > body.data() + body.size() ||
            part.name.empty() || part.filename.find('/') != std::string::npos)
            std::abort();
    return 0;
}
