/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* For programs that look at the second half of the memory, which something fills with one value, a byte at a time. */
#ifndef UIWARP_TESTS_LAST_BYTE_H
#define UIWARP_TESTS_LAST_BYTE_H

#include "../misuse/misuse.h"

#define BYTES (SIZE / 2)

static struct ends ends;

static void await_last_byte(char value)
{
	const volatile char *last = &ends.memory[SIZE - 1];
	const time_t end = time(NULL) + 60;

	while (*last != value)
		MUST(time(NULL) < end);
}

static void expect_all(char value)
{
	for (int at = BYTES; at < SIZE; at++)
		MUST(((const volatile char *)ends.memory)[at] == value);
}

#endif
