// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
// A program's library, loaded by dlopen(): with debug information, and without any.

__attribute__((visibility("default"))) void calls_back(void (*function)(void *), void *argument);

void calls_back(void (*function)(void *), void *argument)
{
	function(argument); /* line 8 */
	__asm__ volatile("" ::: "memory"); /* so that this is no tail call */
}

/* As C++ abbreviates float. */
__attribute__((visibility("default"))) void f(void (*function)(void *), void *argument);

void f(void (*function)(void *), void *argument)
{
	function(argument);
	__asm__ volatile("" ::: "memory");
}
