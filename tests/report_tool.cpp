// For tests: writes the HTML report of a program. `talpa_report_tool PROGRAM.pte OUT.html`
#include <cstdio>

#include "base/host/file.h"
#include "inspect/report_html.h"
#include "runtime/operators/all.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    talpa::inspect::Options options;
    options.operators = talpa::runtime::all_operators();
    const auto report = talpa::inspect::inspect_file(argv[1], options);
    if (!report) {
        std::fprintf(stderr, "%s\n", report.error().describe().c_str());
        return 1;
    }
    const auto written = talpa::host::write_text(argv[2], talpa::inspect::report_html(*report));
    return written ? 0 : 1;
}
