/* Screen: where the shell writes for people. On a terminal, output longer than the screen stops
 * after each screenful and asks; elsewhere it just goes out. */
#pragma once

#include "base/buf.h"

struct shell_screen {
    bool terminal;    /* somebody reads and can be asked */
    int input;        /* where keys come from */
    int cancel;       /* readable: Ctrl-C was pressed; -1: nobody looks */
    size_t rows_left; /* until the screen is full */
    bool stopped;     /* they want no more of this */
};

/* Columns of the terminal; 80 if it does not say. */
size_t shell_screen_width(void);

/* A new answer begins: a full screen is left, and nobody has said stop. */
void shell_screen_begin(struct shell_screen *screen);

/* Writes whole lines to standard output. False: they want no more; nothing is written from then on
 * until the next beginning. */
bool shell_screen_write(struct shell_screen *screen, struct slice text);
