// talpa: the command line.
#include <cstdio>

int main() {
    std::puts("talpa");
}
