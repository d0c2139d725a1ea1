#include "cli/shell/screen.h"

#include "cli/table.h"

#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 80, HEIGHT_DEFAULT = 24 };

static struct winsize window(void)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = WIDTH_DEFAULT, .ws_row = HEIGHT_DEFAULT};
    return size;
}

size_t shell_screen_width(void)
{
    return window().ws_col;
}

void shell_screen_begin(struct shell_screen *screen)
{
    size_t rows = window().ws_row;

    screen->rows_left = rows > 2 ? rows - 2 : 1; /* one for the question, one to see the context */
    screen->stopped = false;
}

/* One key, without waiting for Enter and without showing it. 'q' at the end of input and for
 * Ctrl-C. */
static char key_read(const struct shell_screen *screen)
{
    struct pollfd wait[] = {{.fd = screen->input, .events = POLLIN},
                            {.fd = screen->cancel, .events = POLLIN}};
    struct termios before, raw;
    bool changed = tcgetattr(screen->input, &before) == 0;
    char key = 'q';

    if (changed) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        tcsetattr(screen->input, TCSANOW, &raw);
    }
    if (poll(wait, ARRAY_LEN(wait), -1) < 0 || wait[1].revents || read(screen->input, &key, 1) != 1)
        key = 'q';
    if (changed)
        tcsetattr(screen->input, TCSANOW, &before);
    return key;
}

static void ask(struct shell_screen *screen)
{
    static const char question[] = "-- more: space a screen, enter a line, q to stop --";
    char key;

    fputs(question, stdout);
    fflush(stdout);
    key = key_read(screen);
    printf("\r%*s\r", (int)sizeof question - 1, "");
    if (key == 'q' || key == 'Q' || key == 3 || key == 4)
        screen->stopped = true;
    else if (key == '\n' || key == '\r')
        screen->rows_left = 1;
    else
        shell_screen_begin(screen);
}

/* A line that is wider than the screen goes on over several of its rows. */
static size_t rows_of(struct slice line, size_t columns)
{
    size_t width = cli_table_width(line);

    return width > columns ? (width + columns - 1) / columns : 1;
}

bool shell_screen_write(struct shell_screen *screen, struct slice text)
{
    size_t columns = shell_screen_width();
    struct slice line, rest = text;

    if (screen->stopped)
        return false;
    if (!screen->terminal) {
        fwrite(text.data, 1, text.len, stdout);
        return true;
    }
    while (rest.len) {
        size_t length = rest.len;

        if (slice_split(rest, '\n', &line, &rest))
            length = line.len + 1;
        else
            line = rest, rest = SLICE_NONE;
        if (screen->rows_left == 0)
            ask(screen);
        if (screen->stopped)
            return false;
        fwrite(line.data, 1, length, stdout);
        screen->rows_left -= MIN(screen->rows_left, rows_of(line, columns));
    }
    fflush(stdout);
    return true;
}
