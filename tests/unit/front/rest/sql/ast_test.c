#include "fixture.h"
int main(void)
{
    return 0;
}
