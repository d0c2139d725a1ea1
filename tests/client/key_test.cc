// The same program as C++, for the header promises to be both.
#include "key_test.c"
