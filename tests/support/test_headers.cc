// Nothing but a place for the headers that nearly every test reads
// (CMakeLists.txt), which are compiled once for all.
int main() { return 0; }
