/* Functions of the C library that invite overflow, hidden state or surprise. Using one fails to
 * compile; the comment names what to use in its place. Headers that mention them come first. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef strtok
#undef gets
#undef atoi
#undef atol
#undef atof
#undef asctime
#undef ctime
#undef gmtime
#undef localtime

#define strcpy(x, y) banned_use_buf_or_slice
#define strcat(x, y) banned_use_buf_or_slice
#define strncpy(x, y, n) banned_use_buf_or_slice
#define strncat(x, y, n) banned_use_buf_or_slice
#define sprintf(...) banned_use_buf_printf_or_snprintf
#define vsprintf(...) banned_use_buf_printf_or_snprintf
#define strtok(x, y) banned_use_slice_split
#define gets(x) banned_use_fgets
#define atoi(x) banned_use_slice_to_uint64
#define atol(x) banned_use_slice_to_uint64
#define atof(x) banned_use_document_number
#define asctime(x) banned_use_clock
#define ctime(x) banned_use_clock
#define gmtime(x) banned_use_gmtime_r
#define localtime(x) banned_use_localtime_r
