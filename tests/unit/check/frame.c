/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A function whose frame has SIZE bytes and more, and that calls back. */
void call_with_frame(void (*back)(void));

__attribute__((visibility("default"))) void call_with_frame(void (*back)(void))
{
	volatile char frame[SIZE];

	frame[0] = 1;
	back();
	frame[SIZE - 1] = frame[0];
}
